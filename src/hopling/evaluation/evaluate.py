"""Plays tasks and judges the episodes: each metric by name, with an interval over questions."""

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cached_property, partial

import numpy as np

from hopling.environment import Environment
from hopling.episode import Completion, Encoder, Ending, Episode, Prompt, Task, View
from hopling.errors import SettingsError
from hopling.evaluation.episode_log import EpisodeLog, Played
from hopling.evaluation.intervals import Estimate, bootstrap
from hopling.rewards.answers import (
    exact_match,
    f1,
    grounded,
    hits_any,
    hits_first,
    normalized,
    observed,
    ungrounded,
)
from hopling.rewards.conduct import num_calls, num_repeats
from hopling.rollout import Policy, play, sampling_seed

Scorer = Callable[[Episode], float]

METRICS: Mapping[str, tuple[str, str]] = {
    "exact_match": ("Exact match", "the set of names answered is the gold set"),
    "hits_first": ("Hits@1, first", "the first name answered is gold"),
    "hits_any": ("Hits@1, any", "any name answered is gold"),
    "f1": ("F1", "harmonic mean of precision and recall over the set of names"),
    "observed": ("Gold observed", "every gold name stood in an observation"),
    "grounded": ("Grounded", "share of the names answered that stood in an observation"),
    "recalled": ("Recalled", "exact match, though a name answered stood in no observation"),
    "calls": ("Calls", "tool calls per episode"),
    "repeats": ("Repeats", "share of an episode's calls that ask what it had asked before"),
    "turns": ("Turns", "turns per episode, the answer's included"),
    "tokens": ("Tokens", "tokens that the policy wrote per episode"),
    "seconds": ("Seconds", "from an episode's first turn to its end; a batch shares the clock"),
}


class Outcome(Enum):
    """What became of an episode."""

    CORRECT = "correct"
    WRONG = "wrong"
    NO_ANSWER = "no answer"
    CUT = "cut"  # a turn hit the length limit, or the context was full
    WORLD_FAILURE = "world failure"


@dataclass(frozen=True)
class Row:
    """One episode's scores; an unscored episode has none."""

    task_id: str
    copy: int
    outcome: Outcome
    scores: Mapping[str, float]
    hops: str = ""
    qtype: str = ""
    unseen: bool = False


@dataclass(frozen=True)
class Summary:
    """The numbers of an evaluation, each with its interval, as a report shows them."""

    num_tasks: int
    num_episodes: int
    means: Mapping[str, Estimate]
    calls_per_correct: Estimate | None
    by_hops: Mapping[str, Mapping[str, Estimate]]
    by_qtype: Mapping[str, Mapping[str, Estimate]]
    outcomes: Mapping[str, int]


@dataclass(frozen=True)
class Evaluation:
    """The episodes of one policy on some tasks, and a row of scores for each.

    `seed` fixes the intervals too. Unscored episodes are in `outcomes` and in no mean.
    """

    seed: int
    episodes: tuple[Episode, ...]
    rows: tuple[Row, ...] = field(repr=False)

    @property
    def num_tasks(self) -> int:
        """The number of questions, however many copies of each were played."""
        return len({row.task_id for row in self.rows})

    @property
    def outcomes(self) -> dict[str, int]:
        """The number of episodes per outcome; every outcome is named."""
        counts = Counter(row.outcome for row in self.rows)
        return {outcome.value: counts[outcome] for outcome in Outcome}

    def where(self, keep: Callable[[Row], bool]) -> "Evaluation":
        """Return the part of the evaluation whose rows are kept."""
        pairs = zip(self.episodes, self.rows, strict=True)
        kept = [(episode, row) for episode, row in pairs if keep(row)]
        return Evaluation(self.seed, tuple(e for e, _ in kept), tuple(r for _, r in kept))

    def with_metric(self, name: str, scorer: Scorer) -> "Evaluation":
        """Return the evaluation with one more score in every scored row."""
        rows = [
            replace(row, scores={**row.scores, name: scorer(episode)}) if row.scores else row
            for episode, row in zip(self.episodes, self.rows, strict=True)
        ]
        return replace(self, rows=tuple(rows))

    def judged_by(self, correct: Scorer, metrics: Mapping[str, Scorer]) -> "Evaluation":
        """Return the evaluation by another meaning of correct, which `exact_match` shows then.

        Every scored row gets the metrics too.
        """
        rows = []
        for episode, row in zip(self.episodes, self.rows, strict=True):
            if row.scores:
                found = {name: float(scorer(episode)) for name, scorer in metrics.items()}
                found["exact_match"] = float(correct(episode))
                outcome = row.outcome
                if outcome in (Outcome.CORRECT, Outcome.WRONG):
                    outcome = Outcome.CORRECT if found["exact_match"] == 1 else Outcome.WRONG
                row = replace(row, scores={**row.scores, **found}, outcome=outcome)
            rows.append(row)
        return replace(self, rows=tuple(rows))

    def mean(self, name: str) -> Estimate | None:
        """Return the mean of a score with its interval; None if no episode has the score."""
        sums: Counter[str] = Counter()
        counts: Counter[str] = Counter()
        for row in self.rows:
            if name in row.scores:
                sums[row.task_id] += row.scores[name]  # type: ignore[assignment]
                counts[row.task_id] += 1
        tasks = list(counts)
        rng = np.random.default_rng(self.seed)
        return bootstrap([sums[t] for t in tasks], [counts[t] for t in tasks], rng=rng)

    @cached_property
    def calls_per_correct(self) -> Estimate | None:
        """The mean number of calls of the correct episodes; None if none is. [SoG-R1 Table 4]"""
        return self.where(lambda row: row.outcome is Outcome.CORRECT).mean("calls")

    def summary(self) -> Summary:
        """Return all numbers, overall and by the hops and the question types of the tasks."""
        return Summary(
            self.num_tasks,
            len(self.rows),
            self._means(),
            self.calls_per_correct,
            {hops: part._means() for hops, part in self._parts(lambda row: row.hops).items()},
            {qtype: part._means() for qtype, part in self._parts(lambda row: row.qtype).items()},
            self.outcomes,
        )

    def _means(self) -> dict[str, Estimate]:
        names = dict.fromkeys(name for row in self.rows for name in row.scores)
        means = {name: self.mean(name) for name in names}
        return {name: mean for name, mean in means.items() if mean is not None}

    def _parts(self, group: Callable[[Row], str]) -> "dict[str, Evaluation]":
        names = sorted({group(row) for row in self.rows} - {""}, key=lambda name: (len(name), name))
        return {name: self.where(partial(_is_in, group, name)) for name in names}


def evaluate(
    policy: Policy,
    environment: Environment,
    tasks: Sequence[Task],
    *,
    seed: int,
    log: EpisodeLog | None = None,
    on_end: Callable[[Episode], None] | None = None,
) -> Evaluation:
    """Play one episode per task and return the scores; a task that stands G times gets G copies.

    Episodes that the log holds are not played again, unless the world failed in them, and the
    result is the same as that of one run. `on_end` is called for those that are played.
    Raises SettingsError if a task has no answers or the log holds an episode of another seed.
    """
    for task in tasks:
        if not any(map(normalized, task.answers)):
            raise SettingsError(f"task {task.id!r} has no answers to compare with; leave it out.")
    log = log or EpisodeLog()
    jobs = _numbered(tasks)
    seeds = {(task.id, copy): sampling_seed(seed, task.id, copy) for task, copy in jobs}
    done = {played.key: played for played in log.read() if played.key in seeds}
    done = {k: p for k, p in done.items() if p.episode.ending is not Ending.UNSCORED}
    for key, played in done.items():
        if played.episode.seed != seeds[key]:
            raise SettingsError(
                f"{log.path} holds task {key[0]!r} played with another seed than {seed}. "
                "Take that seed or another run folder."
            )
    clocked = _Clocked(policy)
    copies: dict[int, int] = {}
    episodes: list[Episode] = []
    for task, copy in jobs:
        if (task.id, copy) not in done:
            episode = environment.begin(task, policy.encoder, seed=seeds[task.id, copy])
            copies[episode.key] = copy
            episodes.append(episode)

    def ended(episode: Episode) -> None:
        seconds = round(clocked.seconds(episode), 3)  # as the log holds it
        played = Played(episode, copies[episode.key], seconds)
        done[played.key] = played
        log.add(played)
        if on_end:
            on_end(episode)

    play(clocked, environment, episodes, on_end=ended)
    return judged([done[task.id, copy] for task, copy in jobs], seed=seed)


def judged(played: Sequence[Played], *, seed: int) -> Evaluation:
    """Return the evaluation of episodes that were played, such as a log's."""
    rows = tuple(_row(p) for p in played)
    return Evaluation(seed, tuple(p.episode for p in played), rows)


def closed_book(environment: Environment) -> Environment:
    """Return the environment without tools: one turn, in which the policy answers from memory.

    Its score is what the weights know, the baseline that a score with tools is read against.
    """

    def prompt(task: Task) -> Prompt:
        told = environment.prompt(task)
        told = Prompt(told) if isinstance(told, str) else told
        ask = "There is no tool this time. Give the final answer right away."
        return replace(told, user=f"{told.user}\n\n{ask}")

    return replace(environment, prompt=prompt, tools=(), max_turns=1)


class _Clocked:
    """A policy that remembers when each episode got its first turn."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._started: dict[int, float] = {}

    @property
    def encoder(self) -> Encoder | None:
        return self._policy.encoder

    @property
    def max_live(self) -> int:
        return self._policy.max_live

    @property
    def concurrent(self) -> bool:
        return self._policy.concurrent

    def generate(self, views: Sequence[View], stops: Sequence[str]) -> list[Completion]:
        for view in views:
            self._started.setdefault(view.key, time.perf_counter())
        return self._policy.generate(views, stops)

    def seconds(self, episode: Episode) -> float:
        end = time.perf_counter()
        return end - self._started.get(episode.key, end)


def _is_in(group: Callable[[Row], str], name: str, row: Row) -> bool:
    return group(row) == name


def _numbered(tasks: Sequence[Task]) -> list[tuple[Task, int]]:
    seen: Counter[str] = Counter()
    jobs: list[tuple[Task, int]] = []
    for task in tasks:
        jobs.append((task, seen[task.id]))
        seen[task.id] += 1
    return jobs


def _row(played: Played) -> Row:
    episode = played.episode
    hints = episode.task.hints
    outcome = _outcome(episode)
    return Row(
        episode.task.id,
        played.copy,
        outcome,
        {} if outcome is Outcome.WORLD_FAILURE else _scores(played),
        hops=str(hints.get("hops", "")),
        qtype=str(hints.get("qtype", "")),
        unseen=hints.get("split") == "unseen",
    )


def _scores(played: Played) -> dict[str, float]:
    episode = played.episode
    calls, is_exact = num_calls(episode), exact_match(episode)
    scores = {
        "exact_match": float(is_exact),
        "hits_first": float(hits_first(episode)),
        "hits_any": float(hits_any(episode)),
        "f1": float(f1(episode)),
        "observed": float(observed(episode) == 1),
        "grounded": float(grounded(episode)),
        "recalled": float(is_exact == 1 and bool(ungrounded(episode))),
        "calls": float(calls),
        "repeats": num_repeats(episode) / max(1, calls),
        "turns": float(len(episode.turns)),
        "seconds": played.seconds,
    }
    if any(episode.sampled):  # a remote policy does not tell its tokens
        scores["tokens"] = float(sum(episode.sampled))
    return scores


def _outcome(episode: Episode) -> Outcome:
    if episode.ending is Ending.UNSCORED:
        return Outcome.WORLD_FAILURE
    if episode.ending in (Ending.CUT, Ending.CONTEXT_FULL):
        return Outcome.CUT
    if episode.answer is None or not episode.answer.text.strip():
        return Outcome.NO_ANSWER
    return Outcome.CORRECT if exact_match(episode) == 1 else Outcome.WRONG
