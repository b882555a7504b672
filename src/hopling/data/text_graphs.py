"""Text graphs with a class to predict for some nodes: the two that ship, or a folder of one's own.

A folder holds `nodes.tsv` and `edges.tsv` (or `.tsv.gz`) without a header: id, graph, class, split,
name and text; id and id. A node with a split (train, valid, test) is a task; class and split may be
empty, and `graph` says which of several graphs in the folder a node belongs to.
"""

import gzip
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path
from random import Random
from typing import Literal

from hopling.episode import Task
from hopling.errors import SettingsError
from hopling.graphs.text import TextGraph

SHIPPED = Path(str(resources.files(__package__) / "wordnet"))
COLUMNS = 6
HIDDEN = "a node whose text is hidden"
Shown = Literal["text", "name", "nothing"]


@dataclass(frozen=True)
class LabeledGraph:
    """A text graph, its classes, and its tasks by split; open tasks have no choices."""

    name: str
    graph: TextGraph
    classes: tuple[str, ...]
    tasks: Mapping[str, tuple[Task, ...]]
    is_open: bool = False

    def renamed(self, rng: Random) -> "LabeledGraph":
        """Return the same graph with other ids, numbers in a random order; tasks keep their ids."""
        nodes = list(self.graph.texts)
        new = dict(zip(nodes, map(str, rng.sample(range(2 * len(nodes)), len(nodes))), strict=True))
        edges = [(new[a], new[b]) for a in nodes for b in self.graph.neighbors(a)]
        graph = TextGraph.of(
            {new[n]: text for n, text in self.graph.texts.items()},
            edges,
            names={new[n]: name for n, name in self.graph.names.items()},
            classes={new[n]: kind for n, kind in self.graph.classes.items()},
        )
        sizes = {n: getattr(self.graph, n) for n in ("preview_words", "text_words")}
        tasks = {
            split: tuple(replace(t, start=tuple(new[n] for n in t.start)) for t in own)
            for split, own in self.tasks.items()
        }
        return replace(self, graph=replace(graph, **sizes), tasks=tasks)


def labeled_graph(name: str, *, folder: Path | None = None, shown: Shown = "text") -> LabeledGraph:
    """Return the graph that the files call so, with what a task shows of its node.

    Without a folder it is one of those that ship: `a` and `b`, cut out of WordNet.
    Raises SettingsError for files that cannot be read and for a graph that they do not hold.
    """
    where = folder or SHIPPED
    rows = list(_rows(where, "nodes.tsv", COLUMNS))
    own = {row[0]: row for row in rows if row[1] == name}
    if not own:
        known = ", ".join(sorted({row[1] for row in rows})) or "none"
        raise SettingsError(f"{where} holds no graph {name!r}. Graphs: {known}.")
    edges = [(a, b) for a, b in _rows(where, "edges.tsv", 2) if a in own and b in own]
    texts = {node: row[5] for node, row in own.items()}
    names = {node: row[4] for node, row in own.items()}
    classes = {node: row[2] for node, row in own.items() if row[2]}
    tasks: dict[str, list[Task]] = {}
    for node, row in own.items():
        if row[3]:
            question = {"text": texts[node], "name": names[node], "nothing": HIDDEN}[shown]
            task = Task(f"{name}/{node}", question, (node,), (_class(classes, node, where),))
            tasks.setdefault(row[3], []).append(task)
    return LabeledGraph(
        name,
        TextGraph.of(texts, edges, names=names, classes=classes),
        tuple(sorted(set(classes.values()))),
        {split: tuple(found) for split, found in tasks.items()},
    )


def _class(classes: Mapping[str, str], node: str, where: Path) -> str:
    if node not in classes:
        raise SettingsError(f"{where}: node {node!r} has a split but no class to predict.")
    return classes[node]


def _rows(folder: Path, name: str, num_columns: int) -> Iterator[list[str]]:
    path = folder / name
    if not path.exists():
        path = folder / f"{name}.gz"
    if not path.exists():
        raise SettingsError(f"{folder} holds neither {name} nor {name}.gz.")
    data = path.read_bytes()
    text = (gzip.decompress(data) if path.suffix == ".gz" else data).decode("utf-8")
    for number, line in enumerate(text.splitlines(), start=1):
        row = line.split("\t")
        if len(row) != num_columns:
            raise SettingsError(
                f"{path}, line {number} has {len(row)} columns; expected {num_columns}."
            )
        yield row
