"""Writes the rows of a `Search` table straight from the arrays of a hop index, compiled by numba.

Arrays come as addresses, since numba unpacks twenty array objects more slowly than it writes a
table. Loops touch memory in stages: reads that do not wait for each other overlap, which on a large
graph is most of the time saved. What cannot be written exactly as `OneHopSearch` would write it
makes `write_table` return False, and the caller writes it in Python.
"""

from typing import Any, cast

import numpy as np
from numba import carray, njit, types
from numba.core import cgutils
from numba.extending import intrinsic

from hopling.graphs.kernel_cells import bar, cell, copied, number, short, short_cell

LITERAL = 1
MAX_NAMES = 128
MAX_ROWS = 1024
MAX_NAME_BYTES = 1024
OUTPUT_BYTES = 1 << 18

# what the table of addresses of an index in one direction holds; the last is a number
INDEX = (
    "term_text", "term_start", "term_kind", "term_bucket_start", "term_bucket_place",
    "node_label", "label_text", "label_start", "label_language", "node", "relation", "run", "value",
    "cell_text", "cell_start", "property_text", "property_start", "rank", "crc", "mask",
)  # fmt: skip
(_TERM_TEXT, _TERM_START, _TERM_KIND, _BUCKET_START, _BUCKET_PLACE, _NODE_LABEL, _LABEL_TEXT,
 _LABEL_START, _LABEL_LANGUAGE, _NODE, _RELATION, _RUN, _VALUE, _CELL_TEXT, _CELL_START,
 _PROPERTY_TEXT, _PROPERTY_START, _RANK, _CRC, _MASK) = range(20)  # fmt: skip
# what the table of addresses of one call's own arrays holds; the last is a number
SLOT = (
    "request", "text", "nodes", "names", "result", "wanted", "counts", "marks", "places", "rows",
    "sink",
)  # fmt: skip
(_REQUEST, _TEXT, _NODES, _NAMES, _RESULT, _WANTED, _COUNTS, _MARKS, _PLACES, _ROWS,
 _SINK) = range(11)  # fmt: skip
# what the array "result" holds
_TOTAL, _SHOWN, _TEXT_SIZE, _NODES_SIZE, _NAMES_SIZE, _NUM_PROPERTIES, _NUM_NAMES = range(7)
# rows of the array "places", MAX_NAMES wide
_BEGIN, _END, _FIRST, _LAST, _PLACE = range(5)
# rows of the array "rows", MAX_ROWS wide
_OWNER, _OF, _TO, _FROM, _UNTIL, _LABEL, _LABEL_FROM, _LABEL_UNTIL = range(8)

_MARGIN = 4096  # a cell of 400 characters of 4 bytes and its bars
_FAR = 1 << 40  # length of arrays that are known by their address only


def _inttoptr(typing_context: Any, address: Any) -> Any:
    def written(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.inttoptr(arguments[0], cgutils.voidptr_t)

    return types.voidptr(address), written


_pointer = cast(Any, intrinsic(_inttoptr))


@njit(cache=True)
def _int64(addresses: Any, place: int) -> Any:
    return carray(_pointer(addresses[place]), (_FAR,), np.int64)


@njit(cache=True)
def _int32(addresses: Any, place: int) -> Any:
    return carray(_pointer(addresses[place]), (_FAR,), np.int32)


@njit(cache=True)
def _uint8(addresses: Any, place: int) -> Any:
    return carray(_pointer(addresses[place]), (_FAR,), np.uint8)


@njit(cache=True)
def _found(index: Any, slot: Any, num_bytes: int) -> int:
    """Return how many names were asked for, 0 when one is unknown; places are in the slot."""
    request, crc_table = _uint8(slot, _REQUEST), _int64(index, _CRC)
    names = carray(_pointer(slot[_PLACES]), (5, MAX_NAMES), np.int64)
    bucket_start, bucket_place = _int64(index, _BUCKET_START), _int32(index, _BUCKET_PLACE)
    text, start = _uint8(index, _TERM_TEXT), _int64(index, _TERM_START)
    count, begin, code = 0, 0, 0xFFFFFFFF
    for i in range(num_bytes + 1):
        if i < num_bytes and request[i] != 0:
            code = crc_table[(code ^ request[i]) & 0xFF] ^ (code >> 8)
            continue
        if count == MAX_NAMES or i - begin > MAX_NAME_BYTES:
            return 0
        names[_BEGIN, count], names[_END, count] = begin, i
        names[_PLACE, count] = (code ^ 0xFFFFFFFF) & index[_MASK]
        count, begin, code = count + 1, i + 1, 0xFFFFFFFF
    for k in range(count):
        bucket = names[_PLACE, k]
        names[_FIRST, k], names[_LAST, k] = bucket_start[bucket], bucket_start[bucket + 1]
    for k in range(count):
        if names[_FIRST, k] == names[_LAST, k]:
            return 0
        names[_PLACE, k] = bucket_place[names[_FIRST, k]]
    touched = 0
    for k in range(count):
        touched += text[start[names[_PLACE, k]]]
    slot[_SINK] = touched
    for k in range(count):
        size = names[_END, k] - names[_BEGIN, k]
        place = -1
        for at in range(names[_FIRST, k], names[_LAST, k]):
            other = start[bucket_place[at]]
            if start[bucket_place[at] + 1] - other != size:
                continue
            i = 0
            while i < size and text[other + i] == request[names[_BEGIN, k] + i]:
                i += 1
            if i == size:
                place = bucket_place[at]
                break
        if place < 0:
            return 0
        names[_PLACE, k] = place
    return count


@njit(cache=True)
def _label_of(index: Any, first: int, last: int) -> int:
    """Return the row of the label to show, -1 where there is none."""
    if last - first < 2:
        return first if last > first else -1
    ranks, languages = _int64(index, _RANK), _int32(index, _LABEL_LANGUAGE)
    best = first
    for row in range(first + 1, last):
        # rows are sorted by language and text: of equal rank, the first is right
        if ranks[languages[row]] < ranks[languages[best]]:
            best = row
    return best


@njit(cache=True)
def _totals(index: Any, slot: Any, count: int, num_wanted: int) -> int:
    """Return the number of edges asked for, -1 when a wanted relation is nowhere."""
    names = carray(_pointer(slot[_PLACES]), (5, MAX_NAMES), np.int64)
    starts, runs, relations = _int64(index, _NODE), _int64(index, _RUN), _int32(index, _RELATION)
    for k in range(count):
        place = names[_PLACE, k]
        names[_FIRST, k], names[_LAST, k] = starts[place], starts[place + 1]
    total = 0
    if num_wanted == 0:
        for k in range(count):
            total += runs[names[_LAST, k]] - runs[names[_FIRST, k]]
        return total
    wanted, counts = _int64(slot, _WANTED), _int64(slot, _COUNTS)
    for w in range(num_wanted):
        counts[wanted[w]] = -1
    num_seen = 0
    for k in range(count):
        for run in range(names[_FIRST, k], names[_LAST, k]):
            seen = counts[relations[run]]
            if seen != 0:
                total += runs[run + 1] - runs[run]
                num_seen += seen < 0
                counts[relations[run]] = 1
    if num_seen < num_wanted:
        total = -1
    return total


@njit(cache=True)
def _fill(index: Any, slot: Any, count: int, num_wanted: int, shown: int) -> None:
    """Put the rows to show into the slot: whose, of which relation, to which value."""
    names = carray(_pointer(slot[_PLACES]), (5, MAX_NAMES), np.int64)
    rows = carray(_pointer(slot[_ROWS]), (8, MAX_ROWS), np.int64)
    runs, relations = _int64(index, _RUN), _int32(index, _RELATION)
    values, counts = _int32(index, _VALUE), _int64(slot, _COUNTS)
    row = 0
    for k in range(count):
        for run in range(names[_FIRST, k], names[_LAST, k]):
            if num_wanted > 0 and counts[relations[run]] == 0:
                continue
            for at in range(runs[run], min(runs[run + 1], runs[run] + shown - row)):
                rows[_OWNER, row], rows[_OF, row], rows[_TO, row] = k, relations[run], values[at]
                row += 1
        if row == shown:
            return


@njit(cache=True)
def _touch(index: Any, slot: Any, shown: int) -> int:
    """Read where texts and labels of the rows stand, stage by stage."""
    rows = carray(_pointer(slot[_ROWS]), (8, MAX_ROWS), np.int64)
    text, start = _uint8(index, _TERM_TEXT), _int64(index, _TERM_START)
    kind, node_label = _uint8(index, _TERM_KIND), _int64(index, _NODE_LABEL)
    label_text, label_start = _uint8(index, _LABEL_TEXT), _int64(index, _LABEL_START)
    for row in range(shown):
        value = rows[_TO, row]
        rows[_FROM, row], rows[_UNTIL, row] = start[value], start[value + 1]
        rows[_LABEL_FROM, row] = node_label[value]
        rows[_LABEL_UNTIL, row] = node_label[value + 1]
        rows[_TO, row] = kind[value]
    touched = 0
    for row in range(shown):
        touched += text[rows[_FROM, row]]
        label = _label_of(index, rows[_LABEL_FROM, row], rows[_LABEL_UNTIL, row])
        if rows[_TO, row] == LITERAL:
            label = -1
        rows[_LABEL, row] = label
        if label >= 0:
            rows[_LABEL_FROM, row] = label_start[label]
            rows[_LABEL_UNTIL, row] = label_start[label + 1]
    for row in range(shown):
        if rows[_LABEL, row] >= 0:
            touched += label_text[rows[_LABEL_FROM, row]]
    return touched


@njit(cache=True)
def _owner(index: Any, slot: Any, owner: int, at: int) -> int:
    """Write the two cells of the entity asked about; return where the output ends."""
    names = carray(_pointer(slot[_PLACES]), (5, MAX_NAMES), np.int64)
    out, request, node_label = (
        _uint8(slot, _TEXT),
        _uint8(slot, _REQUEST),
        _int64(index, _NODE_LABEL),
    )
    at = cell(request, (names[_BEGIN, owner], names[_END, owner]), out, at)
    at = bar(out, at)
    place = names[_PLACE, owner]
    label = _label_of(index, node_label[place], node_label[place + 1])
    if label < 0:
        out[at] = 0x2D
        return bar(out, at + 1)
    label_start = _int64(index, _LABEL_START)
    bounds = label_start[label], label_start[label + 1]
    return bar(out, short_cell(_uint8(index, _LABEL_TEXT), bounds, out, at))


@njit(cache=True)
def _write_value(index: Any, slot: Any, row: int, at: int) -> int:
    """Write the last two cells of a row, and its value and name; return where the cells end."""
    rows = carray(_pointer(slot[_ROWS]), (8, MAX_ROWS), np.int64)
    out, nodes, names = _uint8(slot, _TEXT), _uint8(slot, _NODES), _uint8(slot, _NAMES)
    text, label_text = _uint8(index, _TERM_TEXT), _uint8(index, _LABEL_TEXT)
    result, named = _int64(slot, _RESULT), 0
    value = rows[_FROM, row], rows[_UNTIL, row]
    label = rows[_LABEL_FROM, row], rows[_LABEL_UNTIL, row]
    held = copied(text, value, nodes, result[_NODES_SIZE])
    if rows[_LABEL, row] >= 0:
        named = short(label_text, label, names, result[_NAMES_SIZE])
        at = bar(out, cell(text, value, out, at))
        at = short_cell(label_text, label, out, at)
    else:
        named = short(text, value, names, result[_NAMES_SIZE])
        if rows[_TO, row] == LITERAL:
            at = bar(out, short_cell(text, value, out, at))
        else:
            named = copied(text, value, names, result[_NAMES_SIZE])
            at = bar(out, cell(text, value, out, at))
        out[at] = 0x2D
        at += 1
    nodes[held] = names[named] = 0
    result[_NODES_SIZE], result[_NAMES_SIZE] = held + 1, named + 1
    return at


@njit(cache=True)
def _write_rows(index: Any, slot: Any, count: int, shown: int) -> bool:
    """Write the rows; return whether all could be written."""
    rows = carray(_pointer(slot[_ROWS]), (8, MAX_ROWS), np.int64)
    out, result, text = _uint8(slot, _TEXT), _int64(slot, _RESULT), _uint8(index, _TERM_TEXT)
    cell_text, cell_start = _uint8(index, _CELL_TEXT), _int64(index, _CELL_START)
    at = result[_NODES_SIZE] = result[_NAMES_SIZE] = 0
    for row in range(shown):
        size = rows[_UNTIL, row] - rows[_FROM, row]
        # a literal in quotes would be read once more
        is_quoted = rows[_TO, row] == LITERAL and size > 0 and text[rows[_FROM, row]] == 0x22
        relation = rows[_OF, row]
        needed = 2 * size + cell_start[relation + 1] - cell_start[relation] + 4 * _MARGIN
        longest = max(at, result[_NODES_SIZE], result[_NAMES_SIZE])
        if is_quoted or longest + needed > OUTPUT_BYTES:
            return False
        out[at], out[at + 1] = 0x7C, 0x20
        at += 2
        if count > 1:
            at = _owner(index, slot, rows[_OWNER, row], at)
        at = copied(cell_text, (cell_start[relation], cell_start[relation + 1]), out, at)
        at = bar(out, at)
        at = _write_value(index, slot, row, at)
        out[at], out[at + 1], out[at + 2] = 0x20, 0x7C, 0x0A
        at += 3
    result[_TEXT_SIZE] = at
    return True


@njit(cache=True)
def _write_property(index: Any, slot: Any, relation: int, count: int, at: int) -> int:
    out, text = _uint8(slot, _TEXT), _uint8(index, _PROPERTY_TEXT)
    start = _int64(index, _PROPERTY_START)
    out[at], out[at + 1] = 0x7C, 0x20
    at = copied(text, (start[relation], start[relation + 1]), out, at + 2)
    at = number(count, out, bar(out, at))
    out[at], out[at + 1], out[at + 2] = 0x20, 0x7C, 0x0A
    return at + 3


@njit(cache=True)
def _summarize_one(index: Any, slot: Any, max_rows: int) -> int:
    """Write the properties of the one entity asked about; return where the output ends."""
    names = carray(_pointer(slot[_PLACES]), (5, MAX_NAMES), np.int64)
    runs, relations, result = _int64(index, _RUN), _int32(index, _RELATION), _int64(slot, _RESULT)
    first, last = names[_FIRST, 0], names[_LAST, 0]
    result[_NUM_PROPERTIES], result[_SHOWN] = last - first, min(last - first, max_rows)
    at = 0
    for run in range(first, first + result[_SHOWN]):
        at = _write_property(index, slot, relations[run], runs[run + 1] - runs[run], at)
    return at


@njit(cache=True)
def _summarize(index: Any, slot: Any, num_names: int, max_rows: int) -> int:
    """Write the properties of all entities together; return where the output ends."""
    names = carray(_pointer(slot[_PLACES]), (5, MAX_NAMES), np.int64)
    runs, relations, result = _int64(index, _RUN), _int32(index, _RELATION), _int64(slot, _RESULT)
    counts, marks = _int64(slot, _COUNTS), _int64(slot, _MARKS)
    last_word = 0
    for k in range(num_names):
        for run in range(names[_FIRST, k], names[_LAST, k]):
            relation = relations[run]
            counts[relation] += runs[run + 1] - runs[run]
            marks[relation >> 6] = 1
            last_word = max(last_word, relation >> 6)
    at = num_properties = 0
    for word in range(last_word + 1):
        if marks[word] == 0:
            continue
        marks[word] = 0
        for relation in range(word << 6, (word + 1) << 6):
            if counts[relation] > 0:
                if num_properties < max_rows:
                    at = _write_property(index, slot, relation, counts[relation], at)
                counts[relation] = 0
                num_properties += 1
    result[_NUM_PROPERTIES], result[_SHOWN] = num_properties, min(num_properties, max_rows)
    return at


@njit(cache=True)
def write_table(
    index_address: int, slot_address: int, num_bytes: int, num_wanted: int, limits: int
) -> bool:
    """Write the table asked for into the slot, and return whether that could be done.

    `limits` are how many rows may be shown at once (the upper half) and on a page.
    """
    index = carray(_pointer(index_address), (len(INDEX),), np.int64)
    slot = carray(_pointer(slot_address), (len(SLOT),), np.int64)
    result, max_rows = _int64(slot, _RESULT), limits & 0xFFFFFFFF
    num_names = _found(index, slot, num_bytes)
    result[_NUM_NAMES] = num_names
    if num_names == 0:
        return False
    total, done = _totals(index, slot, num_names, num_wanted), False
    result[_TOTAL] = total
    if total > 0 and (num_wanted > 0 or total <= limits >> 32):
        shown = min(total, max_rows)
        result[_SHOWN], result[_NUM_PROPERTIES] = shown, 0
        if shown <= MAX_ROWS:
            _fill(index, slot, num_names, num_wanted, shown)
            slot[_SINK] = _touch(index, slot, shown)
            done = _write_rows(index, slot, num_names, shown)
    elif total > 0:
        if num_names > 1:
            result[_TEXT_SIZE] = _summarize(index, slot, num_names, max_rows)
        else:
            result[_TEXT_SIZE] = _summarize_one(index, slot, max_rows)
        done = True
    counts, wanted = _int64(slot, _COUNTS), _int64(slot, _WANTED)
    for w in range(num_wanted):
        counts[wanted[w]] = 0
    return done
