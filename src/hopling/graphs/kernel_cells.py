"""Writes cells of a Markdown table as bytes, exactly as `hopling.tools.tables` writes them as text.

Compiled by numba; what calls these must be compiled again when they change.
"""

from typing import Any

from numba import njit

WIDTH = 400  # of a cell, in characters, as `OneHopSearch` has it


@njit(cache=True)
def white(text: Any, i: int, end: int) -> int:
    """Return how many bytes of white space, as `str.split` has it, stand at a place: 0 to 3."""
    first = text[i]
    if first < 0x80:
        return 1 if first == 0x20 or 9 <= first <= 13 or 0x1C <= first <= 0x1F else 0
    if first == 0xC2 and i + 1 < end and text[i + 1] in (0x85, 0xA0):
        return 2
    if (first != 0xE1 and first != 0xE2 and first != 0xE3) or i + 2 >= end:
        return 0
    code = text[i + 1] << 8 | text[i + 2]
    if first == 0xE1:
        return 3 if code == 0x9A80 else 0
    if first == 0xE3:
        return 3 if code == 0x8080 else 0
    is_white = 0x8080 <= code <= 0x808A or code in (0x80A8, 0x80A9, 0x80AF, 0x819F)
    return 3 if is_white else 0


@njit(cache=True)
def cell(text: Any, bounds: tuple[int, int], out: Any, at: int) -> int:
    """Write one cell: white space joined, bars escaped; return where the output ends."""
    i, end = bounds
    first, is_gap = at, False
    while i < end:
        byte = text[i]
        if byte <= 0x20 or byte >= 0xC2:
            width = white(text, i, end)
            if width > 0:
                is_gap = True
                i += width
                continue
        if is_gap and at > first:
            out[at] = 0x20
            at += 1
        is_gap = False
        if byte == 0x7C:
            out[at] = 0x5C
            at += 1
        out[at] = byte
        at += 1
        i += 1
    return at


@njit(cache=True)
def shortened(text: Any, begin: int, end: int) -> tuple[int, bool]:
    """Return where a text of at most WIDTH characters ends, and whether "..." is due."""
    if end - begin <= WIDTH:
        return end, False
    characters, cut = 0, end
    for i in range(begin, end):
        if text[i] & 0xC0 != 0x80:
            if characters == WIDTH - 3:
                cut = i
            if characters == WIDTH:
                return cut, True
            characters += 1
    return end, False


@njit(cache=True)
def short_cell(text: Any, bounds: tuple[int, int], out: Any, at: int) -> int:
    """Write a cell of at most WIDTH characters; return where the output ends."""
    end, is_cut = shortened(text, bounds[0], bounds[1])
    if not is_cut:
        return cell(text, (bounds[0], end), out, at)
    # a blank before the dots would be kept, and one at the end of a cell is not
    stop = cell(text, (bounds[0], end), out, at)
    if stop > at and white_before(text, bounds[0], end):
        out[stop] = 0x20
        stop += 1
    return dots(out, stop)


@njit(cache=True)
def white_before(text: Any, begin: int, end: int) -> bool:
    """Return whether white space stands just before a place."""
    for width in range(1, 4):
        if end - width >= begin and white(text, end - width, end) == width:
            return True
    return False


@njit(cache=True)
def dots(out: Any, at: int) -> int:
    """Write "..."; return where the output ends."""
    for i in range(3):
        out[at + i] = 0x2E
    return at + 3


@njit(cache=True)
def copied(text: Any, bounds: tuple[int, int], out: Any, at: int) -> int:
    """Write a text as it is; return where the output ends."""
    for i in range(bounds[0], bounds[1]):
        out[at] = text[i]
        at += 1
    return at


@njit(cache=True)
def short(text: Any, bounds: tuple[int, int], out: Any, at: int) -> int:
    """Write at most WIDTH characters of a text as they are; return where the output ends."""
    end, is_cut = shortened(text, bounds[0], bounds[1])
    at = copied(text, (bounds[0], end), out, at)
    return dots(out, at) if is_cut else at


@njit(cache=True)
def bar(out: Any, at: int) -> int:
    """Write what stands between two cells; return where the output ends."""
    out[at], out[at + 1], out[at + 2] = 0x20, 0x7C, 0x20
    return at + 3


@njit(cache=True)
def number(value: int, out: Any, at: int) -> int:
    """Write a whole number above 0; return where the output ends."""
    size, rest = 0, value
    while rest > 0:
        size, rest = size + 1, rest // 10
    for i in range(size):
        out[at + size - 1 - i] = 0x30 + value % 10
        value //= 10
    return at + size
