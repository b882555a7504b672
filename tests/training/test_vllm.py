"""GRPO whose episodes vLLM plays, on stand-ins for its server and its engine."""

import math

import pytest
import torch

import asking
from fake_vllm import Reseeded, Sampler, serving, stand_ins
from hopling.episode import Episode
from hopling.errors import SettingsError, WorldError
from hopling.records import read
from hopling.training.grpo import grpo
from hopling.training.practice import Goal, Run
from hopling.training.settings import VLLM


@pytest.fixture
def sampler(monkeypatch):
    """An engine that starts with other weights than the student's, as a server would."""
    made = Sampler(asking.fresh())
    for target, name, value in stand_ins(made):
        if isinstance(target, dict):
            monkeypatch.setitem(target, name, value)
        else:
            monkeypatch.setattr(target, name, value, raising=False)
    for name in ("RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"):
        monkeypatch.setenv(name, "")  # TRL sets them for a colocated engine
        monkeypatch.delenv(name)
    return made


def practiced(student, folder, *, valid=(), on_step=None, **settings):
    return grpo(
        student,
        asking.world(),
        tasks=asking.tasks(4),
        goal=Goal(asking.right),
        settings=asking.practice(**settings),
        run=Run(folder, valid=valid, on_step=on_step),
    )


def weights(student):
    return dict(student.model.named_parameters())


def reseeded():
    warm = asking.warm()
    return Reseeded(warm.model, warm.tokenizer)


def same(first, second):
    rows = zip(read(first / "metrics.jsonl"), read(second / "metrics.jsonl"), strict=True)
    for one, two in rows:
        assert one.keys() == two.keys()
        for name in ("loss", "grad_norm", "reward", "calls", "valid_reward"):
            expected = pytest.approx(one.get(name, 0.0), rel=1e-3, abs=1e-6)
            assert two.get(name, 0.0) == expected, name


def played(folder):
    return [Episode.from_json(row) for row in read(folder / "episodes.jsonl")]


def whole(model):
    """Return the weights with the adapter's product added, by the names that vLLM knows."""
    found = {}
    for name, module in model.named_modules():
        if hasattr(module, "base_layer"):
            found[f"{name}.weight"] = module.base_layer.weight + module.get_delta_weight("default")
        elif hasattr(module, "weight") and "lora_" not in name and "base_layer" not in name:
            found[f"{name}.weight"] = module.weight
    return found


@pytest.mark.parametrize("lora_rank", [0, 4])
def test_practice_on_a_server_is_practice_on_the_students_own_model(tmp_path, sampler, lora_rank):
    """Issue 2: the same episodes and losses, and whenever it plays the server has the weights.

    They arrive to the bit without an adapter; with one, base weight plus the adapter's product.
    """
    settings = dict(lora_rank=lora_rank, kl=0.05, valid_every=1, learning_rate=1e-2)
    valid = asking.tasks(2)
    alone = practiced(reseeded(), tmp_path / "local", valid=valid, **settings)
    student, compared = asking.warm(), []

    def compare(row):
        theirs = weights(sampler.student)
        for name, weight in whole(student.model).items():
            own = theirs["model.embed_tokens.weight" if name == "lm_head.weight" else name]
            compared.append(name)
            torch.testing.assert_close(own, weight, rtol=0, atol=1e-6 if lora_rank else 0.0)

    with serving(sampler) as url:
        vllm = VLLM("server", url)
        practiced(student, tmp_path / "on", valid=valid, on_step=compare, vllm=vllm, **settings)
    same(tmp_path / "local", tmp_path / "on")
    own, others = played(tmp_path / "local"), played(tmp_path / "on")
    assert [e.tokens for e in own] == [e.tokens for e in others]
    assert sampler.num_updates == 3  # at the start, and after each step
    assert len(compared) == 3 * len(set(compared)) > 3 * 10
    for name, weight in weights(student).items():
        torch.testing.assert_close(weight, weights(alone)[name], rtol=1e-3, atol=1e-5)


def test_the_servers_ids_are_what_is_trained_on(tmp_path, sampler):
    """Law 2: none is tokenized again, and each turn goes out behind all ids before it."""
    with serving(sampler) as url:
        practiced(asking.warm(), tmp_path, steps=1, vllm=VLLM("server", url))
    asked = {(tuple(prompt), tuple(sampled)) for prompt, sampled in sampler.sent}
    for episode in played(tmp_path):
        for place, segment in enumerate(episode.segments):
            if segment.source == "policy":
                before = [t for s in episode.segments[:place] for t in s.tokens]
                assert (tuple(before), segment.tokens) in asked
                assert len(segment.logprobs) == len(segment.tokens)


@pytest.mark.parametrize("sleeps", [False, True])
def test_a_colocated_engine_plays_with_the_trainers_weights(tmp_path, sampler, sleeps):
    """TRL's colocate; asleep, the engine holds no weights, and each rollout wakes it."""
    settings = dict(valid_every=1, learning_rate=1e-2)
    valid = asking.tasks(2)
    practiced(reseeded(), tmp_path / "local", valid=valid, **settings)
    student = asking.warm()
    student.model.config._name_or_path = student.model.name_or_path = "some/folder"
    vllm = VLLM("colocate", enable_sleep_mode=sleeps)
    practiced(student, tmp_path / "on", valid=valid, vllm=vllm, **settings)
    same(tmp_path / "local", tmp_path / "on")
    assert [e.tokens for e in played(tmp_path / "local")] == [
        e.tokens for e in played(tmp_path / "on")
    ]


def test_updates_may_weigh_what_vllm_computes_differently(tmp_path, sampler):
    """TRL's importance sampling: the ratio of the trainer's to the sampler's, capped at 3.

    A sampler that says each token was e times less likely has its gradient times e; the ratio of
    a whole sequence is then over 3, which leaves it out.
    """
    norms = []
    with serving(sampler) as url:
        for bias, kind in [
            (0.0, "token_truncate"),
            (-1.0, "token_truncate"),
            (-1.0, "sequence_mask"),
        ]:
            sampler.bias = bias
            vllm = VLLM("server", url, importance_sampling=kind)
            folder = tmp_path / f"{bias} {kind}"
            practiced(asking.warm(), folder, steps=1, vllm=vllm)
            norms.append(read(folder / "metrics.jsonl")[0]["grad_norm"])
    assert norms[0] > 0.1
    assert norms == pytest.approx([norms[0], math.e * norms[0], 0.0], rel=1e-3)


def test_without_vllm_the_error_says_what_to_do(tmp_path):
    """Ours."""
    with pytest.raises(SettingsError, match="vLLM is not installed"):
        practiced(asking.warm(), tmp_path, vllm=VLLM("server", "http://127.0.0.1:9"))


def test_a_server_that_is_down_or_takes_no_weights_is_named(tmp_path, sampler):
    """Ours: before anything is played."""
    down = VLLM("server", "http://127.0.0.1:9", server_timeout_s=0)
    with pytest.raises(WorldError, match=r"did not answer at http://127\.0\.0\.1:9 within 0 s"):
        practiced(asking.warm(), tmp_path, vllm=down)
    refused = pytest.raises(SettingsError, match="--weight-transfer-config")
    with serving(sampler, weight_transfer_config=None) as url, refused:
        practiced(asking.warm(), tmp_path, vllm=VLLM("server", url))
    config = {"logprobs_mode": "raw_logprobs", "max_model_len": 128}
    refused = pytest.raises(SettingsError, match="gives raw_logprobs")
    with serving(sampler, model_config=config) as url, refused:
        weighed = VLLM("server", url, importance_sampling="token_mask")
        practiced(asking.warm(), tmp_path, vllm=weighed)
    assert sampler.sent == []


def test_a_student_without_a_folder_cannot_be_colocated(tmp_path, sampler):
    """TRL: a colocated engine reads the model's shape from its path."""
    with pytest.raises(SettingsError, match="not loaded from a folder"):
        practiced(asking.warm(), tmp_path, vllm=VLLM("colocate"))
