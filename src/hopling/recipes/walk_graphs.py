"""The graphs of CNY's recipe, cut to what its settings show of them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from hopling.data.text_graphs import LabeledGraph, Shown, labeled_graph
from hopling.data.text_sets import explagraphs, freebase, webqsp, wikispeedia, wordnet
from hopling.dialects.tags import Tags
from hopling.recipes.students import TINY
from hopling.recipes.walks import Walked

# read from the folder of that name below `data`
PUBLISHED: Mapping[str, Callable[[Path], LabeledGraph]] = {
    "wikispeedia": wikispeedia,
    "wn18rr": wordnet,
    "fb15k237": freebase,
    "explagraphs": explagraphs,
    "webqsp-fragment": webqsp,
}


class Asked(Protocol):
    """The settings that say what is walked, and how much of it is seen."""

    @property
    def data(self) -> str: ...

    @property
    def shown(self) -> Shown: ...

    @property
    def student(self) -> str: ...

    @property
    def max_turns(self) -> int: ...

    @property
    def max_first(self) -> int: ...

    @property
    def max_new(self) -> int: ...

    @property
    def max_tokens(self) -> int | None: ...

    @property
    def preview_words(self) -> int: ...

    @property
    def text_words(self) -> int: ...


def walked(asked: Asked, names: Sequence[str], dialect: Tags) -> Walked:
    """Return the named graphs, published or of the folder's own, as these settings show them."""
    folder = Path(asked.data) if asked.data else None
    graphs = []
    for name in names:
        if name in PUBLISHED:
            found = PUBLISHED[name](Path(asked.data) / name)
        else:
            found = labeled_graph(name, folder=folder, shown=asked.shown)
        if found.graph.preview_words:  # previews that are names stay so
            cuts = (asked.preview_words, asked.text_words)
            graph = replace(found.graph, preview_words=cuts[0], text_words=cuts[1])
            found = replace(found, graph=graph)
        graphs.append(found)
    return Walked(
        tuple(graphs),
        dialect,
        asked.max_turns,
        asked.max_first,
        asked.max_new,
        asked.max_tokens,
        asked.student == TINY,
    )
