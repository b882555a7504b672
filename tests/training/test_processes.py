"""Two processes do what one does."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import asking
from hopling.records import read
from training import practice_run

HERE = Path(__file__).parent
TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2"]


def practiced_by_two(weights, folder, lora_rank):
    environment = {**os.environ, "PYTHONPATH": str(HERE.parent), "OMP_NUM_THREADS": "1"}
    script = [str(HERE / "practice_run.py"), str(weights), str(folder), str(lora_rank)]
    done = subprocess.run(
        [*TORCHRUN, *script], env=environment, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr[-3000:]


@pytest.mark.parametrize("lora_rank", [4, pytest.param(0, marks=pytest.mark.slow)])
def test_two_processes_learn_what_one_learns(tmp_path, lora_rank):
    """MEASURED: DDP on gloo; groups stay whole, and episodes may differ in turns by process."""
    start, one, two = tmp_path / "start.pt", tmp_path / "one", tmp_path / "two"
    torch.save(asking.warm().model.state_dict(), start)
    one.mkdir()
    practice_run.main(start, one, lora_rank)
    two.mkdir()
    practiced_by_two(start, two, lora_rank)
    assert (two / "episodes-1.jsonl").exists()
    weights = torch.load(two / "weights.pt")
    for name, weight in torch.load(one / "weights.pt").items():
        torch.testing.assert_close(weights[name], weight, atol=1e-5, rtol=1e-3)
    rows = zip(read(one / "metrics.jsonl"), read(two / "metrics.jsonl"), strict=True)
    for first, second in list(rows)[1:]:
        for name in ("loss", "grad_norm", "reward", "calls", "valid_correct"):
            assert second[name] == pytest.approx(first[name], rel=1e-2, abs=1e-5), name
