"""CNY's one action: walk to a node on the frontier and read it. [CNY 4.1, Eq. 2]

The frontier is computed from the episode: what the start nodes are linked to, and what every node
read so far is linked to, without the nodes that were read. The start nodes count as read, since the
prompt tells their text.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from hopling.episode import Call, Episode, Observation, Task
from hopling.errors import SettingsError, ToolError
from hopling.graphs.base import TextNeighbors as Readable

_SHOWN = 12  # ids that a message lists
NO_TEXT = "(no text)"


@dataclass(frozen=True)
class Walk:
    """Reads a node on the frontier, and previews what it opens.

    `max_new` is how many neighbors a node adds to the frontier at most, chosen by a draw that
    depends on the node alone; None adds all. [code] `max_first` caps the initial frontier as a
    whole, by a draw that depends on the start nodes. [CNY Table 9] `max_walks` is how many walks an
    episode has; an environment's `max_turns` counts turns, the answer's among them. [CNY Alg. 1]
    """

    graph: Readable
    max_new: int | None = None
    max_first: int | None = None
    max_walks: int | None = None
    name: str = "walk"

    def __post_init__(self) -> None:
        """Raise SettingsError for a limit under which nobody could walk."""
        for limit in ("max_new", "max_first", "max_walks"):
            value = getattr(self, limit)
            if value is not None and value < 1:
                raise SettingsError(
                    f"{limit} is {value}; expected 1 or more, or none for no limit."
                )

    @property
    def schema(self) -> Mapping[str, Any]:
        """The tool's description in OpenAI's function form."""
        node = {"type": "string", "description": "Id of a node on the frontier."}
        return {
            "name": self.name,
            "description": "Read the full text of a node on the frontier.",
            "parameters": {"type": "object", "properties": {"node": node}, "required": ["node"]},
        }

    def __call__(self, episode: Episode, /, node: object = None, **others: object) -> Observation:
        """Return the node's text and the previews of the nodes that it opens.

        The observation's nodes are the one that was read and then those that it opened.
        Raises ToolError for a node that is not on the frontier as the walk is issued, for one walk
        more than `max_walks`, and for another argument.
        """
        if others:
            raise ToolError(f"{self.name} takes node, and no {', '.join(sorted(others))}.")
        read, frontier = self.read(episode), self.frontier(episode)
        wanted = node.strip() if isinstance(node, str) else repr(node)
        if self.max_walks is not None and len(read) >= self.max_walks:
            raise ToolError(f"All {self.max_walks} walks are used. Give your answer.")
        if wanted not in frontier:
            raise ToolError(f"{self._why_not(wanted, episode)} {_listed(frontier)}")
        known = {*read, *episode.task.start, *frontier}
        new = [other for other in self.opened(wanted) if other not in known]
        text = self.graph.text(wanted) or NO_TEXT
        lines = [f"[{wanted}] {text}", *previews(self.graph, new)]
        nodes = (wanted, *new)
        return Observation("\n".join(lines), nodes, tuple(self.graph.name(n) for n in nodes))

    def frontier(self, episode: Episode) -> list[str]:
        """Return the nodes that can be walked to, in the order in which they came. [CNY Eq. 2]"""
        read = self.read(episode)
        sources = [*self.first(episode.task), *(n for node in read for n in self.opened(node))]
        gone = {*read, *episode.task.start}
        return [node for node in dict.fromkeys(sources) if node not in gone]

    def first(self, task: Task) -> list[str]:
        """Return the initial frontier: the neighbors of all start nodes, each once."""
        around = (node for start in task.start for node in self.opened(start))
        found = [node for node in dict.fromkeys(around) if node not in task.start]
        return _drawn(found, self.max_first, seed=" ".join(task.start))

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
        return _drawn(self.graph.neighbors(node), self.max_new, seed=node)

    def _why_not(self, node: str, episode: Episode) -> str:
        if node not in self.graph:
            return f"There is no node {node[:80]!r}; write the id of a node that was listed."
        if node in self.read(episode) or node in episode.task.start:
            return f"Node {node} was read already."
        return f"Node {node} is not on the frontier."


def previews(graph: Readable, nodes: Sequence[str]) -> list[str]:
    """Return a line for each node: its id, then the beginning of its text. [CNY App. F.1]"""
    return [f"[{node}]: {graph.preview(node)}" for node in nodes]


def _listed(frontier: Sequence[str]) -> str:
    if not frontier:
        return "No node is left to walk to: give your answer."
    more = " ..." if len(frontier) > _SHOWN else ""
    return f"Frontier: {', '.join(frontier[:_SHOWN])}{more}."


def _drawn(nodes: Sequence[str], limit: int | None, *, seed: str) -> list[str]:
    if limit is None or len(nodes) <= limit:
        return list(nodes)
    places = sorted(Random(seed).sample(range(len(nodes)), limit))
    return [nodes[place] for place in places]
