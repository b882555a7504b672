"""The compiled scan of lines of N-Triples and TSV: where their parts are, and the parts' hashes.

A line with an escape, a blank node, a comment, or anything that is not plainly a triple is marked
as odd and left to `Lines.triple`, so that what is a triple and what is a bad line is settled in one
place.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit

from hopling.graphs.collect import NODE

ODD = -2

_FIRST, _SECOND = np.uint64(0x100000001B3), np.uint64(0x9DDFEA08EB382D69)
_MIX = np.uint64(0xFF51AFD7ED558CCD)

# columns of the table of a chunk's lines
BEGIN, HEAD, HEAD_END, KIND, KIND_END, TAIL, TAIL_END, SUFFIX, SUFFIX_END = range(9)
PARTS = ((HEAD, HEAD_END), (KIND, KIND_END), (TAIL, TAIL_END), (SUFFIX, SUFFIX_END))

# what a byte may be part of: 1 an IRI, 2 a scheme, 4 a language tag
CLASSES = np.zeros(256, np.uint8)
for _byte in range(0x21, 256):
    CLASSES[_byte] = 0 if chr(_byte) in '<>"{}|^`\\' else 1
for _byte in b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789":
    CLASSES[_byte] |= 6
for _byte in b"+.-":
    CLASSES[_byte] |= 2
CLASSES[ord("-")] |= 4

jit: Callable[[Any], Any] = njit(cache=True, nogil=True)


@jit
def hash_text(text: Any, begin: int, end: int, seeds: Any) -> Any:
    """Return two 64-bit hashes of a piece of a text."""
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


@jit
def hash_parts(text: Any, table: Any, seeds: Any, hashes: Any) -> None:
    """Put two hashes of each part of each line, eight numbers a line, in `hashes`."""
    for row in range(len(hashes)):
        if table[row, HEAD] == ODD:
            continue
        for part in range(4):
            begin, end = table[row, 1 + 2 * part], table[row, 2 + 2 * part]
            if begin >= 0:
                first, second = hash_text(text, begin, end, seeds)
                hashes[row, 2 * part], hashes[row, 2 * part + 1] = first, second


@jit
def _short(text: Any, begin: int, end: int, namespace: Any, classes: Any) -> int:
    """Return where an id begins: after the namespace, unless the rest reads as an IRI."""
    size = len(namespace)
    if size == 0 or end - begin <= size:
        return begin
    for i in range(size):
        if text[begin + i] != namespace[i]:
            return begin
    return begin if _has_scheme(text, begin + size, end, classes) else begin + size


@jit
def _has_scheme(text: Any, begin: int, end: int, classes: Any) -> bool:
    if begin >= end or not (classes[text[begin]] & 4) or text[begin] < 65:
        return False
    for i in range(begin + 1, end):
        if text[i] == 58:
            return True
        if not classes[text[i]] & 2:
            return False
    return False


@jit
def scan_tsv(text: Any, table: Any, namespace: Any, is_clean: bool, classes: Any) -> None:
    """Put the places of each line's parts in the table; a line that is not plain becomes odd."""
    row, position, size = 0, 0, len(text)
    while position < size:
        table[row, BEGIN] = position
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
        table[row, TAIL], table[row, TAIL_END], table[row, SUFFIX] = begin, end, NODE
        if tabs != 2 or is_odd or end == begin:
            table[row, HEAD] = ODD
        else:
            for column in (HEAD, TAIL):
                table[row, column] = _short(
                    text, table[row, column], table[row, column + 1], namespace, classes
                )
        row += 1
        table[row, BEGIN] = min(position, size)


@jit
def scan_triples(text: Any, table: Any, namespace: Any, is_clean: bool, classes: Any) -> None:
    """Put the places of each line's parts in the table; a line that is not plain becomes odd."""
    row, position, size = 0, 0, len(text)
    while position < size:
        table[row, BEGIN] = position
        end = _scan_triple(text, table, row, position, classes)
        if end >= 0 and (is_clean or not _has_high(text, position, end)):
            table[row, HEAD] = _short(
                text, table[row, HEAD], table[row, HEAD_END], namespace, classes
            )
            if table[row, SUFFIX] == NODE:
                table[row, TAIL] = _short(
                    text, table[row, TAIL], table[row, TAIL_END], namespace, classes
                )
        else:
            table[row, HEAD] = ODD
            end = position
            while end < size and text[end] != 10:
                end += 1
        position = end + 1
        row += 1
        table[row, BEGIN] = min(position, size)


@jit
def _has_high(text: Any, begin: int, end: int) -> bool:
    return end > begin and text[begin:end].max() >= 128


@jit
def _scan_triple(text: Any, table: Any, row: int, begin: int, classes: Any) -> int:
    """Return the end of a line that is plainly a triple, its parts' places put in the table.

    Return -1 for any other line.
    """
    size = len(text)
    for column in (HEAD, KIND):
        table[row, column] = begin + 1
        begin = _scan_iri(text, begin, classes)
        if begin < 0:
            return -1
        table[row, column + 1] = begin - 1
        while begin < size and (text[begin] == 32 or text[begin] == 9):
            begin += 1
    table[row, SUFFIX] = table[row, SUFFIX_END] = NODE
    if begin < size and text[begin] == 34:
        begin = _scan_literal(text, table, row, begin + 1, classes)
    else:
        table[row, TAIL] = begin + 1
        begin = _scan_iri(text, begin, classes)
        table[row, TAIL_END] = begin - 1
    if begin < 0:
        return -1
    while begin < size and (text[begin] == 32 or text[begin] == 9):
        begin += 1
    if begin >= size or text[begin] != 46:
        return -1
    begin += 1
    while begin < size and text[begin] == 13:
        begin += 1
    return begin if begin == size or text[begin] == 10 else -1


@jit
def _scan_iri(text: Any, begin: int, classes: Any) -> int:
    """Return the place after an IRI with a scheme, -1 where there is none."""
    size = len(text)
    if begin >= size or text[begin] != 60 or not _has_scheme(text, begin + 1, size, classes):
        return -1
    begin += 1
    while begin < size and classes[text[begin]] & 1:
        begin += 1
    return begin + 1 if begin < size and text[begin] == 62 else -1


@jit
def _scan_literal(text: Any, table: Any, row: int, begin: int, classes: Any) -> int:
    """Return the place after a literal without escapes, -1 where there is none."""
    size = len(text)
    table[row, TAIL] = begin
    while begin < size and text[begin] != 34:
        if text[begin] == 92 or text[begin] == 13 or text[begin] == 10:
            return -1
        begin += 1
    if begin >= size:
        return -1
    table[row, TAIL_END] = begin
    begin += 1
    table[row, SUFFIX] = begin
    if begin < size and text[begin] == 64:
        begin += 1
        while begin < size and classes[text[begin]] & 4:
            begin += 1
    elif begin + 1 < size and text[begin] == 94 and text[begin + 1] == 94:
        begin = _scan_iri(text, begin + 2, classes)
    table[row, SUFFIX_END] = begin
    return begin
