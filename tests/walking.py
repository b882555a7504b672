"""A world for tests of credit: `<walk>NODE</walk>` reads a node's text, `<answer>X</answer>` ends.

It needs no graph: a node's text is a fact, and node "9" is off the frontier.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from hopling.environment import Environment
from hopling.episode import Action, Answer, Call, Episode, Malformed, Markup, Observation, Task
from hopling.errors import ToolError
from hopling.policies.encoding import TokenizerEncoder
from hopling.policies.scripted import Scripted
from hopling.rollout import rollout
from hopling.training.metrics import digest
from hopling.training.practice import Scored

TEXTS = {"1": "a tall tree", "12": "a sea bird", "117": "a small herb", "1234567": "old stone"}


@dataclass(frozen=True)
class Tagged:
    """A thought, then one tag. A tokenizer's own end marker ends a turn."""

    end: Markup

    @property
    def stops(self) -> tuple[str, ...]:
        return (self.end,)

    def opening(self, prompt: Any, tools: Any) -> list[str]:
        return [prompt.user, "\n"]

    def parse(self, text: str, *, cut: bool = False) -> tuple[Action, ...]:
        if found := re.search(r"<walk>(.*?)</walk>", text):
            return (Call("walk", {"node": found[1].strip()}, found.span()),)
        if found := re.search(r"<answer>(.*?)</answer>", text):
            return (Answer(found[1]),)
        return (Malformed("Walk or answer."),)

    def reply(self, observations: Sequence[Observation]) -> list[str]:
        return ["\n", *[o.text for o in observations], "\n"]

    def write(self, actions: Sequence[Action], thought: str = "") -> str:
        return thought

    def pieces(self, text: str) -> list[str]:
        return [text, self.end]


@dataclass(frozen=True)
class Walk:
    """Gives a node's text."""

    name: str = "walk"
    schema: dict[str, Any] = field(default_factory=dict)

    def __call__(self, episode: Episode, node: str) -> Observation:
        if node not in TEXTS:
            raise ToolError(f"Node {node} is not on the frontier.")
        return Observation(TEXTS[node], (node,), (node,))


def world(end: str) -> Environment:
    """Return the environment, with an end marker that the tokenizer has."""
    return Environment(lambda task: task.question, (Walk(),), Tagged(Markup(end)), max_turns=4)


def task(name: str = "t") -> Task:
    """Return a task that starts at node 40."""
    return Task(name, "Which kind? tree bird herb", ("40",), ("tree",))


def episode(
    turns: Sequence[str], encoder: TokenizerEncoder, end: str, *, name: str = "t"
) -> Episode:
    """Return the episode in which these turns were written."""
    return rollout(Scripted({name: list(turns)}, encoder), world(end), [task(name)])[0]


def scored(episode: Episode, reward: float | None) -> Scored:
    """Return the episode with a reward."""
    return Scored(episode, digest(episode, reward=reward, correct=float(reward == 1), others={}))
