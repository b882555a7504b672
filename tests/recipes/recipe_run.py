"""A script for test_processes: a run that cannot begin, then the quickstart at a size for tests.

torchrun --nproc_per_node 2 recipe_run.py FOLDER
"""

import io
import sys
from pathlib import Path

import torch.distributed as dist
from accelerate import PartialState
from rich.console import Console

from hopling.errors import HoplingError
from hopling.recipes import quickstart
from hopling.settings import load

SIZE = {
    "pool": 40,
    "valid": 4,
    "test": 4,
    # a budget of tokens is each process's own, so that two would make larger updates
    "sft": {"max_steps": 2, "learning_rate": 1e-4, "tokens_per_batch": None, "batch_size": 4},
    "grpo": {"steps": 1, "batch_size": 2, "minibatch_size": 2, "valid_every": 1},
}


def main(folder: Path, graph: str = "") -> None:
    """Run the recipe as each of the processes that torchrun started, or as the only one."""
    processes = PartialState(cpu=True).num_processes
    settings = load(
        quickstart.Settings,
        SIZE | {"graph": graph, "grpo.micro_batch_size": 8 // processes},
    )
    quickstart.run(settings, folder, Console(file=io.StringIO()))


def fail(folder: Path) -> None:
    """Run the recipe on a graph that is not there and write what this process was told."""
    folder.mkdir(exist_ok=True)
    try:
        main(folder / "failed", str(folder / "nowhere"))
    except HoplingError as error:
        rank = PartialState().process_index
        (folder / f"error-{rank}.txt").write_text(str(error), encoding="utf-8")


if __name__ == "__main__":
    fail(Path(sys.argv[1]))
    main(Path(sys.argv[1]) / "run")
    if dist.is_initialized():
        dist.destroy_process_group()
