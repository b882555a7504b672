"""Writes the labels of a hop index, and the arrays by which they are found.

Labels lie in the order of their nodes. They are found by a hash of their folded text, by the
beginning of it (`label_order` has the labels sorted by folded text), or by three-character pieces.
"""

from collections import Counter
from collections.abc import Iterator
from zlib import crc32

import numpy as np

from hopling.graphs.collect import LABEL, Collector
from hopling.graphs.dictionary import Places, Starts, buckets_for, write_bucketed
from hopling.graphs.layout import ArrayFile, IndexWriter
from hopling.graphs.names import folded
from hopling.graphs.spill import NumberRuns, Partitions, TextRuns, Texts

TRIGRAM_BITS = 18

_ROWS = 1 << 17

_Row = tuple[int, str, str]


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

    def append(self, keys: list[str], first: int) -> None:
        encoded = [key.encode() for key in keys]
        np.array([crc32(key) for key in encoded], np.uint32).tofile(self._crcs)
        rows = np.arange(first, first + len(keys))
        sizes = np.array([len(key) for key in encoded], np.int32)
        text = np.frombuffer(b"".join(encoded), np.uint8)
        self._order.append(Texts(text, sizes, rows, np.zeros(len(keys), np.uint64)))
        buckets, owners = _trigrams(keys)
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
    found: Counter[str] = Counter()
    finding = _Finding(writer, max_bytes=max_bytes)
    numbers = {language: i for i, language in enumerate(tags)}
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
            for rows in _sorted(collector, places, writer):
                first = nodes.length
                where = np.array([row[0] for row in rows], np.int64)
                starts.append(where)
                nodes.append(where)
                languages.append(np.array([numbers[row[1]] for row in rows], np.int32))
                _append_texts(text, start, [row[2] for row in rows])
                finding.append([_key(row[2]) for row in rows], first)
                found.update(row[1] for row in rows)
            starts.finish()
    finally:
        finding.close()
    writer.put_texts("language", tags)
    finding.write()
    return found


def _append_texts(text: ArrayFile, start: ArrayFile, texts: list[str]) -> None:
    encoded = [text.encode() for text in texts]
    start.append(text.length + np.cumsum([len(one) for one in encoded], dtype=np.int64))
    text.append(np.frombuffer(b"".join(encoded), np.uint8))


def _key(text: str) -> str:
    return " ".join(text.lower().split()) if text.isascii() else folded(text)


def _sorted(collector: Collector, places: Places, writer: IndexWriter) -> Iterator[list[_Row]]:
    """Yield labels once each, sorted by (place, language, text), in pieces."""
    languages = [suffix[1:] for suffix in collector.suffixes]
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
        yield from _pieces(by_place.rows(part), texts.rows(part).tobytes(), languages)


def _spread(places: np.ndarray, num: int) -> np.ndarray:
    """Return hashes that keep the order of the places and use all 64 bits."""
    step = ((1 << 64) - 1) // max(1, num)
    return places.astype(np.uint64) * np.uint64(step)


def _pieces(rows: np.ndarray, text: bytes, languages: list[str]) -> Iterator[list[_Row]]:
    size = rows["size"].astype(np.int64)
    start = np.cumsum(size) - size
    order = np.argsort(rows["node"], kind="stable")
    first = 0
    while first < len(order):
        end = min(len(order), first + _ROWS)
        while end < len(order) and rows["node"][order[end]] == rows["node"][order[end - 1]]:
            end += 1
        chosen = order[first:end]
        columns = (rows["node"], rows["suffix"], start, size)
        wanted = zip(*(column[chosen].tolist() for column in columns), strict=True)
        found = {
            (place, languages[suffix], shown)
            for place, suffix, begin, length in wanted
            if (shown := text[begin : begin + length].decode()).strip()
        }
        yield sorted(found)
        first = end


def _trigrams(keys: list[str]) -> tuple[np.ndarray, np.ndarray]:
    joined = np.frombuffer("".join(f" {key} " for key in keys).encode("utf-32-le"), np.uint32)
    sizes = np.array([len(key) + 2 for key in keys], np.int64)
    owners = np.repeat(np.arange(len(keys), dtype=np.uint64), sizes)
    if len(joined) < 3:
        return np.empty(0, np.uint64), np.empty(0, np.uint64)
    within = owners[2:] == owners[:-2]
    buckets = trigram_bucket(joined[:-2], joined[1:-1], joined[2:])[within]
    return buckets.astype(np.uint64), owners[:-2][within]


def trigram_bucket(first: np.ndarray, second: np.ndarray, third: np.ndarray) -> np.ndarray:
    """Return the bucket of each three-character piece, from its code points (uint32)."""
    mixed = (first * np.uint32(31) + second) * np.uint32(2654435761) + third * np.uint32(40503)
    return mixed >> np.uint32(32 - TRIGRAM_BITS)
