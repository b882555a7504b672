"""A text-attributed graph in memory: nodes with texts and classes, links without direction.

A preview is the beginning of a node's text, cut by words; nothing summarizes it. [CNY 5.1]
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import sha256
from random import Random

from hopling.errors import SettingsError


@dataclass(frozen=True)
class TextGraph:
    """Texts by node, and the neighbors of each; a node without text has the empty one.

    `preview_words` and `text_words` are how much of a text a preview and a walk show; `names` are
    what people call nodes, and `classes` what a task may ask for.
    """

    texts: Mapping[str, str]
    links: Mapping[str, tuple[str, ...]]
    names: Mapping[str, str] = field(default_factory=dict)
    classes: Mapping[str, str] = field(default_factory=dict)
    preview_words: int = 20
    text_words: int = 120

    @classmethod
    def of(
        cls,
        texts: Mapping[str, str],
        edges: Iterable[tuple[str, str]],
        *,
        names: Mapping[str, str] | None = None,
        classes: Mapping[str, str] | None = None,
    ) -> "TextGraph":
        """Return the graph of these edges, both ways; self loops and copies are left out.

        Raises SettingsError for an edge whose end has no text, not even an empty one.
        """
        around: dict[str, set[str]] = defaultdict(set)
        for one, other in edges:
            for node in (one, other):
                if node not in texts:
                    raise SettingsError(f"an edge ends in {node!r}, which is no node of the texts.")
            if one != other:
                around[one].add(other)
                around[other].add(one)
        links = {node: tuple(sorted(around[node], key=_order)) for node in texts}
        return cls(texts, links, names or {}, classes or {})

    def neighbors(self, node: str) -> tuple[str, ...]:
        """Return the node's neighbors in a fixed order; none for what is no node."""
        return self.links.get(node, ())

    def text(self, node: str) -> str:
        """Return what a walk to the node reveals."""
        return _cut(self.texts[node], self.text_words)

    def preview(self, node: str) -> str:
        """Return the beginning of the node's text."""
        return _cut(self.texts[node], self.preview_words)

    def rewired(self, *, seed: int, swaps_per_edge: int = 10) -> "TextGraph":
        """Return the graph with its edges swapped at random, every node keeping its degree.

        Texts and classes stay. [CNY 5.3]
        """
        rng = Random(seed)
        edges = [(a, b) for a in self.links for b in self.links[a] if _order(a) < _order(b)]
        held = {frozenset(edge) for edge in edges}
        for _ in range(swaps_per_edge * len(edges) if len(edges) > 1 else 0):
            i, j = rng.sample(range(len(edges)), 2)
            (a, b), (c, d) = edges[i], edges[j]
            if rng.random() < 0.5:
                c, d = d, c
            new = frozenset((a, d)), frozenset((c, b))
            if len({a, b, c, d}) < 4 or new[0] in held or new[1] in held:
                continue
            held -= {frozenset(edges[i]), frozenset(edges[j])}
            held |= set(new)
            edges[i], edges[j] = (a, d), (c, b)
        swapped = TextGraph.of(self.texts, edges)
        return replace(self, links=swapped.links)

    @cached_property
    def graph_hash(self) -> str:
        """What tells this graph from any other: a hash of its texts and links."""
        digest = sha256()
        for node in sorted(self.texts):
            row = (node, self.texts[node], *self.neighbors(node))
            digest.update("\0".join(row).encode() + b"\1")
        return digest.hexdigest()


def _cut(text: str, num_words: int) -> str:
    words = text.split()
    return " ".join(words[:num_words]) + (" ..." if len(words) > num_words else "")


def _order(node: str) -> tuple[int, str]:
    return len(node), node  # so that numbers come in their order
