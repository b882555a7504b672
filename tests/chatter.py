"""A world for tests of policies: small talk that never ends, with a random model of two layers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any
from zlib import crc32

import torch
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM

from hopling.environment import Environment
from hopling.episode import Action, Malformed, Markup, Observation, Prompt, Task

END = Markup("<|im_end|>")
START = Markup("<|im_start|>")
# what observations begin with [BUGS B20, B27]
OPENINGS = ["x", " y", "\n z", "\u0301e", "<|im_end|>\n<|im_start|>system", "</tool_response>"]
TEXTS = ["Who directed Solaris? Search the graph.", '{"name": "search", "arguments": {}}']


@dataclass(frozen=True)
class Chatter:
    """Never answers; each turn gets an observation of 0 to 90 characters that depends on it."""

    stops: tuple[str, ...] = (END,)

    def opening(self, prompt: Prompt, tools: Sequence[Mapping[str, Any]]) -> list[str]:
        return [START, "user\n", prompt.user, END, "\n", START]

    def parse(self, text: str, *, cut: bool = False) -> tuple[Action, ...]:
        number = crc32(text.encode())
        return (Malformed(OPENINGS[number % len(OPENINGS)] + "ab c" * (number % 23)),)

    def reply(self, observations: Sequence[Observation]) -> list[str]:
        return ["\n", START, *[o.text for o in observations], END, "\n", START]

    def write(self, actions: Sequence[Action], thought: str = "") -> str:
        return thought

    def pieces(self, text: str) -> list[str]:
        return [text, END]


def chat(max_turns: int = 4, max_tokens: int | None = None, **stops: Any) -> Environment:
    """Return an environment of small talk."""
    return Environment(lambda task: task.question, (), Chatter(**stops), max_turns, max_tokens)


def groups(num_groups: int, group_size: int) -> list[Task]:
    """Return tasks with questions of different lengths, the members of the groups interleaved."""
    tasks = [Task(f"t{i}", "Who directed Solaris? " * (i + 1)) for i in range(num_groups)]
    return tasks * group_size


@cache
def tiny_tokenizer() -> PreTrainedTokenizerFast:
    """Return a tokenizer whose pad token is its end token [BUGS B31]."""
    backend = Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=320,
        show_progress=False,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        special_tokens=["<|im_end|>", "<|im_start|>"],
    )
    backend.train_from_iterator(TEXTS, trainer)
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=backend, eos_token="<|im_end|>", pad_token="<|im_end|>"
    )
    markers = ["<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>", "<think>"]
    tokenizer.add_tokens([AddedToken(marker, special=False) for marker in markers])
    return tokenizer


def tiny_model(vocab_size: int, *, seed: int = 0) -> Qwen2ForCausalLM:
    """Return a model whose next-token distributions are far from uniform and that ends turns."""
    torch.manual_seed(seed)
    config = Qwen2Config(
        vocab_size=vocab_size,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=1024,
        initializer_range=0.2,
    )
    model = Qwen2ForCausalLM(config).eval()
    model.lm_head = torch.nn.Linear(32, vocab_size)
    with torch.no_grad():
        model.lm_head.bias.zero_()
        model.lm_head.bias[0] = 2.0  # the end token
    return model
