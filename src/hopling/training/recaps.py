"""Recaps of what a walk found: who writes them, and which of them say too much. [CNY Eq. 6]

A recap tells a topic only. One that names a node, advises a walk or guesses a class would tell the
teacher what to do rather than what was found; it is counted, and gives no credit.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from hopling.dialects import chat
from hopling.environment import Dialect, Environment
from hopling.episode import Action, Answer, Malformed, Observation, Prompt, Task
from hopling.policies.sampling import Sampling
from hopling.rollout import rollout
from hopling.training.practice import Student, sampling_as

Leak = Literal["id", "advice", "class"]
LEAKS: tuple[Leak, ...] = ("id", "advice", "class")
# the recap of each text; L is how many tokens one may have
Recap = Callable[[Sequence[str], Student, int], list[str]]

SYSTEM = (
    "You summarize topics. Write one sentence of at most 50 tokens that says what the text is "
    "about. Name topics only: no node numbers, no advice where to go, no guess at a class."
)
_ADVICE = re.compile(
    r"\b(?:walk|visit|navigate|go to|look at|inspect|choose|select|recommend\w*|should|neighbou?rs?"
    r"|next node)\b",
    re.IGNORECASE,
)
_CLASS = re.compile(r"\b(?:class|category|label)(?:ified)?\b", re.IGNORECASE)


@dataclass(frozen=True)
class Summary:
    """A dialect in which whatever a policy writes is its answer; it opens as another one does."""

    form: Dialect

    @property
    def stops(self) -> tuple[str, ...]:
        """The other dialect's stops, and an empty line."""
        return (*self.form.stops, "\n\n")

    def opening(self, prompt: Prompt, tools: Sequence[Mapping[str, Any]]) -> list[str]:
        """Return the pieces of text before the policy's turn."""
        return self.form.opening(prompt, tools)

    def parse(self, text: str, *, cut: bool = False) -> tuple[Action, ...]:
        """Return the text's first line as an answer, whether the turn was cut or not."""
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        return (Answer(lines[0]),) if lines else (Malformed("The recap is empty."),)

    def reply(self, observations: Sequence[Observation]) -> list[str]:
        """Return what follows a turn; a recap has one turn only."""
        return chat.merged([observation.text for observation in observations])

    def write(self, actions: Sequence[Action], thought: str = "") -> str:
        """Return the text of a turn that gives the recap."""
        return " ".join(
            [*([thought] if thought else []), *(getattr(a, "text", "") for a in actions)]
        )

    def pieces(self, text: str) -> list[str]:
        """Return a whole turn as pieces to encode."""
        return self.form.pieces(text)


def recap_environment(form: Dialect, *, system: str = SYSTEM) -> Environment:
    """Return the world in which a task's question is a text, and its answer the text's topic."""
    return Environment(lambda task: Prompt(task.question, system), (), Summary(form), max_turns=1)


def by_policy(form: Dialect, *, system: str = SYSTEM) -> Recap:
    """Return a recap that the student itself writes, greedily, in its dialect. [CNY Eq. 6]"""
    world = recap_environment(form, system=system)

    def recap(texts: Sequence[str], student: Student, max_tokens: int) -> list[str]:
        tasks = [Task(f"recap {i}", text) for i, text in enumerate(texts)]
        with sampling_as(student, Sampling(0.0, 1.0, 0, max_tokens)):
            episodes = rollout(student, world, tasks)
        student.forget()
        return [_first_line(episode.turns[-1].text) for episode in episodes]

    return recap


def first_words(number: int) -> Recap:
    """Return a recap that is the text's beginning, for a student that cannot summarize. [ours]

    >>> first_words(2)(["a large tree"], None, 50)
    ['a large']
    """
    return lambda texts, student, max_tokens: [" ".join(t.split()[:number]) for t in texts]


def leak(recap: str, *, ids: Iterable[str], labels: Iterable[str] = ()) -> Leak | None:
    """Return what a recap gives away: a node's id, advice where to walk, or a class.

    >>> leak("node 17 is about trees", ids=["17"])
    'id'
    >>> leak("It should visit trees.", ids=["17"]), leak("The 1917 tree", ids=["17"])
    ('advice', None)
    >>> leak("It is a plant.", ids=[], labels=["plant"])
    'class'
    """
    if any(_holds(recap, name) for name in ids) or re.search(r"\[\w+\]", recap):
        return "id"
    if _ADVICE.search(recap):
        return "advice"
    if _CLASS.search(recap) or any(_holds(recap, label) for label in labels):
        return "class"
    return None


def _holds(text: str, name: str) -> bool:
    return bool(re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text, re.IGNORECASE))


def _first_line(text: str) -> str:
    return next((line.strip() for line in text.splitlines() if line.strip()), "")
