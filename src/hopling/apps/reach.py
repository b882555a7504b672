"""Whether gold answers can be reached: a search from both ends, however edges point."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from hopling.episode import Call, Task
from hopling.graphs.base import Direction, Edge, Graph
from hopling.rewards.answers import key, normalized
from hopling.tools.tables import lexical

MAX_EDGES = 50_000  # read for one task
_OTHER: dict[Direction, Direction] = {"outgoing": "incoming", "incoming": "outgoing"}


@dataclass(frozen=True)
class Way:
    """Whether an answer is in the graph and was reached, and the call that prints it."""

    answer: str
    present: bool
    reached: bool
    call: Call | None = None


@dataclass(frozen=True)
class _Step:
    """The last edge into a node or literal."""

    node: str
    direction: Direction
    relation: str
    value: str


def ways(graph: Graph, task: Task, *, start: Sequence[str], hops: int, page: int = 50) -> list[Way]:
    """Return a way for each answer of the task, from the nearest of the start nodes.

    `page` is how many rows the tool prints on one. At most `MAX_EDGES` edges are read.
    """
    near = _Ball(graph, dict.fromkeys(start), list(start))
    found: list[Way] = []
    budget = MAX_EDGES
    for place, answer in enumerate(task.answers):
        goals = _nodes(graph, answer, task.answer_ids[place : place + 1])
        far = _Ball(graph, dict.fromkeys(goals), goals, is_backward=True)
        budget = _grown(near, far, goals, answer=answer, hops=hops, budget=budget)
        meeting = sorted(near.steps.keys() & far.steps.keys())
        literal = near.literals.get(key(answer))
        if meeting:
            step = near.steps[meeting[0]] if meeting[0] in goals else far.steps[meeting[0]]
        else:
            step = literal
        call = _call(graph, step, page) if step else None
        reached = bool(meeting or literal)
        found.append(Way(answer, bool(goals or literal), reached, call))
    return found


@dataclass
class _Ball:
    """The nodes within a radius, each with the last edge of its way; a center has none.

    Backward, that edge is the one into the center.
    """

    graph: Graph
    steps: dict[str, _Step | None]
    frontier: list[str]
    is_backward: bool = False
    radius: int = 0
    literals: dict[Hashable, _Step] = field(default_factory=dict)

    @cached_property
    def cost(self) -> int:
        """The number of edges at the frontier."""
        both = (self.graph.counts(self.frontier, direction) for direction in _OTHER)
        return sum(sum(one.values()) for counts in both for one in counts)

    def grow(self) -> None:
        """Take in the neighbors of the frontier."""
        fresh: list[str] = []
        for direction in _OTHER:
            rows = self.graph.neighbors(self.frontier, direction)
            for node, edges in zip(self.frontier, rows, strict=True):
                for edge in edges:
                    if edge.literal:
                        step = _Step(node, direction, edge.relation, edge.value)
                        self.literals.setdefault(key(lexical(edge.value)), step)
                    elif edge.value not in self.steps:
                        self.steps[edge.value] = self._step(node, direction, edge)
                        fresh.append(edge.value)
        self.frontier = fresh
        self.radius += 1
        del self.__dict__["cost"]

    def _step(self, node: str, direction: Direction, edge: Edge) -> _Step:
        if not self.is_backward:
            return _Step(node, direction, edge.relation, edge.value)
        return self.steps[node] or _Step(edge.value, _OTHER[direction], edge.relation, node)


def _grown(
    near: _Ball, far: _Ball, goals: Sequence[str], *, answer: str, hops: int, budget: int
) -> int:
    """Grow the cheaper ball until they meet or the way is too long; return the budget left."""
    while near.radius + far.radius < hops:
        met = not near.steps.keys().isdisjoint(far.steps) or key(answer) in near.literals
        # a literal has no edges to walk back on
        smaller = far if goals and far.cost < near.cost else near
        if met or not smaller.frontier or smaller.cost > budget:
            break
        budget -= smaller.cost
        smaller.grow()
    return budget


def _nodes(graph: Graph, answer: str, ids: Sequence[str]) -> list[str]:
    if known := [id for id in graph.resolve(ids) if id]:
        return known
    found = graph.find(answer)
    labels = zip(found, graph.labels(found), strict=True)
    same = [id for id, label in labels if label and normalized(label) == normalized(answer)]
    return same or [id for id in graph.resolve([answer]) if id]


def _call(graph: Graph, step: _Step, page: int) -> Call:
    (edges,) = graph.neighbors([step.node], step.direction, [step.relation])
    place = [edge.value for edge in edges].index(step.value)
    properties = [step.relation, *([f"page {place // page + 1}"] if place >= page else [])]
    arguments = {
        "entities": [step.node],
        "direction": step.direction,
        "properties": properties,
    }
    return Call("Search", arguments)
