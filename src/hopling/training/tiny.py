"""A tiny student, trained on a laptop in minutes: its tokenizer and its constructed start.

The model is a stock Llama with attention biases and 1.5 million parameters, so that TRL, PEFT and
saving work unchanged. Random weights do not learn to copy ids and names within minutes; the
constructed start does, because its attention begins as "find where the current token came before,
copy what followed" (untrained it continues 75 to 80 % of repeated random segments).
"""

import math
from collections.abc import Iterable, Sequence

import torch
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast
from transformers.models.llama.modeling_llama import LlamaAttention

PAD = "<|pad|>"
END = "<|end|>"
_THETA = 1e6
_NEAR = 8.0  # how many nats the last place is favored over one a hundred tokens back, at most
_SCALE = 10.0  # of the residual stream, so that one Adam step does not undo a small weight
MARKERS = (PAD, END, "<|user|>", "<|assistant|>", "<|tool|>")

# tags and a table's repeated cells become single tokens, and ids a fixed number of digit groups
_PIECES = "|".join(
    [
        r"</?[a-z]+>",
        r"\|(?: \w+ \|)+\n\|(?:---\|)+",  # a table's head
        r"[\n ]?\| [a-z_.]+ \| [a-z ]+ \|",  # the cells of a property and its label
        r"(?: \|)?\n\|(?= [a-z]\.\d)",  # the start of a row that opens with an id
        r" ?\b[a-z]\.(?=\d)",
        r" \| ?|,? ?[{}]+,?| \|\n",
        r" ?[a-z]+(?:[_.][a-z]+)+",  # a property
        r"\d{1,3}",
        r" ?\p{L}+",
        r" ?(?:(?!</?[a-z]+>)[^\s\p{L}\d{}|])+",
        r"\s+",
    ]
)


def train_tokenizer(texts: Iterable[str], *, vocab_size: int = 2600) -> PreTrainedTokenizerFast:
    """Return a byte-level BPE tokenizer trained on the texts.

    Numbers are split into groups of up to three digits, each group one token.
    """
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(_PIECES), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        special_tokens=list(MARKERS),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    numbers = [f" {n:03d} {n}" for n in range(1000)] * 40
    tokenizer.train_from_iterator([*texts, *numbers], trainer)
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token=PAD,
        eos_token=END,
        additional_special_tokens=list(MARKERS[2:]),
        clean_up_tokenization_spaces=False,
    )


def tiny_llama(
    vocab_size: int,
    *,
    seed: int,
    width: int = 128,
    layers: int = 4,
    heads: int = 2,
    alike: Sequence[tuple[int, int]] = (),
) -> LlamaForCausalLM:
    """Return a small Llama whose attention starts as copying.

    Even layers carry each token's predecessor; odd layers find where the current token was the
    predecessor and copy what stands there. `layers` is even. Of each pair in `alike` the first
    token starts with an embedding near the second's, so that what follows the one is copied after
    the other. [ours]
    """
    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=vocab_size,
        hidden_size=width,
        intermediate_size=3 * width,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_key_value_heads=heads,
        head_dim=width,
        attention_bias=True,
        max_position_embeddings=8192,
        rope_parameters={"rope_type": "default", "rope_theta": _THETA},
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=MARKERS.index(END),
        pad_token_id=MARKERS.index(PAD),
    )
    model = LlamaForCausalLM(config)
    embeddings = model.model.embed_tokens.weight.data.normal_(std=0.1 * _SCALE)
    for token, like in alike:
        embeddings[token].lerp_(embeddings[like], 0.7)
    model.model.norm.weight.data.fill_(1 / _SCALE)  # so that logits start near one
    frequencies = _THETA ** (-torch.arange(0, width, 2) / width)
    for index, layer in enumerate(model.model.layers):
        attention = layer.self_attn
        for free in (layer.mlp.gate_proj, layer.mlp.up_proj, attention.q_proj, attention.k_proj):
            free.weight.data.normal_(std=1 / math.sqrt(width))
        attention.v_proj.weight.data.normal_(std=1 / math.sqrt(width))
        attention.o_proj.weight.data.normal_(std=0.01 * _SCALE / math.sqrt(width))
        layer.mlp.down_proj.weight.data.normal_(std=0.01 * _SCALE / math.sqrt(width))
        if index % 2 == 0:
            turn = _look_back(attention, frequencies)
        else:
            _copy_what_followed(attention, turn, frequencies)
    return model


def _look_back(attention: LlamaAttention, frequencies: torch.Tensor) -> torch.Tensor:
    """Make the first head carry each token's predecessor, turned by a rotation; return that.

    After rotary, a key bias of (1, 0) and a query bias of (cos -f, sin -f) in every pair of
    dimensions with frequency f score highest one position back.
    """
    width = 2 * len(frequencies)
    turn, value = _rotation(width), _rotation(width)
    ones, zeros = torch.ones(width // 2), torch.zeros(width // 2)
    query_bias = torch.cat([torch.cos(-frequencies), torch.sin(-frequencies)])
    attention.q_proj.weight.data[:width] *= 0.02
    attention.k_proj.weight.data[:width] *= 0.02
    attention.q_proj.bias.data[:width] = 8.0 * query_bias
    attention.k_proj.bias.data[:width] = 8.0 * torch.cat([ones, zeros])
    attention.v_proj.weight.data[:width] = value
    attention.o_proj.weight.data[:, :width] = 0.07 * _SCALE * turn @ value.T
    return turn


def _copy_what_followed(
    attention: LlamaAttention, turn: torch.Tensor, frequencies: torch.Tensor
) -> None:
    """Make the first head find where the current token was the predecessor, and copy that place.

    Only dimensions that rotary turns by less than a radian in 300 positions take part,
    so that the match does not depend on the distance.
    """
    width = 2 * len(frequencies)
    slow = (frequencies * 300 < 1).float().repeat(2)[:, None]
    match = 3.0 * slow * _rotation(width)
    near = ((frequencies > 1 / 200) & (frequencies < 1 / 60)).float()
    near *= math.sqrt(_NEAR * math.sqrt(width) / near.sum())
    for projection in (attention.q_proj, attention.k_proj):
        projection.bias.data[: width // 2] = near
    attention.q_proj.weight.data[:width] = match
    attention.k_proj.weight.data[:width] = match @ turn.T
    attention.v_proj.weight.data[:width] = torch.eye(width)
    attention.o_proj.weight.data[:, :width] = 0.2 * _SCALE * torch.eye(width)


def _rotation(width: int) -> torch.Tensor:
    return torch.linalg.qr(torch.randn(width, width))[0]
