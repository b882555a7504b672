"""The worlds of CNY's recipe: graphs to walk, and the controls that do not."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hopling.data.text_graphs import LabeledGraph
from hopling.dialects.tags import Tags
from hopling.environment import Environment
from hopling.episode import Call, Episode, Observation, Prompt, Task
from hopling.evaluation.controls import without_walks
from hopling.recipes.prompts.walking import Telling, View
from hopling.rewards.ladder import hits_substring, right_class
from hopling.tools.walk import Walk


@dataclass(frozen=True)
class Walks:
    """One tool for the tasks of several graphs, told apart by the task's id."""

    tools: Mapping[str, Walk]
    name: str = "walk"

    @property
    def schema(self) -> Mapping[str, Any]:
        """The tool as a JSON schema, the same for every graph."""
        return next(iter(self.tools.values())).schema

    def __call__(self, episode: Episode, /, **arguments: Any) -> Observation:
        """Walk on the graph of the episode's task."""
        return self.tools[graph_name(episode.task)](episode, **arguments)


@dataclass(frozen=True)
class Walked:
    """Labeled graphs as a student plays them, in one world; a task's id begins with its graph."""

    graphs: tuple[LabeledGraph, ...]
    dialect: Tags
    max_turns: int
    max_first: int | None
    max_new: int | None
    max_tokens: int | None
    compact: bool

    def world(self, view: View = "walk", *, rewired: int | None = None) -> Environment:
        """Return the environment of a view; with `rewired`, on swapped edges by that seed."""
        tools = {g.name: self.tool(g, rewired) for g in self.graphs}
        told = {
            g.name: Telling(g.classes, self.max_turns, self.compact, g.is_open).prompt(
                tools[g.name], view
            )
            for g in self.graphs
        }

        def prompt(task: Task) -> Prompt:
            return told[graph_name(task)](task)

        world = Environment(prompt, (Walks(tools),), self.dialect, self.max_turns, self.max_tokens)
        return world if view == "walk" else without_walks(world, prompt)

    def tool(self, labeled: LabeledGraph, rewired: int | None = None) -> Walk:
        """Return the tool that walks one of the graphs."""
        graph = labeled.graph
        chosen = graph if rewired is None else graph.rewired(seed=rewired)
        return Walk(chosen, self.max_new, self.max_first)

    def tasks(self, split: str) -> list[Task]:
        """Return the tasks of a split, of every graph."""
        return [task for g in self.graphs for task in g.tasks.get(split, ())]

    def labeled(self, task: Task) -> LabeledGraph:
        """Return the graph that a task is about."""
        return next(g for g in self.graphs if g.name == graph_name(task))

    def right(self, episode: Episode) -> float:
        """Return 1.0 iff the class or choice is right; an open answer, by substring. [CNY 5.4]"""
        is_open = self.labeled(episode.task).is_open
        return hits_substring(episode) if is_open else right_class(episode)

    def destination(self, task: Task, call: Call, observation: Observation) -> str:
        """Return the text of the node that was walked to, which a recap is of."""
        return self.labeled(task).graph.text(observation.nodes[0])

    def classes(self, task: Task) -> Sequence[str]:
        """Return the classes that no recap may name."""
        return self.labeled(task).classes


def graph_name(task: Task) -> str:
    """Return the name of the graph that a task is about."""
    return task.id.partition("/")[0]
