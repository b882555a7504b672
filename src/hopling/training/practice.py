"""Plays the tasks of each step, scores them, and reports what came of it; no loss, no optimizer."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from time import monotonic, process_time
from typing import Any, Protocol, TypeVar

from accelerate import PartialState
from accelerate.utils import gather_object
from peft import PeftModel
from rich.text import Text
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from hopling.environment import Environment
from hopling.episode import Completion, Encoder, Ending, Episode, Task, View
from hopling.errors import WorldError
from hopling.policies.sampling import Sampling
from hopling.rollout import Policy, rollout
from hopling.training.advantages import by_group, centered, standardized
from hopling.training.metrics import Digest, digest, ratios, summarized
from hopling.training.preview import preview
from hopling.training.runs import trimmed
from hopling.training.settings import GRPO
from hopling.training.trainer import Batch

Scorer = Callable[[Episode], float]
Row = dict[str, Any]
Show = Callable[[Text], None]
Playing = Callable[[Sampling], AbstractContextManager[Policy]]


class Student(Protocol):
    """A policy with a model in this process, which is trained in place."""

    sampling: Sampling

    @property
    def model(self) -> PreTrainedModel | PeftModel: ...

    @property
    def tokenizer(self) -> PreTrainedTokenizerBase: ...

    @property
    def encoder(self) -> Encoder: ...

    @property
    def max_live(self) -> int: ...

    @property
    def concurrent(self) -> bool: ...

    def generate(self, views: Sequence[View], stops: Sequence[str]) -> list[Completion]: ...

    def forget(self) -> None: ...


AnyStudent = TypeVar("AnyStudent", bound=Student)


def is_rewarded(reward: float) -> float:
    """Return 1.0 for a positive reward, the default meaning of correct."""
    return float(reward > 0)


@dataclass(frozen=True)
class Scored:
    """An episode with its reward, None where the world failed."""

    episode: Episode
    digest: Digest

    @property
    def reward(self) -> float | None:
        """The reward that is optimized."""
        return self.digest.reward


@dataclass(frozen=True)
class Credited:
    """What is added to the advantage of each token, (T,) for each episode.

    `sums` are logged: by name a sum and what it is divided by, added over the processes.
    """

    terms: Sequence[Sequence[float]]
    sums: Mapping[str, tuple[float, float]] = field(default_factory=dict)


Credit = Callable[[Sequence[Scored], Student], Credited]


@dataclass(frozen=True)
class Goal:
    """What is optimized, and what is watched.

    `correct` is the bit that validation and the share of flat groups go by; where it is None, a
    positive reward counts as correct. `metrics` are only watched. `credit` adds to the advantage
    of each token. A scorer that raises WorldError leaves the episode unscored.
    """

    reward: Scorer
    correct: Scorer | None = None
    metrics: Mapping[str, Scorer] = field(default_factory=dict)
    credit: tuple[Credit, ...] = ()


@dataclass(frozen=True)
class Run:
    """Where a run is kept, what it is validated on, and who is told of it.

    `on_step` gets the row that went to `metrics.jsonl`, alarms included; `show` gets a colored
    sample of what is trained on before the first update.
    """

    output_dir: Path
    valid: Sequence[Task] = ()
    resume: bool = False
    on_step: Callable[[Row], None] | None = None
    show: Show | None = None


class Practice:
    """The rollouts of a run: those that are trained on, and those that validate.

    `playing` gives the policy for a while: the student itself, or vLLM with its weights.
    Sampling depends on the run's seed, the step, the task and the copy, never on a global state.
    """

    def __init__(
        self,
        student: Student,
        environment: Environment,
        *,
        order: Sequence[Sequence[Task]],
        goal: Goal,
        settings: GRPO,
        run: Run,
    ) -> None:
        self.student, self.environment, self.order = student, environment, order
        self.goal, self.settings, self.run = goal, settings, run
        self.playing: Playing = partial(sampling_as, student)
        self.state = PartialState()
        self.rollout_row: Row = {}
        rank = self.state.process_index
        self.episodes = run.output_dir / (
            "episodes.jsonl" if not rank else f"episodes-{rank}.jsonl"
        )

    def begin(self, done: int) -> None:
        """Drop the recorded episodes of steps after the one that a run resumes from."""
        trimmed(self.episodes, keep_until=done)

    def play(self, rows: Sequence[int]) -> Batch:
        """Return the episodes of the rows; row r is task r % batch_size of step r // batch_size."""
        size = self.settings.batch_size
        step = rows[0] // size
        tasks = [self.order[row // size][row % size] for row in rows]
        started, started_cpu = monotonic(), process_time()
        seed = self.settings.seed * 1_000_003 + step
        with self.playing(self._sampling()) as policy:
            episodes = rollout(policy, self.environment, tasks, seed=seed)
        rollout_s, rollout_cpu_s = monotonic() - started, process_time() - started_cpu
        scored = self._scored(episodes)
        self._record(scored, step + 1)
        digests = gather_object([s.digest for s in scored])
        self.rollout_row = {
            **summarized(digests),
            "rollout_seconds": rollout_s,
            "rollout_cpu_seconds": rollout_cpu_s,
        }
        started, started_cpu = monotonic(), process_time()
        batch = self._batch(scored)
        self.rollout_row["credit_seconds"] = monotonic() - started
        self.rollout_row["credit_cpu_seconds"] = process_time() - started_cpu
        if step == 0 and self.run.show and self.state.is_main_process:
            self._show(batch)
        return batch

    def validate(self) -> Row:
        """Return the student's greedy scores on the validation tasks, as `valid_*`."""
        rank, processes = self.state.process_index, self.state.num_processes
        own = self.run.valid[rank::processes]
        with self.playing(replace(self._sampling(), temperature=0.0)) as policy:
            episodes = rollout(policy, self.environment, own, seed=self.settings.seed)
        found = summarized(gather_object([s.digest for s in self._scored(episodes)]))
        names = ("correct", "reward", "calls", "answered", "cut", "unscored", *self.goal.metrics)
        return {f"valid_{name}": found.get(name) for name in names}

    def _sampling(self) -> Sampling:
        chosen = self.settings
        return Sampling(chosen.temperature, chosen.top_p, chosen.top_k, chosen.max_turn_tokens)

    def _scored(self, episodes: Sequence[Episode]) -> list[Scored]:
        return [Scored(episode, self._digest(episode)) for episode in episodes]

    def _digest(self, episode: Episode) -> Digest:
        unscored = partial(digest, episode, reward=None, correct=0.0)
        if episode.ending is Ending.UNSCORED:
            return unscored(others={})
        try:
            reward = float(self.goal.reward(episode))
            correct = self.goal.correct(episode) if self.goal.correct else is_rewarded(reward)
            others = {name: float(scorer(episode)) for name, scorer in self.goal.metrics.items()}
        except WorldError as error:
            episode.ending, episode.reason = Ending.UNSCORED, str(error)
            return unscored(others={})
        return digest(episode, reward=reward, correct=float(correct), others=others)

    def _batch(self, scored: Sequence[Scored]) -> Batch:
        episodes = [s.episode for s in scored]
        left_out = self.settings.cut_episodes == "left out"
        trained = [
            s.reward is not None
            and not (left_out and s.episode.ending in (Ending.CUT, Ending.CONTEXT_FULL))
            for s in scored
        ]
        advantage = standardized if self.settings.advantage == "standardized" else centered
        groups = [e.task.id for e in episodes]
        values = by_group(groups, [s.reward for s in scored], advantage)
        tokens = [[v] * len(e.tokens) for v, e in zip(values, episodes, strict=True)]
        for credit in self.goal.credit:
            credited = credit(scored, self.student)
            tokens = [
                [a + t for a, t in zip(own, term, strict=True)]
                for own, term in zip(tokens, credited.terms, strict=True)
            ]
            self.rollout_row |= ratios(gather_object([dict(credited.sums)]))
        return Batch(episodes, trained, tokens)

    def _record(self, scored: Sequence[Scored], step: int) -> None:
        with self.episodes.open("a", encoding="utf-8") as file:
            for s in scored:
                row = {"step": step, "reward": s.reward, "correct": s.digest.correct}
                file.write(json.dumps({**row, **s.episode.to_json()}) + "\n")

    def _show(self, batch: Batch) -> None:
        assert self.run.show is not None
        signs = [max(own, default=0.0, key=abs) for own in batch.advantages]
        told = [b for b, sign in enumerate(signs) if sign][:2] or [0]
        episodes = [batch.episodes[b] for b in told]
        shown = preview(episodes, self.student.tokenizer, advantages=[signs[b] for b in told])
        self.run.show(shown)


@contextmanager
def sampling_as(student: Student, sampling: Sampling) -> Iterator[Student]:
    """Let the student play, sampling another way, for a while."""
    before, student.sampling = student.sampling, sampling
    try:
        yield student
    finally:
        student.sampling = before
        student.forget()
