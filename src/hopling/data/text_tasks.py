"""CNY's families of tasks on text graphs: nodes, edges, stances, and open questions.

A task's question holds all that the target slot shows, the choices included; what may be walked is
the graph's. An answer is a choice's name, or its number, which stands in `answer_ids`.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from random import Random

from hopling.data.text_graphs import LabeledGraph
from hopling.episode import Task
from hopling.errors import SettingsError
from hopling.graphs.base import Direction, Graph
from hopling.graphs.text import TextGraph
from hopling.graphs.text_readers import TextGraphFile

NUM_CHOICES = 10  # paper App. D.4
SHARES = {"train": 0.6, "valid": 0.2, "test": 0.2}  # as Table 8 divides most graphs
STANCES = ("counter", "support")
_STANCE = (
    "Does the argument support or counter the belief? First find out what the belief claims, then "
    "judge whether the argument agrees with that claim (support) or disagrees with it (counter)."
)
_DIRECTIONS: tuple[Direction, ...] = ("outgoing", "incoming")

Triple = tuple[str, str, str]


def split_of(name: str, shares: Mapping[str, float] = SHARES) -> str:
    """Return the split that a name falls into; it depends on the name alone."""
    place = int.from_bytes(sha256(name.encode("utf-8")).digest()[:8]) / 2**64
    for split, share in shares.items():
        if place < share:
            return split
        place -= share
    return list(shares)[-1]


def node_tasks(name: str, read: TextGraphFile) -> LabeledGraph:
    """Return a task for each node with a class: which class has it? [CNY App. D.3]

    Where no node has a split, all are divided by `split_of`. The answer's id is the place of its
    class among all, in alphabetical order.
    """
    graph = read.graph
    classes = tuple(sorted(set(graph.classes.values())))
    number = {kind: str(k) for k, kind in enumerate(classes)}
    tasks: dict[str, list[Task]] = defaultdict(list)
    for node, kind in graph.classes.items():
        split = read.splits.get(node) if read.splits else split_of(f"{name}/{node}")
        if split:
            shown = graph.text(node) or graph.name(node)
            task = Task(f"{name}/{node}", shown, (node,), (kind,), (number[kind],))
            tasks[split].append(task)
    return LabeledGraph(name, graph, classes, {s: tuple(own) for s, own in tasks.items()})


def edge_tasks(
    name: str,
    graph: TextGraph,
    edges: Mapping[str, Sequence[Triple]],
    relations: Mapping[str, str],
    *,
    max_tasks: int | None = None,
) -> LabeledGraph:
    """Return a task for each edge of each split: which relation is it, of ten? [CNY App. D.4]

    `edges` are (head, relation, tail) by split, `relations` the texts of all relations. The nine
    others are drawn by the edge itself, and none of them holds between the same nodes. Of more than
    `max_tasks` in a split some are taken, by their ids alone.
    """
    true: dict[tuple[str, str], set[str]] = defaultdict(set)
    for own in edges.values():
        for head, relation, tail in own:
            true[head, tail].add(relation)
    known = sorted(relations)
    tasks = {}
    for split, own in edges.items():
        distinct = list(dict.fromkeys(own))
        if max_tasks is not None and len(distinct) > max_tasks:
            distinct = sorted(distinct, key=lambda e: sha256(repr(e).encode()).digest())[:max_tasks]
        tasks[split] = tuple(
            _edge_task(name, graph, edge, known=known, others=true, texts=relations)
            for edge in distinct
        )
    return LabeledGraph(name, graph, (), tasks)


def _edge_task(
    name: str,
    graph: TextGraph,
    edge: Triple,
    *,
    known: Sequence[str],
    others: Mapping[tuple[str, str], set[str]],
    texts: Mapping[str, str],
) -> Task:
    head, relation, tail = edge
    rng = Random(" ".join(edge))
    wrong = [r for r in known if r not in others[head, tail]]
    choices = [relation, *rng.sample(wrong, min(NUM_CHOICES - 1, len(wrong)))]
    rng.shuffle(choices)
    lines = [
        "Which relation leads from the head to the tail?",
        *(f"{k}: {texts[choice]}" for k, choice in enumerate(choices)),
        f"Head: [{head}] {graph.text(head)}",
        f"Tail: [{tail}] {graph.text(tail)}",
    ]
    gold = str(choices.index(relation))
    start = tuple(dict.fromkeys((head, tail)))
    return Task(f"{name}/{' '.join(edge)}", "\n".join(lines), start, (texts[relation],), (gold,))


@dataclass(frozen=True)
class Stance:
    """A belief, an argument, whether it supports or counters it, and the concepts that explain."""

    belief: str
    argument: str
    label: str
    triples: tuple[Triple, ...]
    split: str


def stance_tasks(name: str, stances: Iterable[Stance]) -> LabeledGraph:
    """Return the tasks of stances, all their concepts in one graph that no walk can leave.

    The frontier begins with a seed, the concept with the most relations, and what is next to it;
    previews are names, and relations stand in texts, so that only a walk shows them.
    [CNY App. D.5]
    """
    disjoint = _Disjoint()
    tasks: dict[str, list[Task]] = defaultdict(list)
    for place, stance in enumerate(stances):
        around: dict[str, list[tuple[str, str]]] = defaultdict(list)
        for head, relation, tail in stance.triples:
            around[head].append((f"{relation} ->", tail))
            around[tail].append((f"<- {relation}", head))
        seed = max(around, key=lambda c: len(around[c])) if around else None
        first = dict.fromkeys([seed, *(other for _, other in around[seed])]) if seed else ()
        root = disjoint.add({concept: concept for concept in around}, around, first=first)
        question = f"{_STANCE}\nBelief: {stance.belief}\nArgument: {stance.argument}"
        number = (str(STANCES.index(stance.label)),)
        task = Task(f"{name}/{place}", question, (root,), (stance.label,), number)
        tasks[stance.split].append(task)
    graph = replace(disjoint.graph(), preview_words=0, text_words=None)
    return LabeledGraph(name, graph, STANCES, {s: tuple(own) for s, own in tasks.items()})


def open_tasks(
    name: str,
    graph: Graph,
    tasks: Mapping[str, Sequence[Task]],
    *,
    hops: int = 2,
    max_nodes: int = 200,
    max_edges: int = 50,
) -> LabeledGraph:
    """Return questions about a knowledge graph, each to be walked on its own part of it. [CNY 5.4]

    That part holds what is at most `hops` away from the topics: of every node and direction the
    first `max_edges` edges, and no more than `max_nodes` nodes. The texts name a node's relations.
    The hint `reachable` says whether an answer is in it.
    """
    disjoint = _Disjoint()
    made: dict[str, list[Task]] = defaultdict(list)
    for split, own in tasks.items():
        for task in own:
            topics = [node for node in graph.resolve(task.start) if node is not None]
            around = _surroundings(graph, topics, hops, max_nodes=max_nodes, limit=max_edges)
            labels = graph.labels(list(around))
            names = {node: label or node for node, label in zip(around, labels, strict=True)}
            root = disjoint.add(names, around, first=topics)
            gold = {*graph.resolve(task.answer_ids), *task.answers}
            reachable = any(node in gold or names[node] in gold for node in around)
            hints = {**task.hints, "reachable": reachable}
            moved = replace(task, id=f"{name}/{task.id}", start=(root,), hints=hints)
            made[split].append(moved)
    divided = {split: tuple(own) for split, own in made.items()}
    return LabeledGraph(name, disjoint.graph(), (), divided, is_open=True)


def _surroundings(
    graph: Graph, start: Sequence[str], hops: int, *, max_nodes: int, limit: int
) -> dict[str, list[tuple[str, str]]]:
    """Return the nodes near the start, nearest first, each with its relations among them."""
    edges: list[Triple] = []
    held = dict.fromkeys(start)
    newest = list(held)
    for _ in range(hops):
        found: dict[str, None] = {}
        for direction in _DIRECTIONS:
            for node, row in zip(
                newest, graph.neighbors(newest, direction, None, limit), strict=True
            ):
                for edge in row:
                    ends = (node, edge.value) if direction == "outgoing" else (edge.value, node)
                    edges.append((ends[0], edge.relation, ends[1]))
                    if edge.value not in held and not edge.literal:
                        found[edge.value] = None
                    if edge.literal and len(held) < max_nodes:
                        held[edge.value] = None
        newest = list(found)[: max(0, max_nodes - len(held))]
        held |= dict.fromkeys(newest)
    around: dict[str, list[tuple[str, str]]] = {node: [] for node in held}
    for head, relation, tail in dict.fromkeys(edges):
        if head in around and tail in around:
            around[head].append((f"{relation} ->", tail))
            around[tail].append((f"<- {relation}", head))
    return around


class _Disjoint:
    """Small graphs in one, with numbers for ids; a root leads to where each is entered."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}
        self.names: dict[str, str] = {}
        self.links: list[tuple[str, str]] = []

    def add(
        self,
        names: Mapping[str, str],
        around: Mapping[str, Sequence[tuple[str, str]]],
        *,
        first: Iterable[str],
    ) -> str:
        """Add a graph and return its root, which nothing leads back to."""
        base = len(self.texts)
        root = str(base)
        ids = {node: str(base + k) for k, node in enumerate(names, start=1)}
        self.texts[root] = ""
        for node, own in ids.items():
            told = "; ".join(f"{how} [{ids[other]}] {names[other]}" for how, other in around[node])
            self.texts[own] = f"{names[node]}. Connections: {told or 'none'}."
            self.names[own] = names[node]
            self.links += [(own, ids[other]) for _, other in around[node]]
        self.links += [(root, ids[node]) for node in first]
        return root

    def graph(self) -> TextGraph:
        """Return all of them; links between nodes go both ways, those of roots one way."""
        if not self.texts:
            raise SettingsError("there are no tasks to make a graph of.")
        return TextGraph.of(self.texts, self.links, names=self.names, directed=True)
