"""Supervised fine-tuning: the student imitates traces, token by token as they were recorded.

The loss, the optimizer, checkpoints and processes are TRL's. Ours are the labels, which come from
each token's source and never from a chat template, and the order of the batches. [SoG-R1 4.3]
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from time import monotonic, process_time
from typing import Any, Protocol, TypeVar

from accelerate import PartialState
from datasets import Dataset
from peft import PeftModel
from torch.utils.data import DataLoader
from transformers import PreTrainedModel, PreTrainedTokenizerBase, TrainerCallback
from trl import SFTConfig, SFTTrainer

from hopling.episode import Episode
from hopling.errors import SettingsError
from hopling.training.batches import Plan, Rows, plan, rows
from hopling.training.runs import (
    Log,
    adapter,
    common_arguments,
    last_checkpoint,
    restored,
    settle,
    silence,
    to_train,
)
from hopling.training.settings import SFT

AnyModel = PreTrainedModel | PeftModel


class Trainable(Protocol):
    """A policy whose weights can be trained in place."""

    @property
    def model(self) -> AnyModel: ...

    @property
    def tokenizer(self) -> PreTrainedTokenizerBase: ...


Student = TypeVar("Student", bound=Trainable)
Progress = Callable[[Mapping[str, Any]], None]


def sft(
    student: Student,
    traces: Sequence[Episode],
    settings: SFT,
    *,
    output_dir: Path,
    on_progress: Progress | None = None,
    resume: bool = False,
) -> Student:
    """Train the student's weights in place on the traces and return it.

    The loss is the next token's, on sampled tokens only, turn markers included, averaged over the
    trained tokens of an update. An adapter is folded into the weights at the end. `resume` goes on
    from the last checkpoint in `output_dir` and ends with the weights of an uninterrupted run.
    """
    data = rows(traces, max_tokens=settings.max_tokens)
    with restored(student.model), to_train(student.model) as model:
        trainer = _trainer(student, model, data=data, settings=settings, output_dir=output_dir)
        checkpoint = last_checkpoint(output_dir) if resume else None
        done = int(checkpoint.name.split("-")[1]) if checkpoint else 0
        first = trainer.accelerator.is_main_process
        log = Log(output_dir / "metrics.jsonl", keep_until=done) if first else None
        left_out = len(traces) - len(data.kept)
        trainer.add_callback(_Reporter(log, on_progress, settings, left_out=left_out))
        trainer.train(resume_from_checkpoint=str(checkpoint) if checkpoint else None)
        settle(trainer, student.model, kept=None)
    return student


class _TraceTrainer(SFTTrainer):
    """TRL's trainer with batches that were laid out beforehand."""

    plan: Plan

    def get_train_dataloader(self) -> DataLoader:
        rank, processes = self.accelerator.process_index, self.accelerator.num_processes
        return DataLoader(
            self.train_dataset,  # type: ignore[arg-type]
            batch_sampler=self.plan.batches[rank::processes],
            collate_fn=self.data_collator,
            pin_memory=self.args.dataloader_pin_memory,
        )


def _trainer(
    student: Trainable, model: AnyModel, *, data: Rows, settings: SFT, output_dir: Path
) -> _TraceTrainer:
    if student.tokenizer.pad_token_id is None and student.tokenizer.eos_token_id is None:
        raise SettingsError("the tokenizer has neither a pad token nor an end token; set one.")
    processes = PartialState().num_processes
    layout = plan(data.lengths, settings, processes=processes)
    updates = -(-len(layout.batches) // processes // layout.accumulation)
    arguments = SFTConfig(
        **common_arguments(settings, output_dir),
        per_device_train_batch_size=settings.micro_batch_size,
        gradient_accumulation_steps=layout.accumulation,
        lr_scheduler_type=settings.schedule,
        warmup_steps=round(settings.warmup_ratio * updates),
        save_steps=settings.save_every,
        max_length=None,
        dataset_kwargs={"skip_prepare_dataset": True},
    )
    trainer = _TraceTrainer(
        model=model,
        args=arguments,
        train_dataset=Dataset.from_dict({"input_ids": data.input_ids, "labels": data.labels}),
        processing_class=student.tokenizer,
        peft_config=adapter(settings, dropout=settings.lora_dropout),
    )
    trainer.plan = layout
    silence(trainer)
    return trainer


class _Reporter(TrainerCallback):
    """Writes one row an update and stops the run when its time is over."""

    def __init__(
        self, log: Log | None, on_progress: Progress | None, settings: SFT, *, left_out: int
    ) -> None:
        self.log, self.on_progress, self.settings = log, on_progress, settings
        self.left_out = left_out
        self.started, self.started_cpu = monotonic(), process_time()

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        limit = self.settings.max_seconds
        if limit is not None and monotonic() - self.started > limit:
            control.should_training_stop = True

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **_: Any) -> None:
        if self.log is None or "loss" not in logs:
            return
        row = {
            "step": state.global_step,
            "of": state.max_steps,
            "loss": logs["loss"],
            "token_accuracy": logs["mean_token_accuracy"],
            "learning_rate": logs["learning_rate"],
            "grad_norm": logs["grad_norm"],
            "left_out": self.left_out,
            "seconds": monotonic() - self.started,
            "cpu_seconds": process_time() - self.started_cpu,
        }
        self.log.append(row)
        if self.on_progress:
            self.on_progress(row)
