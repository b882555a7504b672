"""What both trainers share with the libraries below: precision, adapters, checkpoints, clean-up.

Nothing here knows a loss, an episode or a task.
"""

import json
import os
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from peft import LoraConfig, PeftModel
from safetensors.torch import load_file, save_file
from transformers import PreTrainedModel, PrinterCallback, Trainer
from transformers.trainer_callback import ProgressCallback
from transformers.utils.logging import disable_progress_bar

from hopling.errors import SettingsError
from hopling.training.settings import GRPO, SFT

Row = dict[str, Any]


def common_arguments(settings: SFT | GRPO, output_dir: Path) -> dict[str, Any]:
    """Return the arguments that both trainers give to transformers."""
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
def restored(model: PreTrainedModel) -> Iterator[None]:
    """Undo what a trainer leaves on a model: its patched forward, its train mode, its frozen parts.

    TRL puts a fused head on the model itself; a second run, or a copy, would patch the patch.
    """
    own_forward = vars(model).get("forward")
    disable_progress_bar()
    frozen = {name for name, p in model.named_parameters() if not p.requires_grad}
    training = model.training
    try:
        with warnings.catch_warnings():
            # peft asks transformers by a name that transformers has retired
            warnings.filterwarnings("ignore", "`is_gradient_checkpointing`", FutureWarning)
            yield
    finally:
        for name in ("forward", "_original_forward"):
            vars(model).pop(name, None)
        if own_forward is not None:
            model.forward = own_forward
        for name, parameter in model.named_parameters():
            parameter.requires_grad_(name not in frozen)
            parameter.grad = None
        model.train(training)


def merged(trainer: Trainer) -> None:
    """Fold the adapter into the weights of the model that it was put on."""
    model = trainer.accelerator.unwrap_model(trainer.model, keep_fp32_wrapper=False)
    if isinstance(model, PeftModel):
        model.merge_and_unload()
        base = model.get_base_model()
        for name in ("peft_config", "_hf_peft_config_loaded"):
            vars(base).pop(name, None)


def last_checkpoint(output_dir: Path) -> Path | None:
    """Return the newest whole checkpoint; one whose writing was interrupted does not count."""
    whole = [p for p in output_dir.glob("checkpoint-*") if (p / "trainer_state.json").exists()]
    return max(whole, key=lambda p: int(p.name.split("-")[1]), default=None)


class Log:
    """A file of JSON rows, one a step, flushed as they are written.

    On resuming, rows after the checkpoint and a torn last line are dropped. [BUGS B34]
    """

    def __init__(self, path: Path, *, keep_until: int = 0) -> None:
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        self.rows = [row for row in read_rows(path) if row["step"] <= keep_until]
        draft = path.with_suffix(".draft")
        draft.write_text("".join(json.dumps(row) + "\n" for row in self.rows), encoding="utf-8")
        os.replace(draft, path)

    def append(self, row: Mapping[str, Any]) -> None:
        """Write one row."""
        self.rows.append(dict(row))
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")


def read_rows(path: Path) -> list[Row]:
    """Return the whole rows of a log; there are none where there is no file."""
    if not path.exists():
        return []
    lines = path.read_text(encoding="utf-8").split("\n")[:-1]  # a torn line has no newline
    return [json.loads(line) for line in lines]


class Best:
    """The trained weights with the best validation score so far, on disk, to outlive us."""

    def __init__(self, output_dir: Path, *, resume: bool) -> None:
        self.weights = output_dir / "best.safetensors"
        self.note = output_dir / "best.json"
        if not resume:
            self.note.unlink(missing_ok=True)
        self.found: Row | None = json.loads(self.note.read_text()) if self.note.exists() else None

    def offer(self, score: float, step: int, model: torch.nn.Module) -> bool:
        """Keep the model's trained weights if the score beats the best; say whether it did."""
        if self.found and (score <= self.found["score"] or step <= self.found["step"]):
            return False
        self.found = {"score": score, "step": step}
        draft = self.weights.with_suffix(".draft")
        save_file({n: p.detach().contiguous() for n, p in _trained(model)}, draft)
        os.replace(draft, self.weights)
        self.note.write_text(json.dumps(self.found))
        return True

    def restore(self, model: torch.nn.Module) -> None:
        """Put the kept weights back, if any were kept."""
        if self.found:
            kept = load_file(self.weights)
            with torch.no_grad():
                for name, parameter in _trained(model):
                    parameter.copy_(kept[name])


def _trained(model: torch.nn.Module) -> list[tuple[str, torch.nn.Parameter]]:
    return [(name, p) for name, p in model.named_parameters() if p.requires_grad]
