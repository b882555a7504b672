"""Keeps rows on disk that would not fit in memory: split by hash, or sorted.

Sorting writes runs as long as memory allows, each sorted, and then merges slice by slice: keys
sampled from every run say where to cut, and a slice of each run is sorted together.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, NamedTuple

import numpy as np

_WORD = 8


class Partitions:
    """Rows in one file for each value of the top `bits` of a 64-bit hash."""

    def __init__(self, folder: Path, name: str, dtype: np.dtype, *, bits: int):
        self.num = 1 << bits
        self._bits, self._dtype = bits, np.dtype(dtype)
        self._paths = [folder / f"{name}-{i}" for i in range(self.num)]
        self._files: list[IO[bytes]] = [path.open("wb") for path in self._paths]

    def append(self, hashes: np.ndarray, rows: np.ndarray) -> None:
        """Add rows, each with its hash."""
        for part, chosen in self.split(hashes):
            rows[chosen].tofile(self._files[part])

    def append_texts(self, hashes: np.ndarray, text: np.ndarray, sizes: np.ndarray) -> None:
        """Add the bytes of texts that lie one after the other in `text`."""
        start = np.cumsum(sizes) - sizes
        for part, chosen in self.split(hashes):
            piece = text
            if self.num > 1:
                piece = gathered(text, start[chosen], sizes[chosen])
            piece.tofile(self._files[part])

    def split(self, hashes: np.ndarray) -> Iterator[tuple[int, slice | np.ndarray]]:
        """Yield each partition that has rows, with the rows in their order."""
        if not len(hashes):
            return
        if self.num == 1:
            yield 0, slice(None)
            return
        part = (hashes >> np.uint64(64 - self._bits)).astype(np.uint16)
        order = np.argsort(part, kind="stable")
        bounds = np.concatenate([[0], np.cumsum(np.bincount(part, minlength=self.num))])
        for i in np.flatnonzero(np.diff(bounds)).tolist():
            yield i, order[bounds[i] : bounds[i + 1]]

    def close(self) -> None:
        """End writing."""
        for file in self._files:
            file.close()

    def blocks(self, part: int, max_rows: int) -> Iterator[np.ndarray]:
        """Yield a partition's rows."""
        with self._paths[part].open("rb") as file:
            while len(rows := np.fromfile(file, self._dtype, max_rows)):
                yield rows

    def rows(self, part: int) -> np.ndarray:
        """Return all rows of a partition."""
        return np.fromfile(self._paths[part], self._dtype)

    def remove(self, part: int) -> None:
        """Remove a partition's file, which frees its place on the disk."""
        self._paths[part].unlink()


class NumberRuns:
    """Numbers, or pairs as complex numbers, sorted and made distinct."""

    def __init__(self, folder: Path, name: str, dtype: np.dtype, *, max_rows: int):
        self._path, self._dtype = folder / name, np.dtype(dtype)
        self._max_rows = max(1024, max_rows)
        self._kept: list[np.ndarray] = []
        self._num_kept = 0
        self._sizes: list[int] = []

    def append(self, numbers: np.ndarray) -> None:
        """Add numbers in any order."""
        self._kept.append(numbers)
        self._num_kept += len(numbers)
        if self._num_kept >= self._max_rows:
            numbers = self._sorted()
            numbers.tofile(self._run(len(self._sizes)))
            self._sizes.append(len(numbers))

    def merged(self) -> Iterator[np.ndarray]:
        """Yield all numbers once, in order, and remove the runs."""
        last = self._sorted()
        if not self._sizes:
            yield last
            return
        last.tofile(self._run(len(self._sizes)))
        self._sizes.append(len(last))
        del last
        bounds = self._bounds()
        for slot in range(len(bounds[0]) - 1):
            yield self._merged(bounds, slot)
        for i in range(len(self._sizes)):
            self._run(i).unlink()

    def _bounds(self) -> list[list[int]]:
        """Return where each run is cut; the runs are mapped no longer than that takes."""
        runs = [
            np.memmap(self._run(i), self._dtype, "r") if size else np.empty(0, self._dtype)
            for i, size in enumerate(self._sizes)
        ]
        cuts = _cuts(runs, self._max_rows)
        return [[0, *np.searchsorted(run, cuts).tolist(), len(run)] for run in runs]

    def _merged(self, bounds: list[list[int]], slot: int) -> np.ndarray:
        pieces = []
        for i, bound in enumerate(bounds):
            count = bound[slot + 1] - bound[slot]
            offset = bound[slot] * self._dtype.itemsize
            # read, not mapped, so that the pages do not count as memory of this process
            pieces.append(np.fromfile(self._run(i), self._dtype, count, offset=offset))
        return _distinct(np.concatenate(pieces))

    def _sorted(self) -> np.ndarray:
        numbers = np.concatenate([np.empty(0, self._dtype), *self._kept])
        self._kept, self._num_kept = [], 0
        return _distinct(numbers)

    def _run(self, number: int) -> Path:
        return self._path.with_name(f"{self._path.name}-{number}")


def _distinct(numbers: np.ndarray) -> np.ndarray:
    numbers.sort()
    is_first = np.ones(len(numbers), bool)
    is_first[1:] = numbers[1:] != numbers[:-1]
    return numbers if is_first.all() else numbers[is_first]


def _cuts(runs: list[np.ndarray], max_rows: int) -> np.ndarray:
    step = max(1, max_rows // (4 * len(runs)))
    samples = np.sort(np.concatenate([np.asarray(run[step::step]) for run in runs]))
    return samples[2 * len(runs) :: 2 * len(runs)]


class Texts(NamedTuple):
    """Texts one after the other, each with a number that orders equal ones, and a tag."""

    text: np.ndarray
    sizes: np.ndarray
    ties: np.ndarray
    tags: np.ndarray


_ROW = np.dtype([("size", "i4"), ("tie", "i8"), ("tag", "u8")])


class TextRuns:
    """Texts sorted by their bytes, equal ones by their number."""

    def __init__(self, folder: Path, name: str, *, max_bytes: int):
        self._path, self._max_bytes = folder / name, max(4096, max_bytes)
        self._kept: list[Texts] = []
        self._bytes = 0
        self._num_runs = 0

    def append(self, texts: Texts) -> None:
        """Add texts in any order."""
        self._kept.append(texts)
        self._bytes += texts.text.nbytes + 64 * len(texts.sizes)
        if self._bytes >= self._max_bytes:
            self._flush()

    def merged(self) -> Iterator[Texts]:
        """Yield all texts in order, and remove the runs."""
        if not self._num_runs:
            yield self._sorted()
            return
        self._flush()
        runs = [_TextRun(self._run(i)) for i in range(self._num_runs)]
        samples = sorted(key for run in runs for key in run.sampled(4 * len(runs)))
        cuts = samples[2 * len(runs) :: 2 * len(runs)]
        bounds = [
            [0, *(bisect_left(range(run.num), cut, key=run.key) for cut in cuts), run.num]
            for run in runs
        ]
        for slot in range(len(cuts) + 1):
            pieces = [
                run.slice(bound[slot], bound[slot + 1])
                for run, bound in zip(runs, bounds, strict=True)
            ]
            yield ordered(_joined(pieces))
        for run in runs:
            run.remove()

    def _sorted(self) -> Texts:
        empty = np.empty(0, _ROW)
        none = Texts(np.empty(0, np.uint8), empty["size"], empty["tie"], empty["tag"])
        texts = ordered(_joined([none, *self._kept]))
        self._kept, self._bytes = [], 0
        return texts

    def _flush(self) -> None:
        texts = self._sorted()
        path = self._run(self._num_runs)
        rows = np.empty(len(texts.sizes), _ROW)
        rows["size"], rows["tie"], rows["tag"] = texts.sizes, texts.ties, texts.tags
        rows.tofile(path)
        texts.text.tofile(path.with_suffix(".text"))
        self._num_runs += 1

    def _run(self, number: int) -> Path:
        return self._path.with_name(f"{self._path.name}-{number}.rows")


class _TextRun:
    def __init__(self, path: Path):
        self._paths = path, path.with_suffix(".text")
        self.num = path.stat().st_size // _ROW.itemsize
        # limit: 8 bytes a text stay in memory here, for cutting
        sizes = np.fromfile(path, _ROW)["size"] if self.num else np.empty(0, np.int32)
        self._start = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])

    def key(self, place: int) -> tuple[bytes, int]:
        texts = self.slice(place, place + 1)
        return texts.text.tobytes(), int(texts.ties[0])

    def sampled(self, count: int) -> Iterator[tuple[bytes, int]]:
        step = max(1, self.num // count)
        return (self.key(place) for place in range(step, self.num, step))

    def slice(self, first: int, last: int) -> Texts:
        rows, text = self._paths
        found = np.fromfile(rows, _ROW, last - first, offset=first * _ROW.itemsize)
        start, end = self._start[[first, last]].tolist()
        piece = np.fromfile(text, np.uint8, end - start, offset=start)
        return Texts(piece, found["size"], found["tie"], found["tag"])

    def remove(self) -> None:
        for path in self._paths:
            path.unlink()


def _joined(pieces: list[Texts]) -> Texts:
    return Texts(*(np.concatenate(column) for column in zip(*pieces, strict=True)))


def ordered(texts: Texts) -> Texts:
    """Return the texts in the order of their bytes, then of their numbers."""
    sizes = texts.sizes.astype(np.int64)
    start = np.cumsum(sizes) - sizes
    words = [_word(texts.text, start, sizes, skip) for skip in (0, _WORD)]
    order = np.lexsort((texts.ties, words[1], words[0]))
    first, second, size = words[0][order], words[1][order], sizes[order]
    is_same = (first[1:] == first[:-1]) & (second[1:] == second[:-1])
    # texts that the words tell apart are in place; equal words may hide more, or a NUL
    unsure = is_same & ((size[1:] > 2 * _WORD) | (size[:-1] > 2 * _WORD) | (size[1:] != size[:-1]))
    if unsure.any():
        _settle(order, np.concatenate([[False], is_same]), unsure, _reader(texts, start, sizes))
    return Texts(
        gathered(texts.text, start[order], sizes[order]),
        texts.sizes[order],
        texts.ties[order],
        texts.tags[order],
    )


def _reader(
    texts: Texts, start: np.ndarray, sizes: np.ndarray
) -> Callable[[int], tuple[bytes, int]]:
    text = np.ascontiguousarray(texts.text).data

    def key(place: int) -> tuple[bytes, int]:
        first = int(start[place])
        return bytes(text[first : first + int(sizes[place])]), int(texts.ties[place])

    return key


def _settle(
    order: np.ndarray,
    joins: np.ndarray,
    unsure: np.ndarray,
    key: Callable[[int], tuple[bytes, int]],
) -> None:
    """Sort each group of places that join the one before by their whole keys."""
    heads = np.flatnonzero(~joins)
    group = np.cumsum(~joins) - 1
    ends = np.append(heads[1:], len(order))
    for i in np.unique(group[1:][unsure]).tolist():
        first, last = heads[i], ends[i]
        order[first:last] = sorted(order[first:last].tolist(), key=key)


def _word(text: np.ndarray, start: np.ndarray, sizes: np.ndarray, skip: int) -> np.ndarray:
    """Return eight bytes of each text as a number that sorts like them, NUL past its end."""
    words = np.zeros(len(start), np.uint64)
    for i in range(skip, skip + _WORD):
        words <<= np.uint64(8)
        inside = np.flatnonzero(sizes > i)
        words[inside] |= text[start[inside] + i].astype(np.uint64)
    return words


def gathered(text: np.ndarray, start: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Return the pieces of a text, one after the other."""
    pieces = []
    sizes = sizes.astype(np.int64)
    for first in range(0, len(start), 1 << 15):
        size = sizes[first : first + (1 << 15)]
        ends = np.cumsum(size)
        shift = start[first : first + (1 << 15)] - (ends - size)
        pieces.append(text[np.arange(ends[-1]) + np.repeat(shift, size)])
    return np.concatenate(pieces) if pieces else np.empty(0, text.dtype)
