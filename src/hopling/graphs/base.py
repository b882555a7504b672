"""What a tool may ask of a graph. A backend is any class with these methods.

Node ids are the short forms that a policy reads and writes (`m.0abc`, `Q42`, or a full IRI where
no namespace was given). Rows come sorted by (relation, value), so that equal calls give equal text.
"""

from collections.abc import Sequence
from typing import Literal, NamedTuple, Protocol

Direction = Literal["incoming", "outgoing"]


class Edge(NamedTuple):
    """One row of a neighborhood; `value` is a node's id, or a literal in its source form."""

    relation: str
    value: str
    literal: bool = False


class Graph(Protocol):
    """A graph that answers one-hop questions; every method takes many nodes at once."""

    def resolve(self, names: Sequence[str]) -> list[str | None]:
        """Return the id each name stands for (`ns:m.0abc`, `/m/0abc`, full IRI), None if absent."""
        ...

    def counts(self, nodes: Sequence[str], direction: Direction) -> list[dict[str, int]]:
        """Return, for each node, its relations with the number of edges; no edge is read."""
        ...

    def neighbors(
        self,
        nodes: Sequence[str],
        direction: Direction,
        relations: Sequence[str] | None = None,
        limit: int | None = None,
    ) -> list[list[Edge]]:
        """Return, for each node, its edges sorted by (relation, value), at most `limit` of them."""
        ...

    def labels(self, nodes: Sequence[str]) -> list[str | None]:
        """Return each node's or relation's label by the label chain, None where it has none."""
        ...

    def find(self, name: str, limit: int = 10) -> list[str]:
        """Return ids whose label is the name: exact first, then case-folded, then similar."""
        ...


class Document(NamedTuple):
    """A text that can be found; `id` is what episodes and rewards name it by."""

    id: str
    title: str
    text: str


class Retriever(Protocol):
    """Finds documents for a search query; every method takes many queries at once."""

    def retrieve(self, queries: Sequence[str]) -> list[list[Document]]:
        """Return, for each query, the documents found, best first, each of them once."""
        ...
