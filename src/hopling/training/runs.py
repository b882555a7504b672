"""What both trainers share with the libraries below: precision, adapters, checkpoints, clean-up.

Nothing here knows a loss, an episode or a task.
"""

import json
import os
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from pathlib import Path
from typing import Any

import torch
from peft import LoraConfig, PeftModel, get_peft_model
from safetensors.torch import load_file, save_file
from torch import nn
from torch.distributed.tensor import DTensor
from transformers import PreTrainedModel, PrinterCallback, Trainer
from transformers.trainer_callback import ProgressCallback
from transformers.utils import logging
from trl.distributed import DistributedBackend
from trl.trainer import utils as trl_models

from hopling import records
from hopling.errors import SettingsError
from hopling.training.processes import split_weights
from hopling.training.settings import GRPO, SFT

Row = dict[str, Any]
Weights = Mapping[str, torch.Tensor]


def common_arguments(settings: SFT | GRPO, output_dir: Path) -> dict[str, Any]:
    """Return the arguments that both trainers give to transformers.

    Raises SettingsError for a precision that is not there.
    """
    gpu = torch.cuda.is_available()
    bf16 = gpu and torch.cuda.is_bf16_supported() and settings.precision != "fp32"
    if settings.precision == "bf16" and not bf16:
        raise SettingsError("precision is 'bf16' but no GPU here has it; use 'auto' or 'fp32'.")
    return {
        "output_dir": str(output_dir),
        "use_cpu": not gpu,
        "bf16": bf16,
        "learning_rate": settings.learning_rate,
        "weight_decay": settings.weight_decay,
        "max_grad_norm": settings.max_grad_norm,
        "activation_checkpointing": settings.gradient_checkpointing,
        "seed": settings.seed,
        "num_train_epochs": 1,  # the batches of all epochs are laid out beforehand
        "logging_steps": 1,
        "save_strategy": "steps",
        "save_total_limit": 1,
        "report_to": "none",
        "disable_tqdm": True,
        "dataloader_pin_memory": gpu,
    }


def adapter(settings: SFT | GRPO, *, dropout: float) -> LoraConfig | None:
    """Return LoRA on all linear layers, or None when all weights are trained."""
    if not settings.lora_rank:
        return None
    return LoraConfig(
        r=settings.lora_rank,
        lora_alpha=settings.lora_alpha,
        lora_dropout=dropout,
        target_modules="all-linear",
        task_type="CAUSAL_LM",
    )


def silence(trainer: Trainer) -> None:
    """Take away the callbacks that print; progress is reported by ours."""
    trainer.remove_callback(PrinterCallback)
    trainer.remove_callback(ProgressCallback)


@contextmanager
def restored(model: PreTrainedModel | PeftModel) -> Iterator[None]:
    """Undo what a trainer leaves on a model: its patched forward, its train mode, its frozen parts.

    TRL puts a fused head on the model itself; a second run, or a copy, would patch the patch.
    """
    own_forward = vars(model).get("forward")
    verbosity = logging.get_verbosity()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    frozen = {name for name, p in model.named_parameters() if not p.requires_grad}
    training = model.training
    try:
        with warnings.catch_warnings():
            # peft asks transformers by a name that transformers has retired
            warnings.filterwarnings("ignore", "`is_gradient_checkpointing`", FutureWarning)
            with _scoring_labels_only():
                yield
    finally:
        logging.set_verbosity(verbosity)
        for name in ("forward", "_original_forward"):
            vars(model).pop(name, None)
        if own_forward is not None:
            vars(model)["forward"] = own_forward
        for name, parameter in model.named_parameters():
            parameter.requires_grad_(name not in frozen)
            parameter.grad = None
        model.train(training)


@contextmanager
def _scoring_labels_only() -> Iterator[None]:
    """Let TRL's head leave out the positions without a label on a CPU too, as it does on GPUs."""
    before = trl_models._use_triton
    trl_models._use_triton = lambda device: True
    try:
        yield
    finally:
        trl_models._use_triton = before


@contextmanager
def to_train(model: PreTrainedModel | PeftModel) -> Iterator[PreTrainedModel | PeftModel]:
    """Yield the model that a trainer gets: the model itself, whose weights change in place.

    Where processes split the weights it is a copy, since no model gets out of that whole; `settle`
    puts the trained weights into the first, which waits on the CPU.
    """
    if not split_weights(os.environ):
        yield model
        return
    device = model.device
    nn.Module.to(model, torch.device("cpu"))
    try:
        yield deepcopy(model)
    finally:
        nn.Module.to(model, device)


def settle(trainer: Trainer, model: PreTrainedModel | PeftModel, *, kept: Weights | None) -> None:
    """Leave the kept weights, or else the last, in the model, with the adapter folded in."""
    trained = trainer.accelerator.unwrap_model(trainer.model, keep_fp32_wrapper=False)
    if split_weights(os.environ):
        kept = dict(whole(trainer)) if kept is None else kept
        is_adapted = isinstance(trained, PeftModel)
        trained = get_peft_model(model, trained.peft_config["default"]) if is_adapted else model
    if kept is not None:
        with torch.no_grad():
            for name, parameter in _trained(trained):
                parameter.copy_(kept[name])
    if isinstance(trained, PeftModel):
        trained.merge_and_unload()
        base = trained.get_base_model()
        for name in ("peft_config", "_hf_peft_config_loaded"):
            vars(base).pop(name, None)


def whole(trainer: Trainer) -> Iterator[tuple[str, torch.Tensor]]:
    """Yield each trained weight, gathered where processes split it; all of them must take part."""
    gathers = DistributedBackend(trainer.accelerator)
    for name, parameter in _trained(trainer.accelerator.unwrap_model(trainer.model)):
        with gathers.gather_params([parameter]):
            weight: torch.Tensor = parameter.detach()
            yield name, weight.full_tensor() if isinstance(weight, DTensor) else weight


def last_checkpoint(output_dir: Path) -> Path | None:
    """Return the newest whole checkpoint; one whose writing was interrupted does not count."""
    whole = [p for p in output_dir.glob("checkpoint-*") if (p / "trainer_state.json").exists()]
    return max(whole, key=lambda p: int(p.name.split("-")[1]), default=None)


class Log:
    """A file of JSON rows, one a step; on resuming, rows after the checkpoint are dropped."""

    def __init__(self, path: Path, *, keep_until: int = 0) -> None:
        self.path = path
        self.rows = trimmed(path, keep_until=keep_until)

    def append(self, row: Mapping[str, Any]) -> None:
        """Write one row."""
        self.rows.append(dict(row))
        records.append(self.path, row)


def trimmed(path: Path, *, keep_until: int) -> list[Row]:
    """Return the rows of a file up to a step (0: none), after dropping all others from it."""
    rows = [row for row in records.read(path) if 0 < keep_until >= row["step"]]
    records.write_text(path, "".join(json.dumps(row) + "\n" for row in rows))
    return rows


class Best:
    """The trained weights with the best validation score so far, on disk, to outlive us.

    What was found after `keep_until`, the step that a run resumes from, no longer counts. Every
    process keeps count; the one that `writes` keeps the weights.
    """

    def __init__(self, output_dir: Path, *, keep_until: int, writes: bool) -> None:
        self.folder, self.writes = output_dir, writes
        self.found: Row | None = None
        notes = sorted(output_dir.glob("best-*.json"), key=_number)
        kept = [note for note in notes if 0 < keep_until >= _number(note)]
        for note in notes:
            if note not in kept:
                self._drop(_number(note))
        if kept:
            self.found = json.loads(kept[-1].read_text(encoding="utf-8"))

    def offer(self, score: float, step: int, weights: Iterable[tuple[str, torch.Tensor]]) -> bool:
        """Keep the weights if the score beats the best; say whether it did."""
        if self.found and score <= self.found["score"]:
            return False
        self.found = {"score": score, "step": step}
        kept = {name: w.cpu().contiguous() for name, w in weights if self.writes}
        if not self.writes:
            return True
        self.folder.mkdir(parents=True, exist_ok=True)
        save_file(kept, self.folder / f"best-{step}.safetensors")
        records.write_json(self.folder / f"best-{step}.json", self.found)
        return True

    def forget_before(self, step: int) -> None:
        """Drop what was beaten by the time of a checkpoint, from which a run would resume."""
        notes = [n for n in map(_number, self.folder.glob("best-*.json")) if n <= step]
        for number in sorted(notes)[:-1]:
            self._drop(number)

    def weights(self) -> Weights | None:
        """Return the best weights, if any were kept."""
        if self.found is None:
            return None
        return load_file(self.folder / f"best-{self.found['step']}.safetensors")

    def _drop(self, step: int) -> None:
        for ending in ("json", "safetensors") if self.writes else ():
            (self.folder / f"best-{step}.{ending}").unlink(missing_ok=True)


def _number(path: Path) -> int:
    return int(path.stem.split("-")[1])


def _trained(model: nn.Module) -> list[tuple[str, nn.Parameter]]:
    return [(name, p) for name, p in model.named_parameters() if p.requires_grad]
