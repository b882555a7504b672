"""A small text graph to walk, played by scripts.

a - b - d     e - f, h alone
 \\ /
  c
"""

from collections.abc import Sequence

from hopling.dialects.tags import Tags
from hopling.environment import Environment
from hopling.episode import Encoder, Episode, Task
from hopling.graphs.text import TextGraph
from hopling.policies.scripted import Scripted
from hopling.rollout import rollout
from hopling.tools.walk import Walk

TEXTS = {
    "a": "the target",
    "b": "a tall green tree",
    "c": "some old grey stone",
    "d": "one small bird",
    "e": "far away",
    "f": "",
    "h": "alone",
}
LINKS = [("a", "b"), ("a", "c"), ("b", "c"), ("b", "d"), ("e", "f")]
DIALECT = Tags({"walk": "node"})
TASK = Task("t", "the target", ("a",), ("tree",), ("1",))


def graph() -> TextGraph:
    """Return the graph."""
    return TextGraph.of(TEXTS, LINKS, names={"b": "Beech", "d": "Dove"})


def world(walk: Walk | None = None, *, max_turns: int) -> Environment:
    """Return the environment in which it is walked."""
    walk = walk or Walk(graph())
    return Environment(lambda task: task.question, (walk,), DIALECT, max_turns)


def played(
    *turns: str, task: Task = TASK, walk: Walk | None = None, encoder: Encoder | None = None
) -> Episode:
    """Return the episode in which these turns were written, and no other could be."""
    script: dict[str, Sequence[str]] = {task.id: list(turns)}
    return rollout(Scripted(script, encoder), world(walk, max_turns=len(turns)), [task])[0]
