"""Traces for the student: a teacher plays tasks, and what is right and ran is kept. [SoG-R1 4.2]

The teacher is any policy: a `Compiler`, or a model behind a server that is shown the gold query.
"""

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from statistics import quantiles
from typing import Protocol, runtime_checkable

from hopling import records
from hopling.environment import Environment
from hopling.episode import Ending, Episode, Task
from hopling.errors import SettingsError
from hopling.rewards.conduct import num_calls
from hopling.rollout import Policy, rollout

Scorer = Callable[[Episode], float]
KEPT = "kept"


@runtime_checkable
class Explains(Protocol):
    """A policy that can say why an episode of its own failed."""

    def explain(self, episode: Episode) -> str | None: ...


@dataclass(frozen=True)
class Traces:
    """The episodes that were kept, and what became of each task, by class.

    `classes` maps a class of tasks to how many were kept and how many dropped for which reason.
    """

    kept: tuple[Episode, ...]
    classes: Mapping[str, Mapping[str, int]]

    @cached_property
    def dropped(self) -> dict[str, int]:
        """The number of episodes dropped for each reason, the most frequent first."""
        counts: Counter[str] = Counter()
        for outcomes in self.classes.values():
            counts.update({reason: n for reason, n in outcomes.items() if reason != KEPT})
        return dict(counts.most_common())

    @property
    def retention(self) -> float:
        """The share of all tasks whose episode was kept, 0.0 without any task."""
        total = len(self.kept) + sum(self.dropped.values())
        return len(self.kept) / max(1, total)

    @property
    def free_calls(self) -> float:
        """The 75th percentile of the calls in the kept episodes, T_d. [SoG-R1 4.4, 5.1]

        Raises SettingsError when no episode was kept.
        """
        if not self.kept:
            raise SettingsError("no trace was kept, so there is no number of calls to aim at.")
        calls = [num_calls(episode) for episode in self.kept]
        return quantiles(calls, n=4, method="inclusive")[2] if len(calls) > 1 else calls[0]

    def table(self) -> str:
        """Return the retention by class, with the reasons of what was dropped."""
        lines = ["class                 tasks   kept  share  dropped"]
        for name, outcomes in sorted(self.classes.items()):
            total, kept = sum(outcomes.values()), outcomes.get(KEPT, 0)
            reasons = sorted(
                ((n, reason) for reason, n in outcomes.items() if reason != KEPT), reverse=True
            )
            why = "; ".join(f"{n} {reason}" for n, reason in reasons)
            lines.append(f"{name:20} {total:6} {kept:6} {kept / total:6.1%}  {why}".rstrip())
        return "\n".join(lines)


def teach(
    policy: Policy,
    environment: Environment,
    tasks: Sequence[Task],
    *,
    keep: Sequence[Scorer],
    seed: int = 0,
    record: Path | None = None,
) -> Traces:
    """Play each task once and keep the episodes that every scorer of `keep` gives at least 1.

    Each episode is appended to `record` as it ends, and what stands there is not played again; an
    episode in which the world failed is not recorded, so a later run plays it. The paper keeps
    `exact_match` and `all_calls_ran`.
    """
    episodes = played(policy, environment, tasks, seed=seed, record=record)
    explain = policy.explain if isinstance(policy, Explains) else lambda episode: None
    return retained(episodes, keep=keep, explain=explain)


def played(
    policy: Policy,
    environment: Environment,
    tasks: Sequence[Task],
    *,
    seed: int,
    record: Path | None = None,
) -> list[Episode]:
    """Return an episode of each task: the recorded one, or one that is played and recorded."""
    done = _recorded(record, tasks) if record else {}
    missing = [task for task in tasks if task.id not in done]

    def ended(episode: Episode) -> None:
        if record and episode.ending is not Ending.UNSCORED:
            records.append(record, episode.to_json())

    for episode in rollout(policy, environment, missing, seed=seed, on_end=ended):
        done[episode.task.id] = episode
    return [done[task.id] for task in tasks]


def retained(
    episodes: Sequence[Episode],
    *,
    keep: Sequence[Scorer],
    explain: Callable[[Episode], str | None] = lambda episode: None,
) -> Traces:
    """Return the episodes that every scorer gives at least 1, and the reasons for the others."""
    kept: list[Episode] = []
    classes: dict[str, Counter[str]] = {}
    for episode in episodes:
        reason = _reason(episode, keep, explain)
        classes.setdefault(task_class(episode.task), Counter())[reason or KEPT] += 1
        if reason is None:
            kept.append(episode)
    return Traces(tuple(kept), classes)


def task_class(task: Task) -> str:
    """Return the class under which a task is counted: its pattern, function, type or hops."""
    parts = [str(task.hints[key]) for key in ("pattern", "function") if task.hints.get(key)]
    if parts:
        return " ".join(part for part in parts if part != "none")
    hops = task.hints.get("hops")
    return f"{hops} hop" if hops else "all"


def _reason(
    episode: Episode, keep: Sequence[Scorer], explain: Callable[[Episode], str | None]
) -> str | None:
    if episode.ending is Ending.UNSCORED:
        # what stands in brackets differs from episode to episode
        return f"unscored: {re.sub(r' *[(][^)]*[)]', '', episode.reason)}".rstrip(": ")
    failed = next((scorer for scorer in keep if scorer(episode) < 1.0), None)
    if failed is None:
        return None
    if said := explain(episode):
        return said
    if episode.ending is not Ending.ANSWERED:
        return episode.ending.value if episode.ending else "not ended"
    return f"{getattr(failed, '__name__', 'a scorer').replace('_', ' ')} failed"


def _recorded(record: Path, tasks: Sequence[Task]) -> dict[str, Episode]:
    """Return the recorded episode of each task.

    Raises SettingsError when one of them was recorded for another question.
    """
    wanted = {task.id: task for task in tasks}
    done: dict[str, Episode] = {}
    for row in records.read(record):
        episode = Episode.from_json(row)
        task = wanted.get(episode.task.id)
        if task and task.question != episode.task.question:
            raise SettingsError(
                f"{record} holds task {task.id!r} with the question {episode.task.question!r}, "
                f"and now it is {task.question!r}. Take another file for other tasks."
            )
        if task:
            done[task.id] = replace(episode, task=task)
    return done
