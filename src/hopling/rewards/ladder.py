"""CNY's reward: what a right answer, a valid format, a walk and an answer at all are worth.

The format is judged on what the policy wrote, never on what it read: observations may hold any tag.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

from hopling.episode import Call, Ending, Episode
from hopling.errors import SettingsError
from hopling.rewards.answers import normalized


@dataclass(frozen=True)
class Tiers:
    """The rungs: right and well formed; right only; wrong with a walk; without; an answer only."""

    right: float = 1.0
    right_malformed: float = 0.6
    walked: float = 0.3
    unwalked: float = 0.2
    answered: float = 0.1


FULL = Tiers()
RESCALED = Tiers(1.0, 0.5, 0.25, 0.15, 0.05)
REMOVED = Tiers(walked=0.0, unwalked=0.0)  # Table 6, "Removed"


@dataclass(frozen=True)
class Form:
    """Which tags a policy writes; `think_first` asks for a thought before the first action.

    An episode is well formed iff all that the policy wrote is thoughts, calls and, last, one answer
    that is not blank: no tag inside another or left open, no text around them, no two thoughts in a
    row. [code] A call whose id is wrong is well formed; it reveals nothing.
    """

    calls: tuple[str, ...] = ("walk",)
    answer: str = "answer"
    thinking: tuple[str, ...] = ("think", "thinking")
    think_first: bool = False

    def holds(self, episode: Episode) -> bool:
        """Return whether the episode is well formed and ended in its answer."""
        if not has_answer(episode):
            return False
        written = "\n".join(s.text for s in episode.segments if s.source == "policy")
        state: State = "start"
        for part in self._parts(written):
            following = self._next(state, part)
            if following is None:
                return False
            state = following
        return state == "answered"

    def _parts(self, text: str) -> Iterator["Part"]:
        """Yield what stands in a text: whole elements by kind, and whatever else is not blank."""
        kinds: dict[str, Part] = {self.answer: "answer"}
        kinds.update((name, "call") for name in self.calls)
        kinds.update((name, "thought") for name in self.thinking)
        names = "|".join(map(re.escape, kinds))
        element = re.compile(rf"<({names})>(.*?)</\1>", re.DOTALL)
        tag = re.compile(rf"</?(?:{names})>")
        at = 0
        for match in element.finditer(text):
            if text[at : match.start()].strip() or tag.search(match[2]):
                yield "other"
            yield kinds[match[1]]
            at = match.end()
        if text[at:].strip():
            yield "other"

    def _next(self, state: "State", part: "Part") -> "State | None":
        if part == "other" or state == "answered":
            return None
        if part == "thought":
            return None if state == "thought" else "thought"
        if state == "start" and self.think_first:
            return None
        return "answered" if part == "answer" else "called"


State = Literal["start", "thought", "called", "answered"]
Part = Literal["thought", "call", "answer", "other"]
FORM = Form()


def ladder(
    tiers: Tiers = FULL, *, correct: Callable[[Episode], float] | None = None, form: Form = FORM
) -> Callable[[Episode], float]:
    """Return the reward of Eq. 3 with these tiers; `right_class` says what is correct if unsaid.

    [CNY Eq. 3, Table 6]
    """
    judge = correct or right_class

    def reward(episode: Episode) -> float:
        c, f = judge(episode) == 1, form.holds(episode)
        if c:
            return tiers.right if f else tiers.right_malformed
        if f:
            return tiers.walked if num_walks(episode) else tiers.unwalked
        return tiers.answered if has_answer(episode) else 0.0

    return reward


def right_class(episode: Episode) -> float:
    """Return 1.0 iff the answer as a whole is one of the task's answers or the id of one.

    Commas and braces are part of a class's name, and a name that contains another is another.
    Raises SettingsError for a task without answers.
    """
    task = episode.task
    if not task.answers:
        raise SettingsError(f"Task {task.id!r} has no answers, so its episodes cannot be scored.")
    given = normalized(episode.answer.text) if episode.answer else ""
    return float(given != "" and given in map(normalized, (*task.answers, *task.answer_ids)))


def hits_substring(episode: Episode) -> float:
    """Return 1.0 iff the answer, up to a `|`, stands in one of the task's answers. [CNY 5.4]

    Lenient, as G-Retriever's protocol is: "York" hits "New York". `hits_first` is the strict one.
    """
    first = normalized(episode.answer.text.split("|")[0]) if episode.answer else ""
    return float(first != "" and any(first in normalized(name) for name in episode.task.answers))


def is_well_formed(episode: Episode) -> bool:
    """Return whether the episode has CNY's format, thoughts being optional."""
    return FORM.holds(episode)


def has_answer(episode: Episode) -> bool:
    """Return whether the episode ended in an answer that is not blank."""
    return (
        episode.ending is Ending.ANSWERED
        and episode.answer is not None
        and bool(episode.answer.text.strip())
    )


def num_walks(episode: Episode) -> int:
    """Return how many calls were carried out."""
    return sum(
        isinstance(action, Call) and not observation.error
        for turn in episode.turns
        for action, observation in zip(turn.actions, turn.observations, strict=False)
    )
