"""Advantages: what an episode's reward is worth beside the other episodes of its task.

Plain lists and no torch. A group is every episode of one task, wherever it stands in the batch.
An episode that could not be scored has the reward None: it counts in no mean and no spread.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence
from math import sqrt

Advantage = Callable[[Sequence[float]], list[float]]


def standardized(rewards: Sequence[float], *, epsilon: float = 1e-6) -> list[float]:
    """Return each episode's advantage within its group, (r - mean) / (std + epsilon).

    The std is the population's. A group of equal rewards gets 0.0 throughout.
    [GTA-RAG Eq. 20, CNY Eq. 5]

    >>> [round(a, 3) for a in standardized([0.0, 1.0])]
    [-1.0, 1.0]
    """
    centers = centered(rewards)
    spread = sqrt(sum(c * c for c in centers) / len(centers)) if centers else 0.0
    return [c / (spread + epsilon) for c in centers]


def centered(rewards: Sequence[float]) -> list[float]:
    """Return each episode's advantage within its group, r - mean, as Dr. GRPO does.

    A group of equal rewards gets 0.0 throughout, whatever rounding does to its mean.

    >>> centered([0.0, 0.0, 1.5])
    [-0.5, -0.5, 1.0]
    """
    if is_flat(rewards):
        return [0.0] * len(rewards)
    mean = sum(rewards) / len(rewards)
    return [r - mean for r in rewards]


def is_flat(rewards: Sequence[float]) -> bool:
    """Return whether a group's rewards are all equal, so that it teaches nothing.

    >>> is_flat([0.1, 0.1, 0.1]), is_flat([0.0, 0.1])
    (True, False)
    """
    return not rewards or min(rewards) == max(rewards)


def by_group(
    groups: Sequence[str], rewards: Sequence[float | None], advantage: Advantage
) -> list[float]:
    """Return the advantages of a batch, in its order; an unscored episode gets 0.0.

    `groups` names each episode's task. The order of the batch changes nothing.

    >>> by_group(["a", "b", "a", "b"], [0.0, 1.0, 1.0, None], centered)
    [-0.5, 0.0, 0.5, 0.0]
    """
    members = defaultdict(list)
    for position, (group, reward) in enumerate(zip(groups, rewards, strict=True)):
        if reward is not None:
            members[group].append((reward, position))
    result = [0.0] * len(groups)
    for scored in members.values():
        scored.sort()  # floating-point sums depend on the order
        for (_, position), value in zip(scored, advantage([r for r, _ in scored]), strict=True):
            result[position] = value
    return result
