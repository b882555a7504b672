"""The graphs of CNY's recipe, cut to what its settings show of them."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from hopling.data.text_graphs import Shown, labeled_graph
from hopling.dialects.tags import Tags
from hopling.recipes.students import TINY
from hopling.recipes.walks import Walked


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
    """Return the named graphs as these settings show them."""
    folder = Path(asked.data) if asked.data else None
    graphs = []
    for name in names:
        found = labeled_graph(name, folder=folder, shown=asked.shown)
        cut = replace(found.graph, preview_words=asked.preview_words, text_words=asked.text_words)
        graphs.append(replace(found, graph=cut))
    return Walked(
        tuple(graphs),
        dialect,
        asked.max_turns,
        asked.max_first,
        asked.max_new,
        asked.max_tokens,
        asked.student == TINY,
    )
