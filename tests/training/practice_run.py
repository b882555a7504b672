"""A script for test_processes: practice from given weights and save what comes out.

torchrun --nproc_per_node 2 practice_run.py WEIGHTS FOLDER LORA_RANK
"""

import sys
from pathlib import Path

import torch
import torch.distributed as dist
from accelerate import PartialState

import asking
from hopling.training.grpo import grpo
from hopling.training.practice import Goal, Run


def main(weights: Path, folder: Path, lora_rank: int) -> None:
    """Practice as each of the processes that torchrun started, or as the only one."""
    processes = PartialState(cpu=True).num_processes
    student = asking.fresh()
    student.model.load_state_dict(torch.load(weights))
    settings = asking.practice(
        kl=0.05, lora_rank=lora_rank, micro_batch_size=8 // processes, valid_every=1
    )
    grpo(
        student,
        asking.world(),
        tasks=asking.tasks(4),
        goal=Goal(asking.right),
        settings=settings,
        run=Run(folder, valid=asking.tasks(3)),
    )
    if PartialState().is_main_process:
        torch.save(student.model.state_dict(), folder / "weights.pt")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]))
    if dist.is_initialized():
        dist.destroy_process_group()
