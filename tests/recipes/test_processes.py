"""A recipe under torchrun: one process teaches, evaluates and writes, all of them train."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from hopling import records
from hopling.errors import SettingsError
from hopling.training.processes import refuse_split_weights
from recipes import recipe_run

HERE = Path(__file__).parent
TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2"]


def run_by_two(*words: str) -> subprocess.CompletedProcess[str]:
    """Run the script as two processes on gloo."""
    environment = {**os.environ, "PYTHONPATH": str(HERE.parent), "OMP_NUM_THREADS": "1"}
    script = [str(HERE / "recipe_run.py"), *words]
    return subprocess.run(
        [*TORCHRUN, *script], env=environment, capture_output=True, text=True, timeout=300
    )


def test_two_processes_run_a_recipe_as_one_does(tmp_path: Path) -> None:
    """Issue 2, "Scale, from the start": the same losses as one process within tolerance."""
    one, two = tmp_path / "one", tmp_path / "two"
    recipe_run.main(one)
    done = run_by_two(str(two))
    assert done.returncode == 0, done.stderr[-3000:]
    expected, found = (records.read(folder / "metrics.jsonl") for folder in (one, two))
    assert [row["stage"] for row in found] == [row["stage"] for row in expected]
    for first, second in zip(expected, found, strict=True):
        for name in {"loss", "reward", "calls"} & first.keys():
            assert second[name] == pytest.approx(first[name], rel=1e-2, abs=1e-4), name
    played = [records.read(folder / "episodes.jsonl") for folder in (one, two)]
    assert len(played[0]) == len(played[1])


def test_a_failure_of_the_first_process_ends_both_with_its_message(tmp_path: Path) -> None:
    """Issue 2: no hang; the folder of a graph that is not there."""
    done = run_by_two(str(tmp_path / "two"), str(tmp_path / "nowhere"))
    assert done.returncode != 0
    assert "nowhere" in done.stderr


def test_weights_that_are_split_over_processes_are_refused(tmp_path: Path) -> None:
    """docs/scale.md: rollouts need whole weights."""
    config = tmp_path / "ds.json"
    config.write_text('{"zero_optimization": {"stage": 3}}', encoding="utf-8")
    deep = {"ACCELERATE_USE_DEEPSPEED": "true"}
    for told in (
        {"ACCELERATE_USE_FSDP": "true"},
        {**deep, "ACCELERATE_DEEPSPEED_ZERO_STAGE": "3"},
        {**deep, "ACCELERATE_DEEPSPEED_CONFIG_FILE": str(config)},
    ):
        with pytest.raises(SettingsError, match="splits the weights"):
            refuse_split_weights(told)
    refuse_split_weights({**deep, "ACCELERATE_DEEPSPEED_ZERO_STAGE": "2"})
