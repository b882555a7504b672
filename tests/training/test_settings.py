"""What may be set, and where each default comes from."""

import pytest

from hopling.errors import SettingsError
from hopling.settings import describe, load, untagged
from hopling.training.settings import GRPO, SFT


@pytest.mark.parametrize("cls", [SFT, GRPO])
def test_every_default_says_where_it_comes_from_and_what_it_does(cls):
    """PAPERS: un-sourced values are visible and can be swept."""
    assert untagged(cls) == []
    assert all(entry.help for entry in describe(cls()))


def test_defaults_are_those_of_sog_r1():
    """SoG-R1 App. B."""
    sft, grpo = SFT(), GRPO()
    assert (sft.lora_rank, sft.lora_alpha, sft.lora_dropout) == (64, 128, 0.1)
    assert (sft.learning_rate, sft.schedule, sft.warmup_ratio) == (2e-4, "cosine", 0.1)
    assert (sft.batch_size, sft.epochs, sft.max_tokens) == (64, 5, 32_768)
    assert (grpo.group_size, grpo.temperature, grpo.top_p, grpo.top_k) == (8, 1.0, 0.8, 20)
    assert (grpo.kl, grpo.learning_rate, grpo.minibatch_size) == (0.05, 2e-7, 8)


def test_a_group_of_one_is_refused():
    """BUGS B29."""
    with pytest.raises(SettingsError, match="it needs at least 2"):
        GRPO(group_size=1)


def test_a_step_holds_whole_updates():
    """verl: a mini-batch counts tasks."""
    with pytest.raises(SettingsError, match="no multiple of minibatch_size, 8"):
        GRPO(batch_size=12)


@pytest.mark.parametrize("name", ["steps", "micro_batch_size", "iterations", "max_turn_tokens"])
def test_a_count_of_nothing_is_refused(name):
    """Ours: the message quotes the value."""
    with pytest.raises(SettingsError, match=f"{name} is 0; expected at least 1"):
        load(GRPO, {name: 0})
