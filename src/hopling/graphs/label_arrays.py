"""Writes the labels of a hop index, and the arrays by which they are found.

Labels lie in the order of their nodes, languages and texts. They are found by a hash of their
folded text, by the beginning of it (`label_order` has the labels sorted by folded text), or by
three-character pieces. Python looks at the odd ones only; numpy does the rest by the thousand.
"""

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from hopling.graphs.collect import LABEL, Collector
from hopling.graphs.dictionary import Places, Starts, buckets_for, crcs, write_bucketed
from hopling.graphs.layout import IndexWriter
from hopling.graphs.names import folded
from hopling.graphs.spill import NumberRuns, Partitions, TextRuns, Texts, gathered

TRIGRAM_BITS = 18

_ROWS = 1 << 17
_SPACE = 32


class _Labels(NamedTuple):
    """Labels in their order; the texts lie one after the other."""

    nodes: np.ndarray
    languages: np.ndarray
    text: np.ndarray
    sizes: np.ndarray


class _Finding:
    """Collects the keys of labels as they are written, to be sorted afterwards."""

    def __init__(self, writer: IndexWriter, *, max_bytes: int):
        self._writer, self._max_bytes = writer, max_bytes
        self._trigrams = NumberRuns(
            writer.work, "trigrams", np.dtype("u8"), max_rows=max_bytes // 32
        )
        self._order = TextRuns(writer.work, "label-keys", max_bytes=max_bytes // 2)
        self._crc_path = writer.work / "label-crcs"
        self._crcs = self._crc_path.open("wb")

    def append(self, labels: _Labels, first: int) -> None:
        text, sizes = _keys(labels.text, labels.sizes)
        ends = np.cumsum(sizes)
        crcs(memoryview(text.tobytes()), ends - sizes, ends).astype(np.uint32).tofile(self._crcs)
        rows = np.arange(first, first + len(sizes))
        none = np.zeros(len(sizes), np.uint64)
        self._order.append(Texts(text, sizes.astype(np.int32), rows, none))
        buckets, owners = _trigrams(text, sizes)
        self._trigrams.append(buckets << np.uint64(32) | (owners + np.uint64(first)))

    def close(self) -> None:
        self._crcs.close()

    def write(self) -> None:
        writer = self._writer
        with writer.array("label_order", "i4") as order:
            for texts in self._order.merged():
                order.append(texts.ties)
        num_buckets = buckets_for(order.length)
        num_trigrams = 1 << TRIGRAM_BITS if order.length else 1
        write_bucketed(writer, "trigram", self._trigrams.merged(), num_trigrams)
        runs = NumberRuns(
            writer.work, "label-buckets", np.dtype("u8"), max_rows=self._max_bytes // 32
        )
        with self._crc_path.open("rb") as file:
            first = 0
            while len(crcs := np.fromfile(file, np.uint32, _ROWS)):
                rows = np.arange(first, first + len(crcs), dtype=np.uint64)
                buckets = crcs.astype(np.uint64) & np.uint64(num_buckets - 1)
                runs.append(buckets << np.uint64(32) | rows)
                first += len(crcs)
        self._crc_path.unlink()
        write_bucketed(writer, "label_bucket", runs.merged(), num_buckets)


def write_labels(
    collector: Collector, places: Places, writer: IndexWriter, *, max_bytes: int
) -> Counter[str]:
    """Write the arrays `label_*`, `language_*`, `node_label` and `trigram_*`.

    Return how many labels each language has.
    """
    tags = sorted({suffix[1:] for suffix in collector.suffixes if suffix[:1] in ("", "@")})
    counts = np.zeros(len(tags), np.int64)
    finding = _Finding(writer, max_bytes=max_bytes)
    numbers = {language: i for i, language in enumerate(tags)}
    ranks = np.array([numbers.get(suffix[1:], 0) for suffix in collector.suffixes], np.int32)
    try:
        with (
            writer.array("label_start", "i8") as start,
            writer.array("label_text", "u1") as text,
            writer.array("label_node", "i4") as nodes,
            writer.array("label_language", "i4") as languages,
            writer.array("node_label", "i8") as node_label,
        ):
            start.append(np.zeros(1, np.int64))
            starts = Starts(node_label, places.num)
            for labels in _sorted(collector, places, writer, ranks):
                finding.append(labels, nodes.length)
                starts.append(labels.nodes)
                nodes.append(labels.nodes)
                languages.append(labels.languages)
                start.append(text.length + np.cumsum(labels.sizes))
                text.append(labels.text)
                counts += np.bincount(labels.languages, minlength=len(tags))
            starts.finish()
    finally:
        finding.close()
    writer.put_texts("language", tags)
    finding.write()
    return Counter({tag: int(num) for tag, num in zip(tags, counts, strict=True) if num})


def _sorted(
    collector: Collector, places: Places, writer: IndexWriter, ranks: np.ndarray
) -> Iterator[_Labels]:
    """Yield labels once each, sorted by (place, language, text), in pieces."""
    num = collector.labels.num
    by_place = Partitions(writer.work, "placed-labels", LABEL, bits=num.bit_length() - 1)
    texts = Partitions(writer.work, "placed-texts", np.dtype("u1"), bits=num.bit_length() - 1)
    try:
        for part in range(num):
            rows, text = collector.labels.rows(part), collector.label_texts.rows(part)
            place = places.of_partition(part)(rows["node"])
            rows["node"] = place
            spread = _spread(place, places.num)
            by_place.append(spread, rows)
            texts.append_texts(spread, text, rows["size"].astype(np.int64))
            collector.labels.remove(part)
            collector.label_texts.remove(part)
    finally:
        by_place.close()
        texts.close()
    for part in range(num):
        rows, text = by_place.rows(part), texts.rows(part)
        by_place.remove(part)
        texts.remove(part)
        yield from _pieces(rows, ranks[rows["suffix"]], text)


def _spread(places: np.ndarray, num: int) -> np.ndarray:
    """Return hashes that keep the order of the places and use all 64 bits."""
    step = ((1 << 64) - 1) // max(1, num)
    return places.astype(np.uint64) * np.uint64(step)


def _pieces(rows: np.ndarray, languages: np.ndarray, text: np.ndarray) -> Iterator[_Labels]:
    sizes = rows["size"].astype(np.int64)
    start = np.cumsum(sizes) - sizes
    order = np.lexsort((languages, rows["node"]))
    order = order[_is_visible(text, start, sizes)[order]]
    nodes = rows["node"].astype(np.int32)
    order = _distinct(order, nodes[order], languages[order], (text, start, sizes))
    for first in range(0, len(order), _ROWS):
        chosen = order[first : first + _ROWS]
        shown = gathered(text, start[chosen], sizes[chosen])
        yield _Labels(nodes[chosen], languages[chosen], shown, sizes[chosen])


def _is_visible(text: np.ndarray, start: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Return which texts have more than white space in them."""
    visible = sizes > 0
    first = text[start[visible]]
    visible[visible] = (first > _SPACE) & (first < 127)
    for i in np.flatnonzero(~visible & (sizes > 0)).tolist():
        visible[i] = bool(_bytes(text, start, sizes, i).decode().strip())
    return visible


def _distinct(
    order: np.ndarray,
    nodes: np.ndarray,
    languages: np.ndarray,
    texts: tuple[np.ndarray, np.ndarray, np.ndarray],
) -> np.ndarray:
    """Return the order with the texts of a node and language sorted, each once."""
    joins = np.zeros(len(order), bool)
    joins[1:] = (nodes[1:] == nodes[:-1]) & (languages[1:] == languages[:-1])
    heads = np.flatnonzero(~joins)
    ends = np.append(heads[1:], len(order))
    kept = np.ones(len(order), bool)
    several = np.flatnonzero(ends - heads > 1)
    for first, end in zip(heads[several].tolist(), ends[several].tolist(), strict=True):
        of_text = {_bytes(*texts, i): i for i in order[first:end].tolist()}
        last = first + len(of_text)
        order[first:last] = [of_text[text] for text in sorted(of_text)]
        kept[last:end] = False
    return order[kept]


def _bytes(text: np.ndarray, start: np.ndarray, sizes: np.ndarray, i: int) -> bytes:
    return text[start[i] : start[i] + sizes[i]].tobytes()


def _keys(text: np.ndarray, sizes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the folded texts; what is ASCII with single spaces is only made lower-case."""
    ends = np.cumsum(sizes)
    start = ends - sizes
    lowered = np.frombuffer(text.tobytes().lower(), np.uint8)
    is_space = text == _SPACE
    is_odd = (text < _SPACE) | (text >= 127)
    is_odd[1:] |= is_space[1:] & is_space[:-1]
    before = np.concatenate([[0], np.cumsum(is_odd)])
    odd = np.flatnonzero((before[ends] > before[start]) | is_space[start] | is_space[ends - 1])
    if not len(odd):
        return lowered, sizes
    mended = [folded(_bytes(text, start, sizes, i).decode()).encode() for i in odd.tolist()]
    sizes = sizes.copy()
    sizes[odd] = [len(key) for key in mended]
    start[odd] = len(lowered) + np.cumsum(sizes[odd]) - sizes[odd]
    pool = np.concatenate([lowered, np.frombuffer(b"".join(mended), np.uint8)])
    return gathered(pool, start, sizes), sizes


def _trigrams(text: np.ndarray, sizes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the bucket of each piece of each text, and which text it is of."""
    num_before = np.concatenate([[0], np.cumsum(text & 0xC0 != 0x80)])  # characters, not bytes
    ends = np.cumsum(sizes)
    lengths = num_before[ends] - num_before[ends - sizes]
    numbers = np.arange(len(sizes))
    padded = np.full(int(lengths.sum()) + 2 * len(sizes), _SPACE, np.uint32)
    places = np.arange(int(lengths.sum())) + np.repeat(2 * numbers + 1, lengths)
    padded[places] = np.frombuffer(text.tobytes().decode().encode("utf-32-le"), np.uint32)
    owners = np.repeat(numbers.astype(np.uint64), lengths + 2)
    within = owners[2:] == owners[:-2]
    buckets = trigram_bucket(padded[:-2], padded[1:-1], padded[2:])[within]
    return buckets.astype(np.uint64), owners[:-2][within]


def trigram_bucket(first: np.ndarray, second: np.ndarray, third: np.ndarray) -> np.ndarray:
    """Return the bucket of each three-character piece, from its code points (uint32)."""
    mixed = (first * np.uint32(31) + second) * np.uint32(2654435761) + third * np.uint32(40503)
    return mixed >> np.uint32(32 - TRIGRAM_BITS)
