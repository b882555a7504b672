"""Writes the edges of a hop index in both directions, and what can be counted of them."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from hopling.graphs.collect import Collector
from hopling.graphs.dictionary import LITERAL, Places, Starts
from hopling.graphs.layout import IndexWriter
from hopling.graphs.spill import NumberRuns, Partitions

_HALF = np.dtype([("head", "i4"), ("relation", "i4"), ("tail", "u8")])
_ROWS = 1 << 19
_EXACT_BITS = 53  # of a whole number in a float64


@dataclass(frozen=True)
class EdgeCounts:
    """How many edges are distinct, and the loops of each node that has some."""

    num: int
    loops: Counter[int]


@dataclass(frozen=True)
class _Packing:
    """Writes an edge as one number that sorts like (node, relation, value)."""

    num_relations: int
    num_terms: int

    @property
    def is_wide(self) -> bool:
        """Return whether 64 bits are too few, and a complex number stands for the edge."""
        return 2 * self._term_bits + self._relation_bits > 64

    @property
    def dtype(self) -> np.dtype:
        return np.dtype("c16" if self.is_wide else "u8")

    @property
    def _term_bits(self) -> int:
        return self.num_terms.bit_length()

    @property
    def _relation_bits(self) -> int:
        return self.num_relations.bit_length()

    def pack(self, nodes: np.ndarray, relations: np.ndarray, values: np.ndarray) -> np.ndarray:
        high = nodes.astype(np.uint64) << np.uint64(self._relation_bits)
        high |= relations.astype(np.uint64)
        if not self.is_wide:
            return high << np.uint64(self._term_bits) | values.astype(np.uint64)
        assert self._term_bits + self._relation_bits <= _EXACT_BITS
        packed = np.empty(len(nodes), np.complex128)
        packed.real, packed.imag = high, values
        return packed

    def unpack(self, packed: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        if self.is_wide:
            high, values = packed.real.astype(np.uint64), packed.imag
        else:
            high = packed >> np.uint64(self._term_bits)
            values = packed & np.uint64((1 << self._term_bits) - 1)
        nodes = high >> np.uint64(self._relation_bits)
        relations = high & np.uint64((1 << self._relation_bits) - 1)
        return nodes.astype(np.int64), relations.astype(np.int32), values.astype(np.int32)


def write_edges(
    collector: Collector, places: Places, writer: IndexWriter, *, max_bytes: int
) -> EdgeCounts:
    """Write the arrays `outgoing_*` and `incoming_*`; literals have no incoming edges."""
    packing = _Packing(max(1, len(places.relations)), places.num)
    max_rows = max_bytes // (2 * packing.dtype.itemsize)
    outgoing, incoming = (
        NumberRuns(writer.work, name, packing.dtype, max_rows=max_rows)
        for name in ("outgoing", "incoming")
    )
    is_literal = writer.read("term_kind")
    for heads, relations, tails in _placed(collector, places, writer):
        outgoing.append(packing.pack(heads, relations, tails))
        is_node = is_literal[tails] != LITERAL
        incoming.append(packing.pack(tails[is_node], relations[is_node], heads[is_node]))
    counts = _write_runs("outgoing", packing, outgoing.merged(), writer)
    _write_runs("incoming", packing, incoming.merged(), writer)
    return counts


def _placed(
    collector: Collector, places: Places, writer: IndexWriter
) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Yield edges with places for hashes: heads first, then split by the hash of the tail."""
    num = collector.edges.num
    halves = Partitions(writer.work, "halves", _HALF, bits=num.bit_length() - 1)
    try:
        for part in range(num):
            place_of = places.of_partition(part)
            for block in collector.edges.blocks(part, _ROWS):
                half = np.empty(len(block), _HALF)
                half["head"] = place_of(block["head"])
                half["relation"] = places.relation_rank[block["relation"]]
                half["tail"] = block["tail"]
                halves.append(block["tail"], half)
            collector.edges.remove(part)
    finally:
        halves.close()
    for part in range(num):
        place_of = places.of_partition(part)
        for block in halves.blocks(part, _ROWS):
            yield block["head"], block["relation"], place_of(block["tail"])
        halves.remove(part)


def _write_runs(
    direction: str, packing: _Packing, merged: Iterator[np.ndarray], writer: IndexWriter
) -> EdgeCounts:
    """Write CSR with two levels: a node's runs, one a relation, and a run's values."""
    loops: Counter[int] = Counter()
    last = (-1, -1)
    with (
        writer.array(f"{direction}_node", "i8") as node_file,
        writer.array(f"{direction}_relation", "i4") as relation_file,
        writer.array(f"{direction}_run", "i8") as run_file,
        writer.array(f"{direction}_value", "i4") as value_file,
    ):
        starts = Starts(node_file, packing.num_terms)
        for packed in merged:
            if not len(packed):
                continue
            nodes, relations, values = packing.unpack(packed)
            begins = np.ones(len(nodes), bool)
            begins[0] = (int(nodes[0]), int(relations[0])) != last
            begins[1:] = (nodes[1:] != nodes[:-1]) | (relations[1:] != relations[:-1])
            last = int(nodes[-1]), int(relations[-1])
            where = np.flatnonzero(begins)
            starts.append(nodes[where])
            relation_file.append(relations[where])
            run_file.append(value_file.length + where)
            value_file.append(values)
            loops.update(nodes[nodes == values].tolist())
        starts.finish()
        run_file.append(np.array([value_file.length]))
        return EdgeCounts(value_file.length, loops)
