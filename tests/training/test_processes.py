"""Two processes do what one does: with whole weights, and with split ones while vLLM plays."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import asking
from fake_vllm import Reseeded, Sampler, serving
from hopling.errors import SettingsError
from hopling.policies.local import LocalModel
from hopling.records import read
from hopling.training.processes import refuse_split_weights, split_weights
from training import practice_run

HERE = Path(__file__).parent
TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """What one process and what two have practiced, in each way; one start of torchrun."""
    made = tmp_path_factory.mktemp("practice")
    torch.save(asking.warm().model.state_dict(), made / "start.pt")
    for way in practice_run.WAYS:
        student = Reseeded if "split" in way else LocalModel
        practice_run.practiced(made / "one", way, made=student)
    environment = {**os.environ, "PYTHONPATH": str(HERE.parent), "OMP_NUM_THREADS": "1"}
    script = [str(HERE / "practice_run.py"), str(made / "two")]
    with serving(Sampler(asking.fresh())) as url:
        done = subprocess.run(
            [*TORCHRUN, *script, url], env=environment, capture_output=True, text=True, timeout=600
        )
    assert done.returncode == 0, done.stderr[-5000:]
    return made


@pytest.mark.parametrize("way", practice_run.WAYS)
def test_two_processes_learn_what_one_learns(folder, way):
    """MEASURED: DDP on gloo; groups stay whole, and episodes may differ in turns by process.

    Split, FSDP2 gathers weights for each forward, and a stand-in for vLLM's server plays.
    """
    one, two = folder / "one" / way, folder / "two" / way
    assert (two / "episodes-1.jsonl").exists()
    start, weights = torch.load(folder / "start.pt"), torch.load(two / "weights.pt")
    has_moved = any(not torch.equal(weight, start[name]) for name, weight in weights.items())
    assert has_moved == ("adapter" in way)
    for name, weight in torch.load(one / "weights.pt").items():
        torch.testing.assert_close(weights[name], weight, atol=1e-4, rtol=1e-3)
    rows = zip(read(one / "metrics.jsonl"), read(two / "metrics.jsonl"), strict=True)
    for first, second in rows:
        assert first.keys() == second.keys()
        for name in {"loss", "grad_norm", "reward", "calls", "valid_correct"} & first.keys():
            assert second[name] == pytest.approx(first[name], rel=1e-2, abs=1e-5), name


DEEP = {"ACCELERATE_USE_DEEPSPEED": "true"}


def test_rollouts_on_ones_own_weights_refuse_weights_that_are_split(tmp_path):
    """docs/scale.md: processes play different numbers of turns, and gather none for another."""
    config = tmp_path / "ds.json"
    config.write_text('{"zero_optimization": {"stage": 3}}', encoding="utf-8")
    for told in (
        {"ACCELERATE_USE_FSDP": "true", "FSDP_VERSION": "2"},
        {**DEEP, "ACCELERATE_DEEPSPEED_ZERO_STAGE": "3"},
        {**DEEP, "ACCELERATE_DEEPSPEED_CONFIG_FILE": str(config)},
    ):
        with pytest.raises(SettingsError, match=r"a rollout needs whole ones\. Let vLLM play"):
            refuse_split_weights(told, reader="a rollout")
    refuse_split_weights({**DEEP, "ACCELERATE_DEEPSPEED_ZERO_STAGE": "2"}, reader="a rollout")


def test_the_first_version_of_fsdp_is_refused():
    """Ours: it wraps the model in another, whose names are not the student's."""
    with pytest.raises(SettingsError, match="--fsdp_version 2"):
        split_weights({"ACCELERATE_USE_FSDP": "true"})
