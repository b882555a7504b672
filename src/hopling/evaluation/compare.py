"""Compares two evaluations question by question: the difference of a metric, and what changed."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from hopling.errors import SettingsError
from hopling.evaluation.evaluate import Evaluation, Outcome, Row
from hopling.evaluation.intervals import Estimate, bootstrap


@dataclass(frozen=True)
class Comparison:
    """The paired difference, after minus before, and the fixed/broken matrix.

    The four counts are of pairs of episodes: right in both, `fixed` (wrong, then right), `broken`
    (right, then wrong), wrong in both. `num_dropped` pairs had an episode unscored or missing.
    `calls_both_correct` is the difference in calls where both are right; None if nowhere.
    """

    metric: str
    difference: Estimate
    both_right: int
    fixed: int
    broken: int
    both_wrong: int
    num_dropped: int
    calls_both_correct: Estimate | None


def compare(before: Evaluation, after: Evaluation, *, metric: str = "exact_match") -> Comparison:
    """Return how `after` differs from `before` on the episodes of the same task and copy.

    The interval is over questions, as everywhere. Raises SettingsError if no pair has the metric.
    """
    first, second = _scored(before, metric), _scored(after, metric)
    pairs = [(first[key], second[key]) for key in first if key in second]
    difference = _difference(pairs, metric, seed=after.seed)
    if difference is None:
        raise SettingsError(
            f"no question was scored for {metric!r} in both evaluations; they need common tasks."
        )
    right = [(a.outcome is Outcome.CORRECT, b.outcome is Outcome.CORRECT) for a, b in pairs]
    both = [pair for pair, are in zip(pairs, right, strict=True) if all(are)]
    keys = {(row.task_id, row.copy) for row in (*before.rows, *after.rows)}
    return Comparison(
        metric,
        difference,
        both_right=right.count((True, True)),
        fixed=right.count((False, True)),
        broken=right.count((True, False)),
        both_wrong=right.count((False, False)),
        num_dropped=len(keys) - len(pairs),
        calls_both_correct=_difference(both, "calls", seed=after.seed),
    )


def _scored(evaluation: Evaluation, metric: str) -> Mapping[tuple[str, int], Row]:
    return {(row.task_id, row.copy): row for row in evaluation.rows if metric in row.scores}


def _difference(pairs: list[tuple[Row, Row]], metric: str, *, seed: int) -> Estimate | None:
    sums: dict[str, float] = {}
    counts: dict[str, int] = {}
    for before, after in pairs:
        change = after.scores[metric] - before.scores[metric]
        sums[before.task_id] = sums.get(before.task_id, 0.0) + change
        counts[before.task_id] = counts.get(before.task_id, 0) + 1
    rng = np.random.default_rng(seed)
    return bootstrap(list(sums.values()), list(counts.values()), rng=rng)
