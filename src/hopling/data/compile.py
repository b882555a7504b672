"""A teacher without a model: gold programs become Search calls, run live, with the answer read off.

A gold path such as `["^directed_by", "has_genre"]` (`^` goes from object to subject) is walked
frontier by frontier. The teacher holds the graph to know where it stands, yet every row that it
relies on is printed by a call of the episode, and every answer is a name that the tool printed.
"""

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field

from hopling.data.reading import Discipline, Reading, Stuck
from hopling.environment import Dialect
from hopling.episode import (
    Action,
    Answer,
    Call,
    Completion,
    Encoder,
    Episode,
    Observation,
    Task,
    View,
)
from hopling.errors import SettingsError
from hopling.graphs.base import Direction, Graph
from hopling.tools.tables import lexical

Walk = Generator[tuple[Call, ...], tuple[Observation, ...], list[str]]
Plan = Callable[[Reading], Walk]


@dataclass(frozen=True)
class Path:
    """A gold path from one entity; the entity itself is dropped from every frontier."""

    start: str
    steps: tuple[str, ...]

    def __call__(self, reading: Reading) -> Walk:
        """Walk the path and return the nodes at its end."""
        frontier = [self.start]
        for step in self.steps:
            direction: Direction = "incoming" if step.startswith("^") else "outgoing"
            relation = step.removeprefix("^")
            rows = yield from reading.read(frontier, direction, [relation])
            edges = [edge for node in frontier for edge in rows[node]]
            reached = dict.fromkeys(lexical(e.value) if e.literal else e.value for e in edges)
            reached.pop(self.start, None)
            frontier = list(reached)
            if not frontier:
                raise Stuck("the path ends before its last step")
        return frontier


def gold_path(task: Task) -> Plan:
    """Return the plan of the task's gold path, for `Compiler`.

    Raises Stuck when the task has none.
    """
    if not task.hints.get("path") or not task.start:
        raise Stuck("no gold path")
    return Path(task.start[0], tuple(task.hints["path"]))


@dataclass
class Compiler:
    """A policy that plays each task by its gold program.

    `tasks` are those that it can play, `plan` reads a task's program (`gold_path`, or `gold_query`
    of `hopling.data.hops`). `filtered` are the ids of tasks whose calls name their properties at
    once, whatever the `discipline`. `max_rows` is how many rows a call of the tool prints. Where
    no calls express the program, the turn is an answer that is never right, and `explain` says why.
    """

    graph: Graph
    dialect: Dialect
    tasks: Sequence[Task]
    plan: Callable[[Task], Plan] = gold_path
    discipline: Discipline = "probe"
    max_rows: int = 50
    max_probe_rows: int | None = None
    filtered: frozenset[str] = frozenset()
    max_live: int = 64
    encoder: Encoder | None = field(init=False, default=None)
    concurrent: bool = field(init=False, default=False)
    _plans: dict[str, Plan] = field(init=False, repr=False, default_factory=dict)
    _stuck: dict[str, str] = field(init=False, repr=False, default_factory=dict)
    _walks: dict[int, "_Progress"] = field(init=False, repr=False, default_factory=dict)

    def __post_init__(self) -> None:
        self._tasks: Mapping[str, Task] = {task.id: task for task in self.tasks}

    def generate(self, views: Sequence[View], stops: Sequence[str]) -> list[Completion]:
        """Return each episode's next turn."""
        return [Completion(self._turn(view)) for view in views]

    def explain(self, episode: Episode) -> str | None:
        """Return why the task's program could not be walked, None when it could."""
        return self._stuck.get(episode.task.id)

    def _turn(self, view: View) -> str:
        try:
            return self.dialect.write(self._next(view))
        except Stuck as stuck:
            self._stuck[view.task_id] = str(stuck)
        except SettingsError:
            self._stuck[view.task_id] = "a name cannot be written in this dialect"
        self._walks.pop(view.key, None)
        return self.dialect.write([Answer("{unknown}")])

    def _next(self, view: View) -> tuple[Action, ...]:
        progress = self._walks.get(view.key)
        if progress is None or progress.num_turns + 1 != len(view.turns):
            progress = self._begun(view)
        try:
            for turn in view.turns[progress.num_turns :]:
                progress.calls = progress.walk.send(turn.observations)
                progress.num_turns += 1
            return progress.calls
        except StopIteration as end:
            self._walks.pop(view.key, None)
            return (_answer(end.value, progress.reading),)

    def _begun(self, view: View) -> "_Progress":
        self._stuck.pop(view.task_id, None)
        if view.task_id not in self._plans:
            self._plans[view.task_id] = self.plan(self._tasks[view.task_id])
        discipline = "filter" if view.task_id in self.filtered else self.discipline
        reading = Reading(self.graph, discipline, self.max_rows, max_probe_rows=self.max_probe_rows)
        walk = self._plans[view.task_id](reading)
        self._walks[view.key] = _Progress(reading, walk, next(walk))
        return self._walks[view.key]


@dataclass
class _Progress:
    """A walk, kept from turn to turn so as not to repeat it; `_begun` can always repeat it."""

    reading: Reading
    walk: Walk
    calls: tuple[Call, ...]
    num_turns: int = 0


def _answer(nodes: Sequence[str], reading: Reading) -> Answer:
    if any(node not in reading.names for node in nodes):
        raise Stuck("an answer was not printed")
    wanted = set(nodes)
    names = dict.fromkeys(name for node, name in reading.names.items() if node in wanted)
    return Answer(", ".join(f"{{{name}}}" for name in names))
