"""Writes the dictionary of a hop index: all terms in order, and which place each hash has.

Terms are made distinct by partition of their hash, then sorted outside memory by their bytes,
entities before literals before relations, literals by suffix.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from zlib import crc32

import numpy as np

from hopling.graphs.collect import NODE, Collector, HashCollision
from hopling.graphs.layout import ArrayFile, IndexWriter
from hopling.graphs.sources import mapped
from hopling.graphs.spill import NumberRuns, Partitions, TextRuns, Texts

LITERAL, RELATION = 1, 2  # a term's kind; 0 is an entity that is no relation
PLACE = np.dtype([("hash", "u8"), ("place", "i4")])
MAX_TERMS = (1 << 31) - 1

_ROWS = 1 << 20


@dataclass(frozen=True)
class Places:
    """Where terms stand: `num` in all, `relations` the places of relations in order.

    `relation_rank` has the rank of each relation by its number while reading.
    """

    num: int
    num_literals: int
    relations: np.ndarray
    relation_rank: np.ndarray
    by_hash: Partitions

    def of_partition(self, part: int) -> "PlaceTable":
        """Return the places of a partition's hashes."""
        rows = self.by_hash.rows(part)
        rows = rows[np.argsort(rows["hash"])]
        bits = self.by_hash.num.bit_length() - 1
        return PlaceTable(rows["hash"].copy(), rows["place"].copy(), skipped=bits)


class PlaceTable:
    """The places of hashes, both in the order of the hashes, which share `skipped` top bits."""

    def __init__(self, hashes: np.ndarray, places: np.ndarray, *, skipped: int):
        self._hashes, self._places, self._skipped = hashes, places, np.uint64(skipped)
        bits = max(1, len(hashes).bit_length())
        self._shift = np.uint64(64 - bits)
        self._start = np.zeros((1 << bits) + 1, np.int32)
        np.cumsum(np.bincount(self._bucket(hashes), minlength=1 << bits), out=self._start[1:])

    def __call__(self, hashes: np.ndarray) -> np.ndarray:
        """Return the place of each hash, all of which are known."""
        at = self._start[self._bucket(hashes)]
        unsure = np.flatnonzero(self._hashes[at] != hashes)
        while len(unsure):
            at[unsure] += 1
            unsure = unsure[self._hashes[at[unsure]] != hashes[unsure]]
        return self._places[at]

    def _bucket(self, hashes: np.ndarray) -> np.ndarray:
        """Return the first bits that tell hashes of a partition apart, as many as it has rows."""
        return (hashes << self._skipped >> self._shift).astype(np.int64)


def write_dictionary(
    collector: Collector, relation_hashes: list[int], writer: IndexWriter, *, max_bytes: int
) -> Places:
    """Write the arrays `term_*`, but for their buckets, `suffix_*` and `relation_term`.

    Raises HashCollision when two terms share a hash.
    """
    folder = writer.work
    suffixes = sorted(collector.suffixes)
    rank = np.zeros(len(suffixes) + 1, np.int64)
    for i, suffix in enumerate(suffixes):
        rank[collector.suffixes[suffix]] = i
    used = np.array(sorted({value for value in relation_hashes if value}), np.uint64)
    runs = TextRuns(folder, "sorted-terms", max_bytes=max_bytes)
    distinct = partial(_distinct, collector, rank=rank, used=used)
    for texts in mapped(distinct, range(collector.terms.num), ahead=1):
        runs.append(texts)
    by_hash = Partitions(folder, "places", PLACE, bits=collector.terms.num.bit_length() - 1)
    try:
        num, num_literals, relations = _write_terms(runs.merged(), writer, by_hash, len(suffixes))
    finally:
        by_hash.close()
    writer.put_texts("suffix", suffixes)
    places = np.array([place for place, _ in relations], np.int32)
    writer.put("relation_term", places)
    ranks = {hash: i for i, (_, hash) in enumerate(relations)}
    relation_rank = np.array([ranks.get(hash, 0) for hash in relation_hashes], np.int32)
    return Places(num, num_literals, places, relation_rank, by_hash)


def _distinct(collector: Collector, part: int, *, rank: np.ndarray, used: np.ndarray) -> Texts:
    """Return a partition's terms once each; ties order by kind and suffix, tags are hashes."""
    rows = collector.terms.rows(part)
    text = collector.term_texts.rows(part)
    collector.terms.remove(part)
    collector.term_texts.remove(part)
    sizes = rows["size"].astype(np.int64)
    order = np.argsort(rows["hash"], kind="stable")
    hashes, checks = rows["hash"][order], rows["check"][order]
    is_first = np.ones(len(rows), bool)
    is_first[1:] = hashes[1:] != hashes[:-1]
    if (~is_first[1:] & (checks[1:] != checks[:-1])).any():
        raise HashCollision
    chosen = np.sort(order[is_first])
    kept = np.zeros(len(rows), bool)
    kept[chosen] = True
    suffix = rows["suffix"][chosen].astype(np.int64)
    kind = np.where(suffix == NODE, 0, LITERAL)
    kind[np.isin(rows["hash"][chosen], used)] = RELATION
    tie = kind * len(rank) + np.where(suffix == NODE, 0, rank[suffix])
    return Texts(
        text[np.repeat(kept, sizes)], sizes[chosen].astype(np.int32), tie, rows["hash"][chosen]
    )


def _write_terms(
    merged: Iterator[Texts], writer: IndexWriter, by_hash: Partitions, num_suffixes: int
) -> tuple[int, int, list[tuple[int, int]]]:
    relations: list[tuple[int, int]] = []
    num_literals = 0
    with (
        writer.array("term_text", "u1") as text,
        writer.array("term_start", "i8") as start,
        writer.array("term_kind", "u1") as kinds,
        writer.array("term_suffix", "i4") as suffixes,
    ):
        start.append(np.zeros(1, np.int64))
        for block in merged:
            first = kinds.length
            if first + len(block.sizes) > MAX_TERMS:
                raise OverflowError(f"more than {MAX_TERMS} terms")
            kind, suffix = np.divmod(block.ties, num_suffixes + 1)
            start.append(text.length + np.cumsum(block.sizes, dtype=np.int64))
            text.append(block.text)
            kinds.append(kind)
            suffixes.append(suffix)
            places = np.empty(len(kind), PLACE)
            places["hash"], places["place"] = block.tags, first + np.arange(len(kind))
            by_hash.append(block.tags, places)
            num_literals += int((kind == LITERAL).sum())
            for i in np.flatnonzero(kind == RELATION).tolist():
                relations.append((first + i, int(block.tags[i])))
        return kinds.length, num_literals, relations


def write_term_buckets(places: Places, writer: IndexWriter, *, max_bytes: int) -> None:
    """Write the arrays `term_bucket_*`, by which an id is found."""
    num = places.num
    num_buckets = buckets_for(num - places.num_literals)
    runs = NumberRuns(writer.work, "term-buckets", np.dtype("u8"), max_rows=max_bytes // 16)
    for first in range(0, num, _ROWS):
        # mapped anew for each piece, so that what was read does not stay in memory
        bounds = np.array(writer.read("term_start")[first : first + _ROWS + 1])
        wanted = np.flatnonzero(writer.read("term_kind")[first : first + _ROWS] != LITERAL)
        piece = memoryview(writer.read("term_text")[bounds[0] : bounds[-1]].tobytes())
        bounds = bounds - bounds[0]
        buckets = crcs(piece, bounds[wanted], bounds[wanted + 1]) & np.uint64(num_buckets - 1)
        runs.append(buckets << np.uint64(32) | (wanted + first).astype(np.uint64))
    write_bucketed(writer, "term_bucket", runs.merged(), num_buckets)


def crcs(text: memoryview, start: np.ndarray, end: np.ndarray) -> np.ndarray:
    """Return the CRC-32 of each piece of a text."""
    rows = zip(start.tolist(), end.tolist(), strict=True)
    return np.fromiter((crc32(text[a:b]) for a, b in rows), np.uint64, len(start))


def buckets_for(num_keys: int) -> int:
    """Return a power of two of at least one bucket a key."""
    return 1 << max(0, num_keys - 1).bit_length()


def write_bucketed(
    writer: IndexWriter, name: str, merged: Iterator[np.ndarray], num_buckets: int
) -> None:
    """Write `NAME_start` and `NAME_place` of numbers that are a bucket and a place."""
    with (
        writer.array(f"{name}_start", "i8") as start,
        writer.array(f"{name}_place", "i4") as place,
    ):
        starts = Starts(start, num_buckets)
        for pairs in merged:
            starts.append(pairs >> np.uint64(32))
            place.append(pairs & np.uint64(0xFFFFFFFF))
        starts.finish()


class Starts:
    """Where each group of a sorted array begins, for all groups, empty ones too."""

    def __init__(self, file: ArrayFile, num: int):
        self._file, self._num, self._done = file, num, 0

    def append(self, groups: np.ndarray) -> None:
        """Take the group of each further element."""
        if len(groups):
            self._fill(groups, int(groups[-1]) + 1)
            self._done += len(groups)

    def finish(self) -> None:
        """Write the starts of the groups that are left, and the end of the last."""
        self._fill(np.empty(0, np.int64), self._num + 1)

    def _fill(self, groups: np.ndarray, end: int) -> None:
        for first in range(self._file.length, end, _ROWS):
            wanted = np.arange(first, min(end, first + _ROWS), dtype=groups.dtype)
            self._file.append(self._done + np.searchsorted(groups, wanted))
