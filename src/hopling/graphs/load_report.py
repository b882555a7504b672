"""Counts what went into a hop index and marks its mediators, from the arrays on disk."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from zlib import crc32

import numpy as np

from hopling.errors import SettingsError
from hopling.graphs.dictionary import LITERAL, RELATION, Places
from hopling.graphs.edge_arrays import EdgeCounts
from hopling.graphs.formats import Source
from hopling.graphs.layout import IndexWriter, LoadReport
from hopling.graphs.sources import Lines
from hopling.graphs.terms import Namespace

_ROWS = 1 << 20
_NUM_HUBS = 10


@dataclass(frozen=True)
class Reading:
    """What is read, and how its ids and labels are told."""

    sources: Sequence[Source]
    label_file: Path | None
    namespace: Namespace
    label_predicates: frozenset[str]

    @property
    def files(self) -> list[Path]:
        """Return all files."""
        paths = [source.path for source in self.sources]
        return [*paths, self.label_file] if self.label_file else paths


@dataclass(frozen=True)
class Written:
    """What the parts of a build counted; `num_read` edges were read."""

    places: Places
    edges: EdgeCounts
    languages: Counter[str]
    num_read: int


@dataclass(frozen=True)
class _Block:
    """Some terms in a row: `loops` are edges that count twice in `outgoing` and `incoming`."""

    first: int
    kind: np.ndarray
    outgoing: np.ndarray
    incoming: np.ndarray
    has_label: np.ndarray


def write_mediators(writer: IndexWriter, names: Sequence[str], namespace: Namespace) -> None:
    """Write the array `term_mediator`: 1 for each node that only ties others together."""
    if not names:
        has_any = len(writer.read("label_node")) > 0
        with writer.array("term_mediator", "u1") as file:
            for block in _blocks(writer):
                is_node = block.kind != LITERAL
                is_bare = ~block.has_label & (block.outgoing + block.incoming > 1)
                file.append(is_node & is_bare & has_any)
        return
    marks = np.zeros(len(writer.read("term_kind")), np.uint8)
    ranks = []
    for name in names:
        place = _found(writer, namespace.shorten(name))
        rank = int(np.searchsorted(writer.read("relation_term"), place))
        if int(writer.read("term_kind")[place]) == RELATION:
            ranks.append(rank)
        else:
            first, last = writer.read("incoming_node")[place : place + 2].tolist()
            start, end = writer.read("incoming_run")[[first, last]].tolist()
            marks[writer.read("incoming_value")[start:end]] = 1
    _mark_values(writer, ranks, marks)
    marks[np.asarray(writer.read("term_kind")) == LITERAL] = 0
    writer.put("term_mediator", marks)


def _mark_values(writer: IndexWriter, ranks: Sequence[int], marks: np.ndarray) -> None:
    relations, runs = writer.read("outgoing_relation"), writer.read("outgoing_run")
    values = writer.read("outgoing_value")
    for first in range(0, len(relations), _ROWS):
        wanted = np.flatnonzero(np.isin(relations[first : first + _ROWS], ranks)) + first
        for run in wanted.tolist():
            marks[values[runs[run] : runs[run + 1]]] = 1


def _found(writer: IndexWriter, name: str) -> int:
    start, text = writer.read("term_start"), writer.read("term_text")
    buckets = writer.read("term_bucket_start")
    key = name.encode()
    bucket = crc32(key) & (len(buckets) - 2)
    for place in writer.read("term_bucket_place")[buckets[bucket] : buckets[bucket + 1]].tolist():
        if text[start[place] : start[place + 1]].tobytes() == key:
            return place
    raise SettingsError(
        f"mediators holds {name!r}, which is no id of the graph. Name relations that lead to "
        "mediators, or types of which mediators are."
    )


def reported(writer: IndexWriter, lines: Lines, reading: Reading, written: Written) -> LoadReport:
    """Return the report of an index whose arrays are all written."""
    entities = labelled = isolated = 0
    hubs: list[tuple[int, int]] = []
    loops = written.edges.loops
    own = np.array(sorted(loops), np.int64)
    own_counts = np.array([loops[place] for place in own.tolist()], np.int64)
    for block in _blocks(writer):
        degrees = block.outgoing + block.incoming
        here = (own >= block.first) & (own < block.first + len(degrees))
        degrees[own[here] - block.first] -= own_counts[here]
        degrees *= block.kind != LITERAL
        # a relation may have a label without being an entity of the graph
        is_named = block.has_label & (block.kind != RELATION)
        is_entity = (block.kind != LITERAL) & ((degrees > 0) | is_named)
        entities += int(is_entity.sum())
        labelled += int((is_entity & block.has_label).sum())
        isolated += int((is_entity & (degrees == 0)).sum())
        largest = np.argsort(-degrees, kind="stable")[:_NUM_HUBS]
        hubs += [(-int(degrees[i]), block.first + i) for i in largest.tolist() if degrees[i]]
        hubs = sorted(hubs)[:_NUM_HUBS]
    return LoadReport(
        graph_hash=writer.content_hash(),
        namespace=reading.namespace.iri,
        triples=written.edges.num,
        entities=entities,
        relations=len(written.places.relations),
        literals=written.places.num_literals,
        labels=dict(sorted(written.languages.items())),
        labelled=labelled,
        duplicates=written.num_read - written.edges.num,
        self_loops=loops.total(),
        isolated=isolated,
        hubs={_term(writer, place): -degree for degree, place in hubs},
        bad_lines=dict(lines.bad),
        examples=tuple(lines.examples),
    )


def _blocks(writer: IndexWriter) -> Iterator[_Block]:
    kinds, node_label = writer.read("term_kind"), writer.read("node_label")
    for first in range(0, len(kinds), _ROWS):
        kind = np.asarray(kinds[first : first + _ROWS])
        ends = slice(first, first + len(kind) + 1)
        outgoing, incoming = (_degrees(writer, side, ends) for side in ("outgoing", "incoming"))
        yield _Block(first, kind, outgoing, incoming, np.diff(node_label[ends]) > 0)


def _degrees(writer: IndexWriter, direction: str, ends: slice) -> np.ndarray:
    nodes = np.asarray(writer.read(f"{direction}_node")[ends])
    runs = writer.read(f"{direction}_run")[nodes[0] : nodes[-1] + 1]
    return np.diff(np.asarray(runs)[nodes - nodes[0]])


def _term(writer: IndexWriter, place: int) -> str:
    start, text = writer.read("term_start"), writer.read("term_text")
    return text[start[place] : start[place + 1]].tobytes().decode()
