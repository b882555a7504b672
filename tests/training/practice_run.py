"""A script for test_processes: practice from given weights, in three ways, and save what comes out.

torchrun --nproc_per_node 2 practice_run.py FOLDER URL, where FOLDER holds start.pt and a stand-in
for vLLM's server listens at URL
"""

import os
import sys
from collections.abc import Callable
from pathlib import Path

import torch
import torch.distributed as dist
from accelerate import PartialState
from accelerate.state import AcceleratorState
from accelerate.utils import DistributedType

import asking
import fake_vllm
from hopling.policies.local import LocalModel
from hopling.training.grpo import grpo
from hopling.training.practice import Goal, Run
from hopling.training.settings import VLLM

WAYS = {"adapter": 4, "all": 0, "split": 0, "split adapter": 4}  # and the adapter's rank
SPLIT = {  # what `accelerate launch --use_fsdp --fsdp_version 2` sets
    "ACCELERATE_USE_FSDP": "true",
    "FSDP_VERSION": "2",
    "FSDP_AUTO_WRAP_POLICY": "TRANSFORMER_BASED_WRAP",
    "FSDP_RESHARD_AFTER_FORWARD": "true",
    "FSDP_STATE_DICT_TYPE": "FULL_STATE_DICT",
}


def practiced(
    folder: Path, way: str, *, made: Callable[..., LocalModel] = LocalModel, url: str = ""
) -> None:
    """Practice as each of the processes that torchrun started, or as the only one."""
    processes = PartialState(cpu=True).num_processes
    student = made(asking.fresh().model, asking.tokenizer())
    student.model.load_state_dict(torch.load(folder.parent / "start.pt"))
    settings = asking.practice(
        kl=0.05,
        lora_rank=WAYS[way],
        micro_batch_size=8 // processes,
        valid_every=1,
        vllm=VLLM("server", url) if url else VLLM(),
    )
    grpo(
        student,
        asking.world(),
        tasks=asking.tasks(4),
        goal=Goal(asking.right),
        settings=settings,
        # validated, the weights of the best step are kept; else the last
        run=Run(folder / way, valid=() if WAYS[way] else asking.tasks(3)),
    )
    if PartialState().is_main_process:
        torch.save(student.model.state_dict(), folder / way / "weights.pt")


def split_on_cpus() -> None:
    """Let accelerate split weights over CPUs too; it does so over accelerators only."""
    os.environ.update(SPLIT)
    begin = AcceleratorState.__init__

    def begin_split(state: AcceleratorState, *arguments: object, **named: object) -> None:
        if not AcceleratorState._shared_state:
            PartialState(cpu=True)
            PartialState._shared_state["distributed_type"] = DistributedType.MULTI_GPU
        begin(state, *arguments, **named)

    AcceleratorState.__init__ = begin_split


def main(folder: Path, url: str) -> None:
    """Practice in every way."""
    for way in ("adapter", "all"):
        practiced(folder, way)
    fake_vllm.install()
    split_on_cpus()
    for way in ("split", "split adapter"):
        practiced(folder, way, url=url)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
    if dist.is_initialized():
        dist.destroy_process_group()
