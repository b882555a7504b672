"""What a scripted teacher has read of a graph, and the calls that read more of it.

A call without properties comes first; one with properties only where the first showed a property
summary in place of the rows [SoG-R1 App. A]. Batches are cut, and pages turned, so that every row
is really printed.
"""

from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from hopling.episode import Call, Observation
from hopling.graphs.base import Direction, Edge, Graph
from hopling.tools.arguments import MAX_ENTITIES
from hopling.tools.tables import lexical

Discipline = Literal["probe", "filter"]
Reads = Generator[tuple[Call, ...], tuple[Observation, ...], dict[str, list[Edge]]]


class Stuck(Exception):
    """A walk that the tool cannot carry out; never leaves this package."""


@dataclass
class Reading:
    """The rows that an episode has shown, by node and direction.

    `max_rows` is how many rows a page of the tool holds, `max_probe_rows` how many a call without
    properties shows before it sums up, `max_entities` how many entities a call may name.
    `names` are the names printed for what was shown; a literal is known there by its text.
    """

    graph: Graph
    discipline: Discipline = "probe"
    max_rows: int = 50
    max_entities: int = MAX_ENTITIES
    max_probe_rows: int | None = None
    whole: set[tuple[str, Direction]] = field(default_factory=set)
    probed: set[tuple[str, Direction]] = field(default_factory=set)
    partly: set[tuple[str, Direction, str]] = field(default_factory=set)
    names: dict[str, str] = field(default_factory=dict)

    def fresh(self) -> "Reading":
        """Return a reading of the same graph in which nothing has been shown."""
        return Reading(
            self.graph, self.discipline, self.max_rows, self.max_entities, self.max_probe_rows
        )

    def foreseen(self, call: Call) -> Observation:
        """Return an observation with the nodes that a call would show, without its text."""
        nodes, direction = call.arguments["entities"], call.arguments["direction"]
        relations = call.arguments.get("properties")
        rows = self.graph.neighbors(nodes, direction, relations)
        values = tuple({lexical(e.value) if e.literal else e.value for row in rows for e in row})
        return Observation("", values, values)

    def has(self, node: str, direction: Direction, relations: Iterable[str]) -> bool:
        """Return whether every edge of these relations has been shown."""
        return (node, direction) in self.whole or all(
            (node, direction, relation) in self.partly for relation in relations
        )

    def read(self, nodes: Sequence[str], direction: Direction, relations: Sequence[str]) -> Reads:
        """Make the calls that show these relations' edges and return the edges of each node."""
        missing = self._missing(nodes, direction, relations)
        if self._must_probe(missing, direction):
            for some in self._groups(missing):
                yield from self._probe(some, direction, relations)
            missing = self._missing(missing, direction, relations)
        for batch, num_pages in self._batches(missing, direction, relations):
            seen: set[str] = set()
            for page in range(1, num_pages + 1):
                seen.update((yield from self._call(batch, direction, relations, page)).nodes)
            if not self._shown(batch, direction, relations, seen):
                raise Stuck("rows were not printed")
            self.partly.update((node, direction, r) for node in batch for r in relations)
        edges = self.graph.neighbors(list(nodes), direction, list(relations))
        return dict(zip(nodes, edges, strict=True))

    def num_calls(
        self, nodes: Sequence[str], direction: Direction, relations: Sequence[str]
    ) -> int:
        """Return how many calls `read` would make."""
        missing = self._missing(nodes, direction, relations)
        calls = 0
        if self._must_probe(missing, direction):
            groups, missing = self._groups(missing), []
            for some in groups:
                calls += self._num_summaries(some, direction, relations)
                if not self._fits(some, direction):
                    missing += some
        counts = self.graph.counts(missing, direction)
        if not any(relation in count for count in counts for relation in relations):
            return calls
        return calls + sum(n for _, n in self._batches(missing, direction, relations))

    def _missing(
        self, nodes: Sequence[str], direction: Direction, relations: Sequence[str]
    ) -> list[str]:
        return [node for node in nodes if not self.has(node, direction, relations)]

    def _must_probe(self, nodes: Sequence[str], direction: Direction) -> bool:
        fresh = any((node, direction) not in self.probed for node in nodes)
        return fresh and self.discipline == "probe"

    def _probe(
        self, nodes: Sequence[str], direction: Direction, relations: Sequence[str]
    ) -> Generator[tuple[Call, ...], tuple[Observation, ...], None]:
        """Call without properties; of a summary, read on until every relation was listed."""
        observation = yield from self._call(nodes, direction)
        self.probed.update((node, direction) for node in nodes)
        if self._fits(nodes, direction):
            if not self._shown(nodes, direction, None, set(observation.nodes)):
                raise Stuck("rows were not printed")
            self.whole.update((node, direction) for node in nodes)
            return
        for page in range(2, self._num_summaries(nodes, direction, relations) + 1):
            yield from self._call(nodes, direction, page=page)
        # a summary that does not list a property has told all there is to know of it
        listed = set[str]().union(*self.graph.counts(list(nodes), direction))
        absent = [relation for relation in relations if relation not in listed]
        self.partly.update((node, direction, r) for node in nodes for r in absent)

    def _fits(self, nodes: Sequence[str], direction: Direction) -> bool:
        counts = self.graph.counts(list(nodes), direction)
        limit = self.max_rows if self.max_probe_rows is None else self.max_probe_rows
        return sum(sum(count.values()) for count in counts) <= limit

    def _groups(self, nodes: Sequence[str]) -> list[list[str]]:
        starts = range(0, len(nodes), self.max_entities)
        return [list(nodes[start : start + self.max_entities]) for start in starts]

    def _num_summaries(
        self, nodes: Sequence[str], direction: Direction, relations: Sequence[str]
    ) -> int:
        """Return how many pages of the summary, which is sorted, list these relations.

        Rows that fit on one page come without a summary.
        """
        if self._fits(nodes, direction):
            return 1
        listed = sorted(set[str]().union(*self.graph.counts(list(nodes), direction)))
        places = [place for place, name in enumerate(listed) if name in relations]
        return 1 + max(places, default=0) // self.max_rows

    def _call(
        self,
        nodes: Sequence[str],
        direction: Direction,
        relations: Sequence[str] = (),
        page: int = 1,
    ) -> Generator[tuple[Call, ...], tuple[Observation, ...], Observation]:
        properties = [*relations, *([f"page {page}"] if page > 1 else [])]
        arguments = {"entities": list(nodes), "direction": direction}
        if properties:
            arguments["properties"] = properties
        (observation,) = yield (Call("Search", arguments),)
        if observation.error:
            raise Stuck("a call failed")
        for node, name in zip(observation.nodes, observation.names, strict=True):
            self.names.setdefault(node, name)
        return observation

    def _shown(
        self,
        nodes: Sequence[str],
        direction: Direction,
        relations: Sequence[str] | None,
        printed: set[str],
    ) -> bool:
        rows = self.graph.neighbors(list(nodes), direction, relations and list(relations))
        return all(
            (lexical(edge.value) if edge.literal else edge.value) in printed
            for edges in rows
            for edge in edges
        )

    def _batches(
        self, nodes: Sequence[str], direction: Direction, relations: Sequence[str]
    ) -> list[tuple[list[str], int]]:
        """Return the nodes in groups, each with the number of pages that its rows fill.

        Only a node that fills several pages alone has more than one.
        """
        batches: list[tuple[list[str], int]] = []
        room = -1
        for node, counts in zip(nodes, self.graph.counts(list(nodes), direction), strict=True):
            rows = sum(counts.get(relation, 0) for relation in relations)
            if rows > room or len(batches[-1][0]) == self.max_entities:
                num_pages = max(1, -(-rows // self.max_rows))
                batches.append(([], num_pages))
                room = num_pages * self.max_rows
            batches[-1][0].append(node)
            room -= rows
        return batches
