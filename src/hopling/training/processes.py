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
    """All processes of this run, or this one alone.

    `plays` says that each of them will roll out, in training, with weights of its own.
    """

    def __init__(self, *, plays: bool = True) -> None:
        self.group: dist.ProcessGroup | None = None
        if int(os.environ.get("WORLD_SIZE", "1")) > 1:
            if plays:
                refuse_split_weights(os.environ, reader="a rollout")
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


def split_weights(environment: Mapping[str, str]) -> str:
    """Return by what accelerate was told to split the weights over the processes, "" if not at all.

    Raises SettingsError for the first version of FSDP, which wraps the model in another.

    >>> split_weights({"ACCELERATE_USE_DEEPSPEED": "true", "ACCELERATE_DEEPSPEED_ZERO_STAGE": "3"})
    'DeepSpeed ZeRO-3'
    """
    if _is_on(environment, "ACCELERATE_USE_FSDP"):
        if environment.get("FSDP_VERSION", "1") == "1":
            raise SettingsError(
                "accelerate is set to FSDP's version 1; expected 2: use --fsdp_version 2."
            )
        return "FSDP2"
    stage = _stage(environment) if _is_on(environment, "ACCELERATE_USE_DEEPSPEED") else ""
    return "DeepSpeed ZeRO-3" if stage == "3" else ""


def refuse_split_weights(environment: Mapping[str, str], *, reader: str) -> None:
    """Raise SettingsError if each process holds only a part of the weights, which `reader` reads.

    Processes play different numbers of turns, so that they cannot gather weights turn by turn.
    """
    if found := split_weights(environment):
        raise SettingsError(
            f"accelerate is set to {found}, which splits the weights over the processes; {reader} "
            "needs whole ones. Let vLLM play (--grpo-vllm-mode server), or use plain DDP "
            "(torchrun), with LoRA, or DeepSpeed ZeRO-2."
        )


def _is_on(environment: Mapping[str, str], name: str) -> bool:
    return environment.get(name, "").lower() in ("true", "1")


def _stage(environment: Mapping[str, str]) -> str:
    file = environment.get("ACCELERATE_DEEPSPEED_CONFIG_FILE", "")
    if file in ("", "none", "None"):
        return environment.get("ACCELERATE_DEEPSPEED_ZERO_STAGE", "")
    row = json.loads(Path(file).read_text(encoding="utf-8"))
    return str(row.get("zero_optimization", {}).get("stage", ""))
