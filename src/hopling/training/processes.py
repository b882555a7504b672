"""The processes of a recipe that torchrun started: what one of them does for all.

The trainers divide their own work; a recipe's traces, evaluations and files are for one process.
"""

import json
import os
from collections.abc import Callable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar

import torch.distributed as dist
from accelerate import PartialState

from hopling.errors import HoplingError, SettingsError

LONGEST_WAIT = timedelta(days=7)  # a teacher may take days; a process that dies ends the others
Made = TypeVar("Made")


class Processes:
    """All processes of this run, or this one alone."""

    def __init__(self) -> None:
        self.group: dist.ProcessGroup | None = None
        if int(os.environ.get("WORLD_SIZE", "1")) > 1:
            refuse_split_weights(os.environ)
            PartialState()  # gives each process its GPU
            # a group of its own: nccl's would spin on the GPU, and give up, while one works
            self.group = dist.new_group(backend="gloo", timeout=LONGEST_WAIT)

    def shared(self, work: Callable[[], Made]) -> Made:
        """Return what the first process makes; the others wait and get a copy.

        Its HoplingError is raised in every process.
        """
        if self.group is None:
            return work()
        sent: list[Any] = [None, None]
        if dist.get_rank() == 0:
            try:
                sent[0] = work()
            except HoplingError as error:
                sent[1] = error
        dist.broadcast_object_list(sent, src=0, group=self.group)
        if sent[1] is not None:
            raise sent[1]
        made: Made = sent[0]
        return made


def refuse_split_weights(environment: Mapping[str, str]) -> None:
    """Raise SettingsError if accelerate was told to split the weights over the processes.

    Our rollouts need whole ones: processes play different numbers of turns.
    """
    found = ""
    if environment.get("ACCELERATE_USE_FSDP", "").lower() in ("true", "1"):
        found = "FSDP"
    if environment.get("ACCELERATE_USE_DEEPSPEED", "").lower() in ("true", "1"):
        stage = _stage(environment)
        found = "DeepSpeed ZeRO-3" if stage == "3" else found
    if found:
        raise SettingsError(
            f"accelerate is set to {found}, which splits the weights over the processes; rollouts "
            "need whole ones. Use plain DDP (torchrun), with LoRA, or DeepSpeed ZeRO-2."
        )


def _stage(environment: Mapping[str, str]) -> str:
    file = environment.get("ACCELERATE_DEEPSPEED_CONFIG_FILE", "")
    if file in ("", "none", "None"):
        return environment.get("ACCELERATE_DEEPSPEED_ZERO_STAGE", "")
    row = json.loads(Path(file).read_text(encoding="utf-8"))
    return str(row.get("zero_optimization", {}).get("stage", ""))
