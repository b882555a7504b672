"""GRPO: the student plays each task several times and learns from what sets its episodes apart.

The loss, the optimizer, checkpoints and processes are TRL's; episodes, groups, advantages, credit,
validation and metrics are ours. [SoG-R1 4.4; GTA-RAG Eq. 20; CNY Eq. 5]
"""

import os
from collections.abc import Sequence
from copy import deepcopy
from pathlib import Path
from time import monotonic, process_time
from typing import Any

from accelerate import PartialState
from datasets import Dataset
from peft import PeftModel
from transformers import PreTrainedModel, TrainerCallback
from trl import GRPOConfig

from hopling.environment import Environment
from hopling.episode import Task
from hopling.errors import SettingsError
from hopling.training.batches import task_order
from hopling.training.metrics import alarms
from hopling.training.practice import AnyStudent, Goal, Practice, Run
from hopling.training.processes import refuse_split_weights
from hopling.training.runs import (
    Best,
    Log,
    adapter,
    common_arguments,
    last_checkpoint,
    restored,
    settle,
    silence,
    to_train,
    whole,
)
from hopling.training.settings import GRPO
from hopling.training.trainer import EpisodeTrainer
from hopling.training.vllm import arguments as vllm_arguments
from hopling.training.vllm import playing, served

NAMES = {  # TRL's name of each number of an update, and ours
    "loss": "loss",
    "entropy": "entropy",
    "kl": "kl",
    "grad_norm": "grad_norm",
    "learning_rate": "learning_rate",
    "clip_ratio/region_mean": "clipped",
}


def grpo(
    student: AnyStudent,
    environment: Environment,
    *,
    tasks: Sequence[Task],
    goal: Goal,
    settings: GRPO,
    run: Run,
) -> AnyStudent:
    """Train the student's weights in place on its own episodes and return it.

    Each step goes to `metrics.jsonl` and its episodes to `episodes.jsonl`. With validation tasks
    the weights with the best mean reward of greedy episodes, those at the start included, are the
    ones that are kept. A resumed run ends with the weights of an uninterrupted one, provided that
    it gets the student as it was at the start.
    """
    _check(tasks, goal, settings)
    order = task_order(len(tasks), settings.batch_size, settings.steps, seed=settings.seed)
    practice = Practice(
        student,
        environment,
        order=[[tasks[i] for i in step] for step in order],
        goal=goal,
        settings=settings,
        run=run,
    )
    checkpoint = last_checkpoint(run.output_dir) if run.resume else None
    updates = int(checkpoint.name.split("-")[1]) if checkpoint else 0
    with restored(student.model), to_train(student.model) as model:
        server = served(settings.vllm, student) if settings.vllm.mode == "server" else None
        trainer = _trainer(practice, model, output_dir=run.output_dir)
        if settings.vllm.mode != "off":
            practice.playing = playing(trainer, student, server)
        done = updates // settings.updates_per_step
        practice.begin(done)
        watcher = _Watcher(practice, trainer, done=done)
        trainer.add_callback(watcher)
        trainer.train(resume_from_checkpoint=str(checkpoint) if checkpoint else None)
        trainer.accelerator.wait_for_everyone()  # the best weights are on disk
        settle(trainer, student.model, kept=watcher.best.weights())
    return student


def _check(tasks: Sequence[Task], goal: Goal, settings: GRPO) -> None:
    if settings.vllm.mode == "off":
        refuse_split_weights(os.environ, reader="a rollout")
    if goal.credit:
        refuse_split_weights(os.environ, reader="credit")
    ids = [task.id for task in tasks]
    if len(set(ids)) < len(ids):
        twice = next(i for i in ids if ids.count(i) > 1)
        raise SettingsError(
            f"two tasks have the id {twice!r}; a group is all episodes of one id, so ids must "
            "differ."
        )


def _trainer(
    practice: Practice, model: PreTrainedModel | PeftModel, *, output_dir: Path
) -> EpisodeTrainer:
    tokenizer, settings = practice.student.tokenizer, practice.settings
    if tokenizer.pad_token_id is None and tokenizer.eos_token_id is None:
        raise SettingsError("the tokenizer has neither a pad token nor an end token; set one.")
    processes = PartialState().num_processes
    if settings.batch_size % processes:
        raise SettingsError(
            f"batch_size is {settings.batch_size}; expected a multiple of the {processes} "
            "processes, since a group stays on one of them."
        )
    update = settings.minibatch_size * settings.group_size
    each = settings.micro_batch_size * processes
    if update % each:
        raise SettingsError(
            f"minibatch_size x group_size is {update}; expected a multiple of "
            f"micro_batch_size x processes = {each}."
        )
    arguments = GRPOConfig(
        **common_arguments(settings, output_dir),
        per_device_train_batch_size=settings.micro_batch_size,
        gradient_accumulation_steps=update // each,
        generation_batch_size=settings.batch_size * settings.group_size,
        num_generations=settings.group_size,
        num_iterations=settings.iterations,
        max_steps=settings.steps * settings.updates_per_step,
        save_steps=settings.save_every * settings.updates_per_step,
        lr_scheduler_type=settings.schedule,
        warmup_steps=settings.warmup_steps,
        adam_beta2=settings.adam_beta2,
        temperature=settings.temperature,
        beta=0.0,  # EpisodeTrainer sets it, with a reference that has no path
        epsilon=settings.clip_low,
        epsilon_high=settings.clip_high,
        loss_type=settings.loss,
        max_completion_length=settings.loss_tokens,
        shuffle_dataset=False,
        disable_dropout=True,
        **vllm_arguments(settings.vllm, model),
    )
    num_rows = settings.steps * settings.batch_size
    lora = adapter(settings, dropout=0.0)
    needs_copy = settings.kl > 0 and lora is None
    trainer = EpisodeTrainer(
        play=practice.play,
        kl=settings.kl,
        reference=deepcopy(model).requires_grad_(False) if needs_copy else None,
        model=model,
        args=arguments,
        train_dataset=Dataset.from_dict({"prompt": [str(row) for row in range(num_rows)]}),
        processing_class=tokenizer,
        peft_config=lora,
    )
    silence(trainer)
    return trainer


class _Watcher(TrainerCallback):
    """Validates, keeps the best weights, and writes one row a step."""

    def __init__(self, practice: Practice, trainer: EpisodeTrainer, *, done: int) -> None:
        run = practice.run
        self.practice, self.trainer, self.settings = practice, trainer, practice.settings
        self.is_main = practice.state.is_main_process
        self.log = Log(run.output_dir / "metrics.jsonl", keep_until=done) if self.is_main else None
        self.best = Best(run.output_dir, keep_until=done, writes=self.is_main)
        self.updates: list[dict[str, float]] = []
        self.valid_row: dict[str, Any] = {}
        self._start_clock()

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if state.global_step == 0 and self.practice.run.valid:
            self._validate(0)
            self._report({"step": 0})
        self._start_clock()

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        step, left = divmod(state.global_step, self.settings.updates_per_step)
        is_due = step % self.settings.valid_every == 0 or state.global_step == state.max_steps
        if not left and is_due and self.practice.run.valid:
            self._validate(step)

    def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self.best.forget_before(state.global_step // self.settings.updates_per_step)

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **_: Any) -> None:
        if "loss" not in logs:
            return
        self.updates.append(logs)
        step, left = divmod(state.global_step, self.settings.updates_per_step)
        if left:
            return
        seconds, cpu_s = monotonic() - self.started, process_time() - self.started_cpu
        rollout_row = self.practice.rollout_row
        self._report(
            {
                "step": step,
                **{ours: _mean_of(self.updates, trl) for trl, ours in NAMES.items()},
                **rollout_row,
                "train_seconds": seconds - _before_update(rollout_row, "seconds"),
                "train_cpu_seconds": cpu_s - _before_update(rollout_row, "cpu_seconds"),
            }
        )
        self.updates = []
        self._start_clock()

    def _validate(self, step: int) -> None:
        started, started_cpu = monotonic(), process_time()
        self.valid_row = self.practice.validate()
        score = self.valid_row["valid_reward"]
        if score is not None:
            self.valid_row["is_best"] = self.best.offer(score, step, whole(self.trainer))
        self.started += monotonic() - started  # validation is not counted as training
        self.started_cpu += process_time() - started_cpu

    def _report(self, row: dict[str, Any]) -> None:
        row |= {"of": self.settings.steps, **self.valid_row}
        self.valid_row = {}
        if self.log is None:
            return
        row["alarms"] = alarms([*self.log.rows, row])
        self.log.append(row)
        if self.practice.run.on_step:
            self.practice.run.on_step(row)

    def _start_clock(self) -> None:
        self.started, self.started_cpu = monotonic(), process_time()


def _before_update(row: dict[str, Any], unit: str) -> float:
    return float(row[f"rollout_{unit}"] + row[f"credit_{unit}"])


def _mean_of(updates: Sequence[dict[str, float]], name: str) -> float | None:
    found = [logs[name] for logs in updates if logs.get(name) is not None]
    return sum(found) / len(found) if found else None
