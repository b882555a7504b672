"""A recipe under torchrun: one process teaches, evaluates and writes, all of them train."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from hopling import records
from recipes import recipe_run

HERE = Path(__file__).parent
TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2"]


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What two processes on gloo left: of a run that cannot begin, and of one that can."""
    folder = tmp_path_factory.mktemp("recipe") / "two"
    environment = {**os.environ, "PYTHONPATH": str(HERE.parent), "OMP_NUM_THREADS": "1"}
    command = [*TORCHRUN, str(HERE / "recipe_run.py"), str(folder)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr[-3000:]
    return folder


def test_two_processes_run_a_recipe_as_one_does(tmp_path: Path, two: Path) -> None:
    """Issue 2, "Scale, from the start": the same losses as one process within tolerance."""
    recipe_run.main(tmp_path / "one")
    folders = (tmp_path / "one", two / "run")
    expected, found = (records.read(folder / "metrics.jsonl") for folder in folders)
    assert [row["stage"] for row in found] == [row["stage"] for row in expected]
    for first, second in zip(expected, found, strict=True):
        for name in {"loss", "reward", "calls"} & first.keys():
            assert second[name] == pytest.approx(first[name], rel=1e-2, abs=1e-4), name
    played = [records.read(folder / "episodes.jsonl") for folder in folders]
    assert len(played[0]) == len(played[1])


def test_a_failure_of_the_first_process_reaches_both_with_its_message(two: Path) -> None:
    """Issue 2: no hang; the folder of a graph that is not there."""
    for rank in (0, 1):
        assert "nowhere" in (two / f"error-{rank}.txt").read_text(encoding="utf-8")
