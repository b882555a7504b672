"""What a scripted teacher has read of a graph, and the calls that read more of it.

A call without properties comes first; one with properties only where the first showed a property
summary in place of the rows [SoG-R1 App. A]. A batch is cut so that every row is really printed.
"""

from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from hopling.episode import Call, Observation
from hopling.graphs.base import Direction, Edge, Graph

Discipline = Literal["probe", "filter"]
Reads = Generator[tuple[Call, ...], tuple[Observation, ...], dict[str, list[Edge]]]


class Stuck(Exception):
    """A walk that the tool cannot carry out; never leaves this package."""


@dataclass
class Reading:
    """The rows that an episode has shown, by node and direction.

    `max_rows` is how many rows the tool prints before it falls back to a summary.
    """

    graph: Graph
    discipline: Discipline = "probe"
    max_rows: int = 50
    whole: set[tuple[str, Direction]] = field(default_factory=set)
    probed: set[tuple[str, Direction]] = field(default_factory=set)
    partly: set[tuple[str, Direction, str]] = field(default_factory=set)
    names: dict[str, str] = field(default_factory=dict)

    def has(self, node: str, direction: Direction, relations: Iterable[str]) -> bool:
        """Return whether every edge of these relations has been shown."""
        return (node, direction) in self.whole or all(
            (node, direction, relation) in self.partly for relation in relations
        )

    def read(self, nodes: Sequence[str], direction: Direction, relations: Sequence[str]) -> Reads:
        """Make the calls that show these relations' edges and return the edges of each node."""
        missing = [node for node in nodes if not self.has(node, direction, relations)]
        fresh = any((node, direction) not in self.probed for node in missing)
        if missing and fresh and self.discipline == "probe":
            seen = yield from self._call(missing, direction, None)
            self._note_probe(missing, direction, seen)
            self._note_absent(missing, direction, relations)
            missing = [node for node in missing if not self.has(node, direction, relations)]
        for batch in self._batches(missing, direction, relations):
            seen = yield from self._call(batch, direction, relations)
            if not self._shown(batch, direction, relations, seen):
                raise Stuck("one property has more rows than a call prints")
            self.partly.update((n, direction, r) for n in batch for r in relations)
        edges = self.graph.neighbors(list(nodes), direction, list(relations))
        return dict(zip(nodes, edges, strict=True))

    def num_calls(
        self, nodes: Sequence[str], direction: Direction, relations: Sequence[str]
    ) -> int | None:
        """Return how many calls `read` would make, None where it would get stuck."""
        missing = [node for node in nodes if not self.has(node, direction, relations)]
        counts = self.graph.counts(missing, direction)
        probes = 0
        if missing and self.discipline == "probe":
            probes = int(any((node, direction) not in self.probed for node in missing))
            if probes and sum(sum(count.values()) for count in counts) <= self.max_rows:
                return probes
            if not any(relation in count for count in counts for relation in relations):
                return probes
        try:
            return probes + len(self._batches(missing, direction, relations))
        except Stuck:
            return None

    def _call(
        self, nodes: Sequence[str], direction: Direction, relations: Sequence[str] | None
    ) -> Generator[tuple[Call, ...], tuple[Observation, ...], Observation]:
        arguments = {"entities": list(nodes), "direction": direction}
        if relations is not None:
            arguments["properties"] = list(relations)
        (observation,) = yield (Call("Search", arguments),)
        if observation.error:
            raise Stuck("a call failed")
        for node, name in zip(observation.nodes, observation.names, strict=False):
            self.names.setdefault(node, name)
        return observation

    def _note_probe(self, nodes: Sequence[str], direction: Direction, seen: Observation) -> None:
        self.probed.update((node, direction) for node in nodes)
        rows = sum(sum(counts.values()) for counts in self.graph.counts(list(nodes), direction))
        if rows <= self.max_rows and self._shown(nodes, direction, None, seen):
            self.whole.update((node, direction) for node in nodes)

    def _note_absent(
        self, nodes: Sequence[str], direction: Direction, relations: Sequence[str]
    ) -> None:
        # a summary that does not list a property has told all there is to know of it
        listed = set[str]().union(*self.graph.counts(list(nodes), direction))
        absent = [relation for relation in relations if relation not in listed]
        self.partly.update((node, direction, r) for node in nodes for r in absent)

    def _shown(
        self,
        nodes: Sequence[str],
        direction: Direction,
        relations: Sequence[str] | None,
        seen: Observation,
    ) -> bool:
        printed = set(seen.nodes)
        rows = self.graph.neighbors(list(nodes), direction, relations and list(relations))
        return all(
            edge.value in printed or (edge.literal and edge.value in seen.text)
            for edges in rows
            for edge in edges
        )

    def _batches(
        self, nodes: Sequence[str], direction: Direction, relations: Sequence[str]
    ) -> list[list[str]]:
        batches: list[list[str]] = []
        room = 0
        for node, counts in zip(nodes, self.graph.counts(list(nodes), direction), strict=True):
            rows = sum(counts.get(relation, 0) for relation in relations)
            if rows > self.max_rows:
                raise Stuck("one property has more rows than a call prints")
            if not batches or rows > room:
                batches.append([])
                room = self.max_rows
            batches[-1].append(node)
            room -= rows
        return batches
