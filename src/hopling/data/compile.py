"""A teacher without a model: gold programs become Search calls, run live, with the answer read off.

A gold path such as `["^directed_by", "has_genre"]` (`^` goes from object to subject) is walked
frontier by frontier. The teacher holds the graph to know where it stands, yet every row that it
relies on is printed by a call of the episode, and every answer is a name that the tool printed.
"""

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

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
from hopling.graphs.base import Direction, Graph

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
            reached = {edge.value: None for node in frontier for edge in rows[node]}
            reached.pop(self.start, None)
            frontier = list(reached)
            if not frontier:
                raise Stuck("the path ends before its last step")
        return frontier


def compiled(task: Task) -> Plan:
    """Return the plan of the task's gold path or gold SPARQL.

    Raises Stuck when the task has neither, or when its query has a form that no calls express.
    """
    if path := task.hints.get("path"):
        return Path(task.start[0], tuple(path))
    raise Stuck("no gold program")


@dataclass
class Compiler:
    """A policy that plays each task by its gold program.

    `tasks` are those that it can play; `max_rows` is how many rows a call of the tool prints.
    """

    graph: Graph
    dialect: Dialect
    tasks: Sequence[Task]
    discipline: Discipline = "probe"
    max_rows: int = 50
    max_live: int = 64
    encoder: Encoder | None = None
    concurrent: Literal[False] = False
    _tasks: Mapping[str, Task] = field(init=False, repr=False)
    _plans: dict[str, Plan] = field(init=False, repr=False, default_factory=dict)
    _stuck: dict[str, str] = field(init=False, repr=False, default_factory=dict)

    def __post_init__(self) -> None:
        self._tasks = {task.id: task for task in self.tasks}

    def generate(self, views: Sequence[View], stops: Sequence[str]) -> list[Completion]:
        """Return each episode's next turn, found by walking its plan again over what was read."""
        return [Completion(self.dialect.write(self._next(view))) for view in views]

    def explain(self, episode: Episode) -> str | None:
        """Return why the task's program could not be walked, None when it could."""
        return self._stuck.get(episode.task.id)

    def _next(self, view: View) -> tuple[Action, ...]:
        reading = Reading(self.graph, self.discipline, self.max_rows)
        try:
            walk = self._plan(view.task_id)(reading)
            calls = next(walk)
            for turn in view.turns:
                calls = walk.send(turn.observations)
            return calls
        except StopIteration as end:
            answers: list[str] = end.value
        except Stuck as stuck:
            self._stuck[view.task_id] = str(stuck)
            return (Answer("{unknown}"),)
        unprinted = [node for node in answers if node not in reading.names]
        if unprinted:
            self._stuck[view.task_id] = "an answer was not printed"
        names = {reading.names.get(node, node): None for node in answers}
        return (Answer(", ".join(f"{{{name}}}" for name in names)),)

    def _plan(self, task_id: str) -> Plan:
        if task_id not in self._plans:
            self._plans[task_id] = compiled(self._tasks[task_id])
        return self._plans[task_id]
