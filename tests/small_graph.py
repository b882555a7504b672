"""A graph in a dictionary, for tests of what stands on a graph."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from hopling.graphs.base import Direction, Edge


@dataclass
class SmallGraph:
    """Holds (subject, relation, object) rows; an object that begins with a quote is a literal."""

    rows: Sequence[tuple[str, str, str]]
    names: Mapping[str, str] = field(default_factory=dict)
    read: list[tuple[str, ...]] = field(default_factory=list)

    def _edges(self, node: str, direction: Direction) -> list[Edge]:
        if direction == "outgoing":
            found = [Edge(r, o, o.startswith('"')) for s, r, o in self.rows if s == node]
        else:
            found = [Edge(r, s) for s, r, o in self.rows if o == node]
        return sorted(found)

    def _ids(self) -> set[str]:
        return {id for s, r, o in self.rows for id in (s, r, o)} | set(self.names)

    def resolve(self, names: Sequence[str]) -> list[str | None]:
        ids = self._ids()
        short = [name.removeprefix("ns:") for name in names]
        return [name if name in ids else None for name in short]

    def counts(self, nodes: Sequence[str], direction: Direction) -> list[dict[str, int]]:
        return [_counted(edge.relation for edge in self._edges(n, direction)) for n in nodes]

    def neighbors(
        self,
        nodes: Sequence[str],
        direction: Direction,
        relations: Sequence[str] | None = None,
        limit: int | None = None,
    ) -> list[list[Edge]]:
        self.read.append(tuple(nodes))
        return [
            [e for e in self._edges(n, direction) if relations is None or e.relation in relations][
                :limit
            ]
            for n in nodes
        ]

    def labels(self, nodes: Sequence[str]) -> list[str | None]:
        return [self.names.get(node) for node in nodes]

    def find(self, name: str, limit: int = 10) -> list[str]:
        close = [i for i, label in self.names.items() if name.casefold() in label.casefold()]
        return sorted(close)[:limit]


def _counted(names: Iterable[str]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for name in names:
        counts[name] = counts.get(name, 0) + 1
    return counts


def movies() -> SmallGraph:
    """Return two films, their director, a role as a mediator node and a year."""
    rows = [
        ("m.1", "film.film.directed_by", "m.3"),
        ("m.2", "film.film.directed_by", "m.3"),
        ("m.1", "film.film.year", '"1999"'),
        ("m.4", "film.actor.film", "m.10"),
        ("m.4", "film.actor.film", "m.11"),
        ("m.10", "film.performance.film", "m.1"),
        ("m.10", "film.performance.role", "m.20"),
        ("m.11", "film.performance.film", "m.2"),
        ("m.11", "film.performance.role", "m.21"),
    ]
    names = {
        "m.1": "Kismet",
        "m.2": "Low | High",
        "m.3": "Ann Lee",
        "m.4": "Bo Dale",
        "m.20": "X",
        "m.21": "Y",
        "film.film.directed_by": "Directed by",
    }
    return SmallGraph(rows, names)
