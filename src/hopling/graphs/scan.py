"""Reads plain lines of N-Triples and TSV by a compiled scan of their bytes; needs numba.

A line with an escape, a blank node, a comment, or anything that is not plainly a triple is left to
`Lines.triple`, so that what is a triple and what is a bad line is settled in one place.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numba import njit

from hopling.graphs.collect import EDGE, LABEL, MIXERS, NODE, TERM, Collector
from hopling.graphs.sources import Lines, kind_of
from hopling.graphs.terms import parse_triple

_FIRST, _SECOND = np.uint64(0x100000001B3), np.uint64(0x9DDFEA08EB382D69)
_MIX = np.uint64(0xFF51AFD7ED558CCD)
_MIXERS = np.uint64(MIXERS[0]), np.uint64(MIXERS[1])
_CACHE_BITS = 19
_ODD, _UNKNOWN = -2, -1

# columns of the table of a chunk's lines
_BEGIN, _HEAD, _HEAD_END, _KIND, _KIND_END, _TAIL, _TAIL_END, _SUFFIX, _SUFFIX_END = range(9)
_PARTS = ((_HEAD, _HEAD_END), (_KIND, _KIND_END), (_TAIL, _TAIL_END), (_SUFFIX, _SUFFIX_END))

# what a byte may be part of: 1 an IRI, 2 a scheme, 4 a language tag
_CLASSES = np.zeros(256, np.uint8)
for _byte in range(0x21, 256):
    _CLASSES[_byte] = 0 if chr(_byte) in '<>"{}|^`\\' else 1
for _byte in b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789":
    _CLASSES[_byte] |= 6
for _byte in b"+.-":
    _CLASSES[_byte] |= 2
_CLASSES[ord("-")] |= 4


class FastScan:
    """Scans files into a collector; `seed` changes the hashes."""

    def __init__(self, seed: int):
        self._seeds = np.array([2 * seed + 1, 2 * seed + 3], np.uint64)
        self._recent = np.zeros((1 << _CACHE_BITS, 2), np.uint64)
        self._relations: dict[tuple[int, int], int] = {}
        self._suffixes: dict[tuple[int, int], int] = {}

    def hashed(self, text: bytes) -> tuple[int, int]:
        """Return the two hashes of a text."""
        array = np.frombuffer(text, np.uint8)
        first, second = _hash(array, 0, len(array), self._seeds)
        return int(first), int(second)

    def read(self, lines: Lines, source: Path, scope: str, collector: Collector) -> None:
        """Collect the triples of a file; `scope` keeps its blank nodes apart."""
        scan = _scan_tsv if (lines.kind or kind_of(source)) == "tsv" else _scan_triples
        namespace = np.frombuffer(collector.namespace.iri.encode(), np.uint8)
        for chunk in lines.chunks(source):
            text = np.frombuffer(chunk.text, np.uint8)
            num_lines = chunk.text.count(b"\n") + (not chunk.text.endswith(b"\n"))
            table = np.zeros((num_lines + 1, 9), np.int32)
            is_clean = _is_utf8(chunk.text)
            scan(text, table, namespace, is_clean, _CLASSES)
            if chunk.number == 1:
                table[0, _HEAD] = _ODD  # it may begin with a byte order mark
            hashes = np.zeros((num_lines, 8), np.uint64)
            _hash_parts(text, table, self._seeds, hashes)
            numbers = self._numbers(chunk.text, table, hashes, collector)
            self._put(text, table, hashes, numbers, collector)
            for row in np.flatnonzero(table[:num_lines, _HEAD] == _ODD).tolist():
                line = chunk.text[table[row, _BEGIN] : table[row + 1, _BEGIN]]
                triple = lines.triple(source, chunk.number + row, line, scope)
                if triple is not None:
                    collector.add(triple)

    def _numbers(
        self, text: bytes, table: np.ndarray, hashes: np.ndarray, collector: Collector
    ) -> np.ndarray:
        """Return each line's numbers of relation and suffix; what has none becomes odd."""
        numbers = np.full((len(hashes), 2), NODE, np.int32)
        plain = np.flatnonzero(table[:-1, _HEAD] != _ODD)
        for rows, key in _groups(plain, hashes[plain, 2:4]):
            number = self._relations.get(key)
            if number is None:
                relation = _part(text, table[rows[0]], 1).decode()
                number = self._relations[key] = collector.relation_number(relation)
            numbers[rows, 0] = number
        is_label = np.array([relation.is_label for relation in collector.relations], bool)
        literals = plain[table[plain, _SUFFIX] != NODE]
        suffix_start = table[literals, _SUFFIX]
        typed = is_label[numbers[literals, 0]] & (table[literals, _SUFFIX_END] - suffix_start > 0)
        typed[typed] = [text[start] == ord("^") for start in suffix_start[typed].tolist()]
        table[literals[typed], _HEAD] = _ODD  # a label has a language or nothing
        literals = literals[~typed]
        for rows, key in _groups(literals, hashes[literals, 6:8]):
            number = self._suffixes.get(key)
            if number is None:
                number = _suffix_number(_part(text, table[rows[0]], 3), collector)
                self._suffixes[key] = number
            if number == _ODD:
                table[rows, _HEAD] = _ODD
            numbers[rows, 1] = number
        return numbers

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
    begin, end = _PARTS[part]
    return text[row[begin] : row[end]]


def _groups(rows: np.ndarray, keys: np.ndarray) -> Iterator[tuple[np.ndarray, tuple[int, int]]]:
    """Yield the rows of each pair of hashes."""
    if not len(rows):
        return
    order = np.lexsort((keys[:, 1], keys[:, 0]))
    keys = keys[order]
    begins = np.flatnonzero(np.append(True, (keys[1:] != keys[:-1]).any(axis=1)))
    for first, last in zip(begins.tolist(), [*begins[1:].tolist(), len(rows)], strict=True):
        yield rows[order[first:last]], (int(keys[first, 0]), int(keys[first, 1]))


def _suffix_number(suffix: bytes, collector: Collector) -> int:
    try:
        found = parse_triple(f'<a:b> <a:b> ""{suffix.decode()} .').suffix
    except ValueError:
        return _ODD
    return _ODD if found is None else collector.suffix_number(found)


def _is_utf8(text: bytes) -> bool:
    if text.isascii():
        return True
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


_jit: Callable[[Any], Any] = njit(cache=True, nogil=True)


@_jit
def _hash(text: Any, begin: int, end: int, seeds: Any) -> Any:
    first, second = seeds[0] * _MIX, seeds[1] * _MIX
    p, q = _FIRST + seeds[0] * np.uint64(512), _SECOND + seeds[1] * np.uint64(512)
    for i in range(begin, end):
        byte = np.uint64(text[i])
        first = (first ^ byte) * p
        second = second * q + byte + np.uint64(1)
    for _ in range(2):
        first = (first ^ (first >> np.uint64(33))) * _MIX
        second = (second ^ (second >> np.uint64(32))) * _MIX
    return first ^ (first >> np.uint64(29)), second ^ (second >> np.uint64(31))


@_jit
def _hash_parts(text: Any, table: Any, seeds: Any, hashes: Any) -> None:
    for row in range(len(hashes)):
        if table[row, _HEAD] == _ODD:
            continue
        for part in range(4):
            begin, end = table[row, 1 + 2 * part], table[row, 2 + 2 * part]
            if begin >= 0:
                first, second = _hash(text, begin, end, seeds)
                hashes[row, 2 * part], hashes[row, 2 * part + 1] = first, second


@_jit
def _fill(given: Any, made: Any, num: Any) -> None:
    """Sort lines into edges and labels, and add each term that was not seen just before."""
    text, table, hashes, numbers, is_label, _ = given
    edges, labels, _, label_text, _ = made
    for row in range(len(hashes)):
        if table[row, _HEAD] == _ODD:
            continue
        head, tail, suffix = hashes[row, 0], hashes[row, 4], numbers[row, 1]
        _add_term(given, made, num, row, 0)
        if suffix != NODE and is_label[numbers[row, 0]]:
            labels[num[1]].node = head
            labels[num[1]].suffix = suffix
            begin, end = table[row, _TAIL], table[row, _TAIL_END]
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


@_jit
def _add_term(given: Any, made: Any, num: Any, row: int, part: int) -> None:
    text, table, hashes, numbers, _, recent = given
    terms, term_text = made[2], made[4]
    suffix = numbers[row, 1] if part == 2 else NODE
    first = hashes[row, 2 * part] + np.uint64(suffix + 1) * _MIXERS[0]
    second = hashes[row, 2 * part + 1] + np.uint64(suffix + 1) * _MIXERS[1]
    slot = np.int64(first & np.uint64((1 << _CACHE_BITS) - 1))
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


@_jit
def _short(text: Any, begin: int, end: int, namespace: Any, classes: Any) -> int:
    """Return where an id begins: after the namespace, unless the rest reads as an IRI."""
    size = len(namespace)
    if size == 0 or end - begin <= size:
        return begin
    for i in range(size):
        if text[begin + i] != namespace[i]:
            return begin
    return begin if _has_scheme(text, begin + size, end, classes) else begin + size


@_jit
def _has_scheme(text: Any, begin: int, end: int, classes: Any) -> bool:
    if begin >= end or not (classes[text[begin]] & 4) or text[begin] < 65:
        return False
    for i in range(begin + 1, end):
        if text[i] == 58:
            return True
        if not classes[text[i]] & 2:
            return False
    return False


@_jit
def _scan_tsv(text: Any, table: Any, namespace: Any, is_clean: bool, classes: Any) -> None:
    row, position, size = 0, 0, len(text)
    while position < size:
        table[row, _BEGIN] = position
        tabs, is_odd, begin = 0, False, position
        while position < size and text[position] != 10:
            byte = text[position]
            if byte == 9 and tabs < 2:
                is_odd |= position == begin
                table[row, 1 + 2 * tabs], table[row, 2 + 2 * tabs] = begin, position
                begin = position + 1
                tabs += 1
            elif byte == 9 or (byte >= 128 and not is_clean):
                is_odd = True
            position += 1
        end = position
        while end > begin and text[end - 1] == 13:
            end -= 1
        position += 1
        table[row, _TAIL], table[row, _TAIL_END], table[row, _SUFFIX] = begin, end, NODE
        if tabs != 2 or is_odd or end == begin:
            table[row, _HEAD] = _ODD
        else:
            for column in (_HEAD, _TAIL):
                table[row, column] = _short(
                    text, table[row, column], table[row, column + 1], namespace, classes
                )
        row += 1
        table[row, _BEGIN] = min(position, size)


@_jit
def _scan_triples(text: Any, table: Any, namespace: Any, is_clean: bool, classes: Any) -> None:
    row, position, size = 0, 0, len(text)
    while position < size:
        end = position
        while end < size and text[end] != 10:
            end += 1
        table[row, _BEGIN] = position
        if not _scan_triple(text, table[row], position, end, classes) or (
            not is_clean and _has_high(text, position, end)
        ):
            table[row, _HEAD] = _ODD
        else:
            table[row, _HEAD] = _short(
                text, table[row, _HEAD], table[row, _HEAD_END], namespace, classes
            )
            if table[row, _SUFFIX] == NODE:
                table[row, _TAIL] = _short(
                    text, table[row, _TAIL], table[row, _TAIL_END], namespace, classes
                )
        position = end + 1
        row += 1
        table[row, _BEGIN] = min(position, size)


@_jit
def _has_high(text: Any, begin: int, end: int) -> bool:
    return end > begin and text[begin:end].max() >= 128


@_jit
def _scan_triple(text: Any, parts: Any, begin: int, end: int, classes: Any) -> bool:
    """Return whether a line is plainly a triple, its parts' places written to `parts`."""
    while end > begin and text[end - 1] == 13:
        end -= 1
    for column in (_HEAD, _KIND):
        parts[column] = begin + 1
        begin = _scan_iri(text, begin, end, classes)
        if begin < 0:
            return False
        parts[column + 1] = begin - 1
        while begin < end and (text[begin] == 32 or text[begin] == 9):
            begin += 1
    parts[_SUFFIX] = parts[_SUFFIX_END] = NODE
    if begin < end and text[begin] == 34:
        begin = _scan_literal(text, parts, begin + 1, end, classes)
    else:
        parts[_TAIL] = begin + 1
        begin = _scan_iri(text, begin, end, classes)
        parts[_TAIL_END] = begin - 1
    if begin < 0:
        return False
    while begin < end and (text[begin] == 32 or text[begin] == 9):
        begin += 1
    return begin == end - 1 and text[begin] == 46


@_jit
def _scan_iri(text: Any, begin: int, end: int, classes: Any) -> int:
    """Return the place after an IRI with a scheme, -1 where there is none."""
    if begin >= end or text[begin] != 60 or not _has_scheme(text, begin + 1, end, classes):
        return -1
    begin += 1
    while begin < end and classes[text[begin]] & 1:
        begin += 1
    return begin + 1 if begin < end and text[begin] == 62 else -1


@_jit
def _scan_literal(text: Any, parts: Any, begin: int, end: int, classes: Any) -> int:
    """Return the place after a literal without escapes, -1 where there is none."""
    parts[_TAIL] = begin
    while begin < end and text[begin] != 34:
        if text[begin] == 92 or text[begin] == 13:
            return -1
        begin += 1
    if begin >= end:
        return -1
    parts[_TAIL_END] = begin
    begin += 1
    parts[_SUFFIX] = begin
    if begin < end and text[begin] == 64:
        begin += 1
        while begin < end and classes[text[begin]] & 4:
            begin += 1
    elif begin + 1 < end and text[begin] == 94 and text[begin + 1] == 94:
        begin = _scan_iri(text, begin + 2, end, classes)
    parts[_SUFFIX_END] = begin
    return begin
