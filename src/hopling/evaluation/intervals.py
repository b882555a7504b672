"""Means with bootstrap intervals over questions.

The questions are what is drawn again: episodes of one question depend on each other. All resamples
are drawn and summed by numpy at once, in blocks that bound the memory.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

RESAMPLES = 2000
LEVEL = 0.95
_BLOCK = 2**22  # numbers held at a time


@dataclass(frozen=True)
class Estimate:
    """A value with the ends of its 95 % interval, and over how many questions."""

    value: float
    low: float
    high: float
    num: int


def bootstrap(
    sums: Sequence[float], counts: Sequence[float], *, rng: np.random.Generator
) -> Estimate | None:
    """Return sum(sums) / sum(counts) with its percentile interval, questions drawn with return.

    Entry i belongs to question i: the sum of its values, and how many there are. A question
    without values counts for nothing; None if no question has any. [Efron 1979]

    >>> bootstrap([1.0, 0.0], [1, 1], rng=np.random.default_rng(0))
    Estimate(value=0.5, low=0.0, high=1.0, num=2)
    """
    pairs = np.array([sums, counts], dtype=np.float64).T
    pairs = pairs[pairs[:, 1] > 0]
    num = len(pairs)
    if num == 0:
        return None
    draws = np.empty((RESAMPLES, 2))
    block = max(1, _BLOCK // num)
    for start in range(0, RESAMPLES, block):
        rows = min(block, RESAMPLES - start)
        drawn = rng.integers(0, num, size=(rows, num))
        for column in range(2):
            draws[start : start + rows, column] = pairs[drawn, column].sum(axis=1)
    tail = 100 * (1 - LEVEL) / 2
    low, high = np.percentile(draws[:, 0] / draws[:, 1], [tail, 100 - tail])
    total, count = pairs.sum(axis=0)
    return Estimate(float(total / count), float(low), float(high), num)
