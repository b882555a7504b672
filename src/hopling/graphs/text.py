"""A text-attributed graph in memory: nodes with texts, names and classes, and who is next to whom.

A preview is the beginning of a node's text, cut by words; nothing summarizes it. [CNY 5.1]
Neighbors lie in two arrays, so that a million nodes are no burden.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import sha256
from random import Random

import numpy as np

from hopling.errors import SettingsError
from hopling.graphs.rewire import rewire

Links = Mapping[str, Sequence[str]] | Iterable[tuple[str, str]]
Ends = np.ndarray  # shape (E, 2), rows of the arrays


@dataclass(frozen=True, eq=False)
class TextGraph:
    """Texts by node, and the neighbors of each; a node without text has the empty one.

    `names` are what people call nodes, `classes` the class of a node where it is known, and
    `descriptions` say what each class means. `preview_words` and `text_words` are how many words a
    preview and a walk show, None for all. Node k of `texts` has the neighbors
    `targets[offsets[k]:offsets[k + 1]]`. Build one with `TextGraph.of`.
    """

    texts: Mapping[str, str]
    offsets: np.ndarray
    targets: np.ndarray
    names: Mapping[str, str] = field(default_factory=dict)
    classes: Mapping[str, str] = field(default_factory=dict)
    descriptions: Mapping[str, str] = field(default_factory=dict)
    directed: bool = False
    preview_words: int | None = 20
    text_words: int | None = 120

    @classmethod
    def of(
        cls,
        texts: Mapping[str, str],
        links: Links,
        *,
        names: Mapping[str, str] | None = None,
        classes: Mapping[str, str] | None = None,
        descriptions: Mapping[str, str] | None = None,
        directed: bool = False,
    ) -> "TextGraph":
        """Return the graph of these links: pairs, or the neighbors by node.

        A link goes both ways unless `directed`; links to oneself and copies are left out.
        Raises SettingsError for a link whose end has no text, not even an empty one.

        >>> TextGraph.of({"a": "one", "b": "two", "c": ""}, [("a", "b")]).neighbors("b")
        ('a',)
        """
        pairs = _pairs(links)
        rows = {node: row for row, node in enumerate(texts)}
        lost = next((end for pair in pairs for end in pair if end not in rows), None)
        if lost is not None:
            raise SettingsError(
                f"a link ends in {lost!r}, which is no node; expected one of the {len(rows)} texts."
            )
        ends = np.array([(rows[one], rows[other]) for one, other in pairs], dtype=np.int64)
        offsets, targets = _adjacency(ends.reshape(-1, 2), list(texts), directed=directed)
        labels = (names or {}, classes or {}, descriptions or {})
        return cls(dict(texts), offsets, targets, *labels, directed=directed)

    def __contains__(self, node: object) -> bool:
        """Return whether this is a node's id."""
        return node in self.texts

    def __len__(self) -> int:
        """Return the number of nodes."""
        return len(self.texts)

    def neighbors(self, node: str) -> tuple[str, ...]:
        """Return the node's neighbors in a fixed order; none for what is no node."""
        row = self._rows.get(node)
        if row is None:
            return ()
        return tuple(
            self._nodes[k] for k in self.targets[self.offsets[row] : self.offsets[row + 1]]
        )

    def text(self, node: str) -> str:
        """Return what a walk to the node reveals."""
        return _cut(self.texts[node], self.text_words)

    def preview(self, node: str) -> str:
        """Return the beginning of the node's text; only its name where `preview_words` is 0."""
        return _cut(self.texts[node], self.preview_words) if self.preview_words else self.name(node)

    def name(self, node: str) -> str:
        """Return what people call the node, its id where that is not known."""
        return self.names.get(node) or node

    @property
    def links(self) -> list[tuple[str, str]]:
        """Every link once; without direction, the end that comes first in `texts` stands first."""
        return [(self._nodes[a], self._nodes[b]) for a, b in self._ends().tolist()]

    def rewired(self, *, seed: int, swaps_per_edge: int = 10) -> "TextGraph":
        """Return the graph with links swapped at random; degrees, texts and classes stay. [CNY 5.3]

        A directed graph keeps every in-degree and every out-degree.
        """
        ends = rewire(
            self._ends(), Random(seed), directed=self.directed, swaps_per_edge=swaps_per_edge
        )
        offsets, targets = _adjacency(ends, self._nodes, directed=self.directed)
        return replace(self, offsets=offsets, targets=targets)

    @cached_property
    def graph_hash(self) -> str:
        """What tells this graph from any other: a hash of its texts and links."""
        digest = sha256()
        for node in sorted(self.texts):
            row = (node, self.texts[node], *self.neighbors(node))
            digest.update("\0".join(row).encode("utf-8", "surrogatepass") + b"\1")
        return digest.hexdigest()

    @cached_property
    def _nodes(self) -> list[str]:
        return list(self.texts)

    @cached_property
    def _rows(self) -> dict[str, int]:
        return {node: row for row, node in enumerate(self.texts)}

    def _ends(self) -> Ends:
        heads = np.repeat(np.arange(len(self)), np.diff(self.offsets))
        ends = np.stack([heads, self.targets], axis=1).astype(np.int64)
        return ends if self.directed else ends[ends[:, 0] < ends[:, 1]]


def _pairs(links: Links) -> list[tuple[str, str]]:
    if isinstance(links, Mapping):
        return [(node, other) for node, others in links.items() for other in others]
    return list(links)


def _adjacency(
    ends: Ends, nodes: Sequence[str], *, directed: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Return where each node's neighbors begin, and all neighbors, sorted by their ids."""
    if not directed:
        ends = np.concatenate([ends, ends[:, ::-1]])
    places = np.empty(len(nodes), dtype=np.int64)  # of each node in the order of ids
    sorted_rows = np.array(
        sorted(range(len(nodes)), key=lambda k: _order(nodes[k])), dtype=np.int64
    )
    places[sorted_rows] = np.arange(len(nodes))
    ends = ends[ends[:, 0] != ends[:, 1]]
    keys = np.unique(ends[:, 0] * len(nodes) + places[ends[:, 1]])
    ends = np.stack([keys // max(1, len(nodes)), sorted_rows[keys % max(1, len(nodes))]], axis=1)
    counts = np.bincount(ends[:, 0], minlength=len(nodes))
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    return offsets, ends[:, 1].astype(np.int32)


def _cut(text: str, num_words: int | None) -> str:
    words = text.split()
    if num_words is None or len(words) <= num_words:
        return " ".join(words)
    return " ".join(words[:num_words]) + " ..."


def _order(node: str) -> tuple[int, str]:
    return len(node), node  # so that numbers come in their order
