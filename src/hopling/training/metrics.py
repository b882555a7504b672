"""What is watched while a student practices: numbers of each step, and alarms when one goes flat.

Pure functions over plain rows, no torch. The reward is what is optimized; nothing here is.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median
from typing import Any

from hopling.episode import Call, Ending, Episode, Malformed
from hopling.rewards.conduct import num_repeats
from hopling.training.advantages import is_flat

Row = Mapping[str, Any]

MANY_CUT = 0.5
MANY_UNSCORED = 0.2
FLAT_STEPS = 3
ENTROPY_LEFT = 0.1  # of what it was at the start
FORMAT_LOST = 0.3  # share of episodes that no longer end in an answer
KL_JUMP = 10.0  # times the median so far
DELTA_DRIFT = 0.5  # nats that the mean delta of flat groups moved by
WALKING_LOST = 0.3  # share of episodes that no longer walk


@dataclass(frozen=True)
class Digest:
    """What the metrics need of one episode; small enough to send between processes."""

    task_id: str
    reward: float | None
    correct: float
    ending: Ending
    turns: int
    calls: int
    failed_calls: int
    repeated_calls: int
    malformed_turns: int
    sampled_tokens: int
    read_tokens: int
    others: Mapping[str, float]


def digest(
    episode: Episode, *, reward: float | None, correct: float, others: Mapping[str, float]
) -> Digest:
    """Return an episode's numbers; `reward` is None when it could not be scored."""
    assert episode.ending is not None
    turns = episode.turns
    pairs = [pair for t in turns for pair in zip(t.actions, t.observations, strict=False)]
    sampled = sum(len(s.tokens) for s in episode.segments if s.source == "policy")
    total = sum(len(s.tokens) for s in episode.segments)
    return Digest(
        task_id=episode.task.id,
        reward=reward,
        correct=correct,
        ending=episode.ending,
        turns=len(episode.turns),
        calls=sum(len(turn.calls) for turn in episode.turns),
        failed_calls=sum(isinstance(a, Call) and o.error for a, o in pairs),
        repeated_calls=num_repeats(episode),
        malformed_turns=sum(
            any(isinstance(a, Malformed) for a in t.actions) for t in episode.turns
        ),
        sampled_tokens=sampled,
        read_tokens=total - sampled,
        others=others,
    )


def summarized(digests: Sequence[Digest]) -> dict[str, Any]:
    """Return the means and shares of a batch; means of scores leave unscored episodes out.

    `flat_groups` counts on the correct bit: a shaped reward may spread where nothing is right.
    """
    scored = [d for d in digests if d.reward is not None]
    groups = defaultdict(list)
    for d in scored:
        groups[d.task_id].append(d)
    calls = sum(d.calls for d in digests)
    others = sorted({name for d in scored for name in d.others})
    return {
        "reward": _mean(d.reward for d in scored if d.reward is not None),
        "correct": _mean(d.correct for d in scored),
        **{name: _mean(d.others[name] for d in scored) for name in others},
        "flat_groups": _mean(is_flat([d.correct for d in group]) for group in groups.values()),
        "flat_rewards": _mean(
            is_flat([d.reward for d in group if d.reward is not None]) for group in groups.values()
        ),
        "episodes": len(digests),
        "endings": {e.value: sum(d.ending is e for d in digests) for e in Ending},
        "answered": _mean(d.ending is Ending.ANSWERED for d in scored),
        "cut": _mean(d.ending in (Ending.CUT, Ending.CONTEXT_FULL) for d in scored),
        "unscored": 1 - len(scored) / len(digests),
        "tool_errors": sum(d.failed_calls for d in digests) / calls if calls else 0.0,
        "repeats": sum(d.repeated_calls for d in digests) / calls if calls else 0.0,
        "malformed": _mean(d.malformed_turns > 0 for d in scored),
        "calls": _mean(d.calls for d in scored),
        "turns": _mean(d.turns for d in scored),
        "sampled_tokens": _mean(d.sampled_tokens for d in scored),
        "read_tokens": _mean(d.read_tokens for d in scored),
    }


def ratios(sums: Sequence[Mapping[str, tuple[float, float]]]) -> dict[str, float | None]:
    """Return by name the sum over all processes, divided by what it is divided by.

    >>> ratios([{"delta": (1.0, 2.0)}, {"delta": (2.0, 2.0), "leaks": (0.0, 0.0)}])
    {'delta': 0.75, 'leaks': None}
    """
    totals: dict[str, tuple[float, float]] = {}
    for own in sums:
        for name, (value, size) in own.items():
            before = totals.get(name, (0.0, 0.0))
            totals[name] = (before[0] + value, before[1] + size)
    return {name: value / size if size else None for name, (value, size) in totals.items()}


def alarms(history: Sequence[Row]) -> list[str]:
    """Return a sentence for each collapse that the last step shows, or nothing.

    >>> alarms([{"step": 1, "cut": 0.75}])
    ['75 % of the episodes ran out of tokens: raise max_turn_tokens or max_tokens.']
    """
    history = [row for row in history if row.get("step", 0) > 0]
    if not history:
        return []
    last, found = history[-1], []
    if (last.get("cut") or 0.0) > MANY_CUT:
        share = f"{100 * last['cut']:.0f} %"
        found.append(
            f"{share} of the episodes ran out of tokens: raise max_turn_tokens or max_tokens."
        )
    if last.get("unscored", 0.0) > MANY_UNSCORED:
        share = f"{100 * last['unscored']:.0f} %"
        found.append(f"{share} of the episodes could not be scored: look at the graph's server.")
    recent = [row.get("flat_rewards") for row in history[-FLAT_STEPS:]]
    if recent == [1.0] * FLAT_STEPS:
        found.append(
            f"no group has had any spread for {FLAT_STEPS} steps, so nothing is learned: "
            "take harder or easier tasks, or a warmer start."
        )
    entropies = _column(history, "entropy")
    if len(entropies) > FLAT_STEPS:
        first = median(entropies[:FLAT_STEPS])
        if entropies[-1] < ENTROPY_LEFT * first:
            found.append(
                f"entropy fell from {first:.3g} to {entropies[-1]:.3g}: episodes of a task have "
                "become alike; lower learning_rate or raise kl."
            )
    answered = _column(history, "answered")
    if len(answered) > 1 and answered[-1] < max(answered) - FORMAT_LOST:
        found.append(
            f"episodes that end in an answer fell from {100 * max(answered):.0f} % to "
            f"{100 * answered[-1]:.0f} %: the format is being unlearned."
        )
    found += _credit_alarms(history)
    divergences = _column(history, "kl")
    if len(divergences) > FLAT_STEPS:
        usual = median(divergences[:-1])
        if divergences[-1] > max(1.0, KL_JUMP * usual):
            found.append(
                f"kl jumped to {divergences[-1]:.3g} (usual: {usual:.3g}): lower learning_rate."
            )
    return found


def _credit_alarms(history: Sequence[Row]) -> list[str]:
    """Return what hindsight shows: in a flat group a mean delta pays for walking itself."""
    found = []
    deltas = _column(history, "delta_flat")
    if len(deltas) >= 2 * FLAT_STEPS:
        first, last = fmean(deltas[:FLAT_STEPS]), fmean(deltas[-FLAT_STEPS:])
        if abs(last - first) > DELTA_DRIFT:
            found.append(
                f"mean delta in flat groups drifted from {first:.2g} to {last:.2g}, which rewards "
                "or punishes walking itself: set opsd.gate or opsd.clip."
            )
    walking = _column(history, "walking")
    if len(walking) > 1 and walking[-1] < max(walking) - WALKING_LOST:
        found.append(
            f"episodes that walk fell from {100 * max(walking):.0f} % to {100 * walking[-1]:.0f} %."
        )
    return found


def _column(history: Sequence[Row], name: str) -> list[float]:
    return [row[name] for row in history if row.get(name) is not None]


def _mean(values: Iterable[float]) -> float | None:
    found = [float(value) for value in values]
    return fmean(found) if found else None
