"""Reads N-Triples and TSV by a compiled scan of their bytes; needs numba.

One thread reads and scans, one gives numbers to what was found, and one writes.
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from hopling.graphs.collect import EDGE, LABEL, MIXERS, NODE, TERM, Collector
from hopling.graphs.scan_lines import (
    BEGIN,
    CLASSES,
    HEAD,
    ODD,
    PARTS,
    SUFFIX,
    SUFFIX_END,
    TAIL,
    TAIL_END,
    hash_parts,
    hash_text,
    jit,
    scan_triples,
    scan_tsv,
)
from hopling.graphs.sources import Chunk, Lines, kind_of, mapped
from hopling.graphs.terms import parse_triple

_MIXERS = np.uint64(MIXERS[0]), np.uint64(MIXERS[1])
_CACHE_BITS = 19
_AHEAD = 2  # chunks that are scanned, each by a thread, while one is collected


class _Scanned(NamedTuple):
    number: int  # of the first line
    text: bytes
    table: np.ndarray
    hashes: np.ndarray


class FastScan:
    """Scans files into a collector; `seed` changes the hashes."""

    def __init__(self, seed: int):
        self._seeds = np.array([2 * seed + 1, 2 * seed + 3], np.uint64)
        self._recent = np.zeros((1 << _CACHE_BITS, 2), np.uint64)
        self._relations, self._suffixes = _Known(), _Known()

    def hashed(self, text: bytes) -> tuple[int, int]:
        """Return the two hashes of a text."""
        array = np.frombuffer(text, np.uint8)
        first, second = hash_text(array, 0, len(array), self._seeds)
        return int(first), int(second)

    def read(self, lines: Lines, source: Path, scope: str, collector: Collector) -> None:
        """Collect the triples of a file; `scope` keeps its blank nodes apart."""
        scan = scan_tsv if (lines.kind or kind_of(source)) == "tsv" else scan_triples
        prefix = np.frombuffer(collector.namespace.iri.encode(), np.uint8)
        scanning = partial(self._scanned, scan, prefix)
        for scanned in mapped(scanning, lines.chunks(source), ahead=_AHEAD):
            text, table = scanned.text, scanned.table
            numbers = self._numbers(text, table, scanned.hashes, collector)
            self._put(np.frombuffer(text, np.uint8), table, scanned.hashes, numbers, collector)
            for row in np.flatnonzero(table[:-1, HEAD] == ODD).tolist():
                line = text[table[row, BEGIN] : table[row + 1, BEGIN]]
                triple = lines.triple(source, scanned.number + row, line, scope)
                if triple is not None:
                    collector.add(triple)

    def _scanned(self, scan: Callable[..., None], prefix: np.ndarray, chunk: Chunk) -> "_Scanned":
        text = np.frombuffer(chunk.text, np.uint8)
        num_lines = np.count_nonzero(text == ord("\n")) + (not chunk.text.endswith(b"\n"))
        table = np.zeros((num_lines + 1, 9), np.int32)
        scan(text, table, prefix, _is_utf8(chunk.text), CLASSES)
        if chunk.number == 1:
            table[0, HEAD] = ODD  # it may begin with a byte order mark
        hashes = np.zeros((num_lines, 8), np.uint64)
        hash_parts(text, table, self._seeds, hashes)
        return _Scanned(chunk.number, chunk.text, table, hashes)

    def _numbers(
        self, text: bytes, table: np.ndarray, hashes: np.ndarray, collector: Collector
    ) -> np.ndarray:
        """Return each line's numbers of relation and suffix; what has none becomes odd."""
        plain = table[:-1, HEAD] != ODD

        def relation(row: int) -> int:
            return collector.relation_number(_part(text, table[row], 1).decode())

        def suffix(row: int) -> int:
            return _suffix_number(_part(text, table[row], 3), collector)

        relations = self._relations.numbers(hashes[:, 2:4], plain, relation)
        is_label = np.array([relation.is_label for relation in collector.relations], bool)
        literals = plain & (table[:-1, SUFFIX] != NODE)
        labels = np.flatnonzero(literals & is_label[relations])
        begin = table[labels, SUFFIX]
        typed = table[labels, SUFFIX_END] > begin
        typed[typed] = [text[place] == ord("^") for place in begin[typed].tolist()]
        table[labels[typed], HEAD] = ODD  # a label has a language or nothing
        literals[labels[typed]] = False
        suffixes = self._suffixes.numbers(hashes[:, 6:8], literals, suffix)
        table[:-1, HEAD][suffixes == ODD] = ODD
        return np.stack([relations, suffixes], axis=1)

    def _put(
        self,
        text: np.ndarray,
        table: np.ndarray,
        hashes: np.ndarray,
        numbers: np.ndarray,
        collector: Collector,
    ) -> None:
        is_label = np.array([relation.is_label for relation in collector.relations], bool)
        size = len(hashes)
        edges, labels, terms = np.empty(size, EDGE), np.empty(size, LABEL), np.empty(2 * size, TERM)
        label_text, term_text = np.empty_like(text), np.empty_like(text)
        num = np.zeros(5, np.int64)
        _fill(
            (text, table, hashes, numbers, is_label, self._recent),
            (edges, labels, terms, label_text, term_text),
            num,
        )
        collector.put_edges(edges[: num[0]])
        collector.put_labels(labels[: num[1]], label_text[: num[3]])
        collector.put_terms(terms[: num[2]], term_text[: num[4]])


def _part(text: bytes, row: np.ndarray, part: int) -> bytes:
    begin, end = PARTS[part]
    return text[row[begin] : row[end]]


class _Known:
    """Numbers of what was met before, found by two hashes without Python for each row."""

    def __init__(self) -> None:
        self._keys = np.zeros((1 << 10, 2), np.uint64)
        self._values = np.full(1 << 10, NODE, np.int32)
        self._numbers: dict[tuple[int, int], int] = {}

    def numbers(
        self, keys: np.ndarray, wanted: np.ndarray, number_of: Callable[[int], int]
    ) -> np.ndarray:
        """Return the number of each wanted row, NODE for others; `number_of` numbers a new one."""
        numbers = np.full(len(keys), NODE, np.int32)
        unknown = _look_up(keys, wanted, (self._keys, self._values), numbers)
        for row in unknown.tolist():
            key = int(keys[row, 0]), int(keys[row, 1])
            number = self._numbers.get(key)
            if number is None:
                number = self._numbers[key] = number_of(row)
                self._keep(key, number)
            numbers[row] = number
        return numbers

    def _keep(self, key: tuple[int, int], number: int) -> None:
        if 2 * len(self._numbers) > len(self._values):
            size = 4 * len(self._values)
            self._keys, self._values = np.zeros((size, 2), np.uint64), np.full(size, NODE, np.int32)
            for each in self._numbers.items():
                self._place(*each)
        else:
            self._place(key, number)

    def _place(self, key: tuple[int, int], number: int) -> None:
        slot = key[0] % len(self._values)
        while self._values[slot] != NODE:
            slot = (slot + 1) % len(self._values)
        self._keys[slot], self._values[slot] = key, number


def _suffix_number(suffix: bytes, collector: Collector) -> int:
    try:
        found = parse_triple(f'<a:b> <a:b> ""{suffix.decode()} .').suffix
    except ValueError:
        return ODD
    return ODD if found is None else collector.suffix_number(found)


def _is_utf8(text: bytes) -> bool:
    if text.isascii():
        return True
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


@jit
def _look_up(keys: Any, wanted: Any, known: Any, numbers: Any) -> Any:
    """Put the number of each wanted row that has one, and return the rows that have none."""
    known_keys, values = known
    unknown = np.empty(len(keys), np.int64)
    num, mask = 0, np.uint64(len(values) - 1)
    for row in range(len(keys)):
        if not wanted[row]:
            continue
        slot = np.int64(keys[row, 0] & mask)
        while values[slot] != NODE and (
            known_keys[slot, 0] != keys[row, 0] or known_keys[slot, 1] != keys[row, 1]
        ):
            slot = (slot + 1) & np.int64(mask)
        numbers[row] = values[slot]
        if values[slot] == NODE:
            unknown[num] = row
            num += 1
    return unknown[:num]


@jit
def _fill(given: Any, made: Any, num: Any) -> None:
    """Sort lines into edges and labels, and add each term that was not seen just before."""
    text, table, hashes, numbers, is_label, _ = given
    edges, labels, _, label_text, _ = made
    for row in range(len(hashes)):
        if table[row, HEAD] == ODD:
            continue
        head, tail, suffix = hashes[row, 0], hashes[row, 4], numbers[row, 1]
        _add_term(given, made, num, row, 0)
        if suffix != NODE and is_label[numbers[row, 0]]:
            labels[num[1]].node = head
            labels[num[1]].suffix = suffix
            begin, end = table[row, TAIL], table[row, TAIL_END]
            labels[num[1]].size = end - begin
            label_text[num[3] : num[3] + end - begin] = text[begin:end]
            num[1] += 1
            num[3] += end - begin
            continue
        tail += np.uint64(suffix + 1) * _MIXERS[0]
        _add_term(given, made, num, row, 2)
        edges[num[0]].head = head
        edges[num[0]].relation = numbers[row, 0]
        edges[num[0]].tail = tail
        num[0] += 1


@jit
def _add_term(given: Any, made: Any, num: Any, row: int, part: int) -> None:
    text, table, hashes, numbers, _, recent = given
    terms, term_text = made[2], made[4]
    suffix = numbers[row, 1] if part == 2 else NODE
    first = hashes[row, 2 * part] + np.uint64(suffix + 1) * _MIXERS[0]
    second = hashes[row, 2 * part + 1] + np.uint64(suffix + 1) * _MIXERS[1]
    slot = np.int64(first & np.uint64(len(recent) - 1))
    if recent[slot, 0] == first and recent[slot, 1] == second:
        return
    recent[slot, 0], recent[slot, 1] = first, second
    begin, end = table[row, 1 + 2 * part], table[row, 2 + 2 * part]
    terms[num[2]].hash = first
    terms[num[2]].check = second
    terms[num[2]].suffix = suffix
    terms[num[2]].size = end - begin
    for i in range(end - begin):
        term_text[num[4] + i] = text[begin + i]
    num[2] += 1
    num[4] += end - begin
