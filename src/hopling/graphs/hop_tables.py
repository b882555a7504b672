"""Asks the compiled kernel for the tables of a hop index; needs numba."""

from collections.abc import Mapping, Sequence
from zlib import crc32

import numpy as np

from hopling.graphs.base import Direction, SearchTable, TableForm
from hopling.graphs.kernel import (
    INDEX,
    MAX_NAMES,
    MAX_ROWS,
    OUTPUT_BYTES,
    SLOT,
    write_table,
)

_REQUEST_BYTES = 1 << 15


class HopTables:
    """The tables of one index in one form, written by the kernel.

    `arrays` are the index's, `ranks` the place of each language in the label chain, `relations`
    the ids of relations with their labels.
    """

    def __init__(
        self,
        arrays: Mapping[str, memoryview],
        ranks: Sequence[int],
        relations: Sequence[tuple[str, str | None]],
        form: TableForm,
    ):
        self.form = form
        self._numbers = {relation: i for i, (relation, _) in enumerate(relations)}
        cells = [form.property_cells(relation, label) for relation, label in relations]
        kept = {name: np.asarray(view) for name, view in arrays.items()}
        kept |= {"rank": np.array([*ranks, 0], np.int64)}
        kept |= {"crc": _crc_table()}
        kept |= _texts("cell", [row for row, _ in cells])
        kept |= _texts("property", [row for _, row in cells])
        self._kept = kept  # the addresses below live as long as these
        self._limits = form.max_probe_rows << 32 | form.max_rows
        mask = len(arrays["term_bucket_start"]) - 2
        self._index: dict[Direction, int] = {}
        for direction in ("outgoing", "incoming"):
            sides = {
                side: kept[f"{direction}_{side}"] for side in ("node", "relation", "run", "value")
            }
            addresses = _addresses({**kept, **sides}, INDEX, mask)
            self._kept[f"{direction}_addresses"] = addresses
            self._index[direction] = addresses.ctypes.data
        self._idle = [_Slot(len(relations))]

    def table(
        self, names: Sequence[str], direction: Direction, properties: Sequence[str]
    ) -> SearchTable | None:
        """Return the lines of a table, None for one that the kernel does not write."""
        try:
            request = "\0".join(names).encode()
        except UnicodeEncodeError:  # half a character is in no id
            return None
        size = len(request)
        if size > _REQUEST_BYTES or len(properties) > MAX_NAMES:
            return None
        try:
            slot = self._idle.pop()
        except IndexError:  # in use by other threads
            slot = _Slot(len(self._numbers))
        for i, name in enumerate(properties):
            slot.wanted[i] = self._numbers.get(name, -1)
        slot.request[:size] = request
        table = None
        is_known = not properties or -1 not in slot.wanted[: len(properties)]
        if is_known and write_table(
            self._index[direction], slot.address, size, len(properties), self._limits
        ):
            table = slot.table(len(names))
        self._idle.append(slot)
        return table


class _Slot:
    """What one call works on."""

    def __init__(self, num_relations: int):
        self.request = bytearray(_REQUEST_BYTES)
        self._text, self._nodes, self._names = (bytearray(OUTPUT_BYTES) for _ in range(3))
        result, wanted = np.zeros(7, np.int64), np.zeros(MAX_NAMES, np.int64)
        self._result, self.wanted = result.data, wanted.data
        arrays: dict[str, np.ndarray] = {
            "request": np.frombuffer(self.request, np.uint8),
            "text": np.frombuffer(self._text, np.uint8),
            "nodes": np.frombuffer(self._nodes, np.uint8),
            "names": np.frombuffer(self._names, np.uint8),
            "result": result,
            "wanted": wanted,
            "counts": np.zeros(num_relations + 64, np.int64),
            "marks": np.zeros(num_relations // 64 + 1, np.int64),
            "places": np.zeros((5, MAX_NAMES), np.int64),
            "rows": np.zeros((8, MAX_ROWS), np.int64),
        }
        self._kept = arrays, _addresses(arrays, SLOT, 0)
        self.address = self._kept[1].ctypes.data

    def table(self, num_names: int) -> SearchTable | None:
        """Return what the kernel wrote, None where a NUL in a text makes it ambiguous."""
        total, shown, text_size, nodes_size, names_size, num_properties, found = (
            self._result.tolist()
        )
        if found != num_names:
            return None
        lines = self._text[: text_size - 1].decode()
        if num_properties:
            return SearchTable(lines, total, shown, num_properties)
        nodes = tuple(self._nodes[: nodes_size - 1].decode().split("\0"))
        names = tuple(self._names[: names_size - 1].decode().split("\0"))
        if not len(nodes) == len(names) == shown:
            return None
        if len(set(nodes)) < shown:
            named = dict(zip(nodes, names, strict=True))
            nodes, names = tuple(named), tuple(named.values())
        return SearchTable(lines, total, shown, 0, nodes, names)


def _texts(name: str, texts: Sequence[str]) -> dict[str, np.ndarray]:
    encoded = [text.encode() for text in texts]
    sizes = np.array([0, *map(len, encoded)], np.int64)
    text = np.frombuffer(b"".join(encoded) + b"\0", np.uint8)
    return {f"{name}_text": text, f"{name}_start": np.cumsum(sizes)}


def _crc_table() -> np.ndarray:
    """Return the CRC-32 of each byte, without the flips before and after."""
    return np.array([crc32(bytes([i ^ 0xFF])) ^ 0xFF000000 for i in range(256)], np.int64)


def _addresses(arrays: Mapping[str, "np.ndarray"], names: Sequence[str], number: int) -> np.ndarray:
    """Return the arrays' addresses in the order of the names, then the number."""
    return np.array([*(arrays[name].ctypes.data for name in names[:-1]), number], np.int64)
