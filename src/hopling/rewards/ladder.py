"""CNY's reward: what a right answer, a valid format, a walk and an answer at all are worth."""

from collections.abc import Callable
from dataclasses import dataclass

from hopling.episode import Answer, Call, Ending, Episode
from hopling.rewards.answers import exact_match


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


def ladder(
    tiers: Tiers = FULL, *, correct: Callable[[Episode], float] = exact_match
) -> Callable[[Episode], float]:
    """Return the reward of Eq. 3 with these tiers. [CNY Eq. 3, Table 6]"""

    def reward(episode: Episode) -> float:
        c, f = correct(episode) == 1, is_well_formed(episode)
        if c:
            return tiers.right if f else tiers.right_malformed
        if f:
            return tiers.walked if num_walks(episode) else tiers.unwalked
        return tiers.answered if episode.answer else 0.0

    return reward


def is_well_formed(episode: Episode) -> bool:
    """Return whether every turn is one action and the last one a clean answer."""
    if episode.ending is not Ending.ANSWERED:
        return False
    *before, last = episode.turns
    walks = all(len(t.actions) == 1 and isinstance(t.actions[0], Call) for t in before)
    answer = last.actions[0]
    return walks and isinstance(answer, Answer) and answer.clean


def num_walks(episode: Episode) -> int:
    """Return how many calls were carried out."""
    return sum(
        isinstance(action, Call) and not observation.error
        for turn in episode.turns
        for action, observation in zip(turn.actions, turn.observations, strict=False)
    )
