"""Log-probabilities in one pass over a tree of tokens are those of a pass over each sequence."""

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from transformers import LlamaConfig, LlamaForCausalLM, Qwen2Config, Qwen2ForCausalLM

from hopling.training import prefixes
from hopling.training.prefixes import span_logprobs
from hopling.training.tiny import tiny_llama

SHAPE = dict(vocab_size=50, hidden_size=48, intermediate_size=64, num_hidden_layers=3)


def models():
    torch.manual_seed(3)
    heads = dict(num_attention_heads=6, num_key_value_heads=2, initializer_range=0.3)
    return {
        "tiny's Llama, with biases": tiny_llama(50, seed=1, width=32, layers=2),
        "SmolLM2's shape, grouped heads": LlamaForCausalLM(
            LlamaConfig(**SHAPE, **heads, tie_word_embeddings=True)
        ),
        "Qwen2, biases and grouped heads": Qwen2ForCausalLM(Qwen2Config(**SHAPE, **heads)),
    }


MODELS = models()


def alone(model, sequence, span):
    """The reference: a whole forward pass over the sequence alone."""
    model.eval()
    with torch.no_grad():
        logprobs = model(torch.tensor([sequence])).logits[0].float().log_softmax(-1)
    return [logprobs[t - 1, sequence[t]].item() for t in range(*span)]


@pytest.mark.parametrize("name", MODELS)
def test_branches_score_as_whole_sequences_do(name):
    """CNY 5.7, issue 4: exact to 1e-5, with branches of several lengths on a shared beginning."""
    torch.manual_seed(0)
    trunk = torch.randint(0, 50, (60,)).tolist()
    tails = [torch.randint(0, 50, (n,)).tolist() for n in (2, 9, 30, 31)]
    sequences = [trunk + tail for tail in tails] + [trunk[:40] + tails[2], tails[3], trunk]
    spans = [(len(s) - 2, len(s)) for s in sequences]
    found = span_logprobs(MODELS[name], sequences, spans)
    for sequence, span, values in zip(sequences, spans, found.logprobs, strict=True):
        assert values == pytest.approx(alone(MODELS[name], sequence, span), abs=1e-5)
    assert found.tokens < 0.6 * sum(map(len, sequences))


tokens = st.lists(st.integers(0, 3), min_size=2, max_size=12)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(tokens, min_size=1, max_size=6), st.data())
def test_any_sequences_and_spans_score_alike(sequences, data):
    """Ours: four kinds of tokens make most beginnings shared, and some sequences equal."""
    spans = []
    for sequence in sequences:
        start = data.draw(st.integers(1, len(sequence)))
        spans.append((start, data.draw(st.integers(start, len(sequence)))))
    model = MODELS["SmolLM2's shape, grouped heads"]
    found = span_logprobs(model, sequences, spans).logprobs
    for sequence, span, values in zip(sequences, spans, found, strict=True):
        assert values == pytest.approx(alone(model, sequence, span), abs=1e-5)


def test_large_trees_are_split_and_score_alike(monkeypatch):
    """Ours: the mask has the square of a tree's tokens."""
    sequences = [[*range(30), tail] for tail in range(8)]
    spans = [(29, 31)] * 8
    model = MODELS["Qwen2, biases and grouped heads"]
    whole = span_logprobs(model, sequences, spans)
    monkeypatch.setattr(prefixes, "MAX_TREE_TOKENS", 32)
    monkeypatch.setattr(prefixes, "MAX_FORWARD_TOKENS", 64)
    split = span_logprobs(model, sequences, spans)
    assert split.logprobs == [pytest.approx(values, abs=1e-5) for values in whole.logprobs]
    assert whole.tokens == 30


def test_a_model_is_left_in_the_mode_it_was_in():
    """Ours: dropout off while scoring, no gradient kept."""
    model = MODELS["tiny's Llama, with biases"].train()
    span_logprobs(model, [[1, 2, 3]], [(1, 3)])
    assert model.training
    assert all(parameter.grad is None for parameter in model.parameters())
