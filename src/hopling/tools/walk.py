"""CNY's one action: walk to a node on the frontier and read it. [CNY 4.1, Eq. 2]

The frontier is computed from the episode: what the start nodes are linked to, and what every node
read so far is linked to, without the nodes that were read.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, Protocol

from hopling.episode import Call, Episode, Observation, Task
from hopling.errors import ToolError

_SHOWN = 12  # ids that a message lists


class Readable(Protocol):
    """What is asked of a graph with texts."""

    def neighbors(self, node: str) -> Sequence[str]: ...

    def text(self, node: str) -> str: ...

    def preview(self, node: str) -> str: ...


@dataclass(frozen=True)
class Walk:
    """Reads a node on the frontier, and previews what it opens.

    `max_new` is how many neighbors a node adds to the frontier at most, chosen by a draw that
    depends on the node alone; None adds all. [CNY Table 9, code]
    """

    graph: Readable
    max_new: int | None = None
    name: str = "walk"

    @property
    def schema(self) -> Mapping[str, Any]:
        """The tool as a JSON schema, in OpenAI's form."""
        node = {"type": "string", "description": "Id of a node on the frontier."}
        return {
            "type": "function",
            "function": {
                "name": self.name,
                "description": "Read the full text of a node on the frontier.",
                "parameters": {
                    "type": "object",
                    "properties": {"node": node},
                    "required": ["node"],
                },
            },
        }

    def __call__(self, episode: Episode, node: str) -> Observation:
        """Return the node's text and the previews of the nodes that it opens.

        Raises ToolError for a node that is not on the frontier as the walk is issued.
        """
        node = str(node).strip()
        frontier = self.frontier(episode)
        if node not in frontier:
            shown = ", ".join(frontier[:_SHOWN]) or "empty"
            more = " ..." if len(frontier) > _SHOWN else ""
            raise ToolError(f"Node {node} is not on the frontier. Frontier: {shown}{more}.")
        read = {*self.read(episode), *episode.task.start, node}
        new = [n for n in self.opened(node) if n not in read and n not in frontier]
        lines = [f"[{node}] {self.graph.text(node)}", *previews(self.graph, new)]
        return Observation("\n".join(lines), (node,), (node,))

    def frontier(self, episode: Episode) -> list[str]:
        """Return the nodes that can be walked to, in the order in which they came. [CNY Eq. 2]"""
        read = self.read(episode)
        sources = [*self.first(episode.task), *(n for node in read for n in self.opened(node))]
        gone = {*read, *episode.task.start}
        return [node for node in dict.fromkeys(sources) if node not in gone]

    def first(self, task: Task) -> list[str]:
        """Return the initial frontier: the neighbors of the start nodes, each once."""
        around = (node for start in task.start for node in self.opened(start))
        return [node for node in dict.fromkeys(around) if node not in task.start]

    def read(self, episode: Episode) -> list[str]:
        """Return the nodes that the episode walked to, in order."""
        return [
            str(action.arguments["node"]).strip()
            for turn in episode.turns
            for action, observation in zip(turn.actions, turn.observations, strict=False)
            if isinstance(action, Call) and action.tool == self.name and not observation.error
        ]

    def opened(self, node: str) -> list[str]:
        """Return the neighbors that reading a node adds to the frontier."""
        around = list(self.graph.neighbors(node))
        if self.max_new is None or len(around) <= self.max_new:
            return around
        chosen = set(Random(node).sample(around, self.max_new))
        return [n for n in around if n in chosen]


def previews(graph: Readable, nodes: Sequence[str]) -> list[str]:
    """Return a line for each node: its id, then the beginning of its text."""
    return [f"[{node}]: {graph.preview(node)}" for node in nodes]
