"""What a tool may ask of a graph. A backend is any class with these methods.

Node ids are the short forms that a policy reads and writes (`m.0abc`, `Q42`, or a full IRI where
no namespace was given). Rows come sorted by (relation, value), so that equal calls give equal text.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
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
        """Return ids that a name may mean: the id itself, then those with such a label.

        Labels that are the same come first, then case-folded, ones that begin so, similar ones.
        """
        ...


@dataclass(frozen=True)
class TableForm:
    """How `Search` writes its tables.

    More rows than `max_probe_rows` become a summary where no properties are named; a page has
    `max_rows`. `property_cells` gives, for a relation and its label, its cells in a table of rows
    and in a summary.
    """

    max_probe_rows: int
    max_rows: int
    property_cells: Callable[[str, str | None], tuple[str, str]]


class SearchTable(NamedTuple):
    """The lines of a table of rows, or of a summary, whose `num_properties` is above 0.

    `total` rows were found; `num_shown` rows, or properties, stand in the lines. `nodes` are the
    values of the rows, each once, and `names` what is printed for them.
    """

    lines: str
    total: int
    num_shown: int
    num_properties: int = 0
    nodes: tuple[str, ...] = ()
    names: tuple[str, ...] = ()


class TableGraph(Graph, Protocol):
    """A graph that can also write a table of `Search` by itself, faster than a tool can."""

    def search_table(
        self,
        names: Sequence[str],
        direction: Direction,
        properties: Sequence[str],
        form: TableForm,
    ) -> SearchTable | None:
        """Return the first page for distinct names, or None: then the tool writes it itself.

        Cells come as Markdown, escaped, and literals of more than 400 characters shortened.
        """
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


class TextNeighbors(Protocol):
    """A graph of nodes with texts, of which one is read at a time."""

    def __contains__(self, node: object) -> bool:
        """Return whether this is a node's id."""
        ...

    def neighbors(self, node: str) -> Sequence[str]:
        """Return the node's neighbors in a fixed order; none for what is no node."""
        ...

    def text(self, node: str) -> str:
        """Return what reading the node reveals."""
        ...

    def preview(self, node: str) -> str:
        """Return the beginning of the node's text."""
        ...

    def name(self, node: str) -> str:
        """Return what people call the node, its id where that is not known."""
        ...
