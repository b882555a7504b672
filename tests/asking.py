"""A world for tests of training: the student asks for a number and repeats it.

A turn is `?KEY` or `=NUMBER`; tokens are bytes. A student that was warmed up asks rightly and then
mostly guesses, so practice has something to find.
"""

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM

from hopling.environment import Environment
from hopling.episode import Action, Answer, Call, Episode, Malformed, Markup, Observation, Task
from hopling.errors import WorldError
from hopling.policies.local import LocalModel
from hopling.policies.sampling import Sampling
from hopling.policies.scripted import Scripted
from hopling.rollout import rollout
from hopling.training.batches import replay
from hopling.training.settings import GRPO, SFT
from hopling.training.sft import sft

NUMBERS = {"a": "1", "b": "2"}
END = "<end>"


class Plain:
    """`?KEY` asks, `=TEXT` answers."""

    stops = (Markup(END),)

    def opening(self, prompt: Any, tools: Any) -> list[str]:
        return [prompt.user, "\n"]

    def parse(self, text: str, *, cut: bool = False) -> tuple[Action, ...]:
        if text.startswith("="):
            return (Answer(text[1:]),)
        if text.startswith("?"):
            return (Call("ask", {"key": text[1:]}, (0, len(text))),)
        return (Malformed("Write ?KEY or =NUMBER."),)

    def reply(self, observations: Sequence[Observation]) -> list[str]:
        return ["\n", *[o.text for o in observations], "\n"]

    def write(self, actions: Sequence[Action], thought: str = "") -> str:
        (action,) = actions
        return f"={action.text}" if isinstance(action, Answer) else f"?{action.arguments['key']}"

    def pieces(self, text: str) -> list[str]:
        return [text, Markup(END)]


@dataclass(frozen=True)
class Ask:
    """Gives the number of a key; on keys in `down` the world fails."""

    down: tuple[str, ...] = ()
    name: str = "ask"
    schema: dict[str, Any] = field(default_factory=dict)

    def __call__(self, episode: Episode, key: str) -> Observation:
        if key in self.down:
            raise WorldError("no answer")
        return Observation(NUMBERS.get(key, "0"))


def world(*, down: tuple[str, ...] = (), max_tokens: int = 48) -> Environment:
    """Return the environment."""
    prompt = lambda task: task.question  # noqa: E731
    return Environment(prompt, (Ask(down),), Plain(), max_turns=3, max_tokens=max_tokens)


def tasks(number: int = 8) -> list[Task]:
    """Return tasks that ask for a and for b in turn."""
    keys = [("a", "b")[i % 2] for i in range(number)]
    return [Task(f"t{i}", f"{k} is", answers=(NUMBERS[k],)) for i, k in enumerate(keys)]


def right(episode: Episode) -> float:
    """Return 1.0 for the right number."""
    return float(episode.answer is not None and episode.answer.text == episode.task.answers[0])


@cache
def tokenizer() -> PreTrainedTokenizerFast:
    """Return a tokenizer whose tokens are bytes; pad and end are one token, as in many models."""
    names = [END, *sorted(pre_tokenizers.ByteLevel.alphabet())]
    model = models.BPE(vocab={name: i for i, name in enumerate(names)}, merges=[])
    bytewise = Tokenizer(model)
    bytewise.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    bytewise.decoder = decoders.ByteLevel()
    return PreTrainedTokenizerFast(tokenizer_object=bytewise, pad_token=END, eos_token=END)


def fresh() -> LocalModel:
    """Return a student with random weights, the same at each call."""
    torch.manual_seed(0)
    config = Qwen2Config(
        vocab_size=257,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=2,
        max_position_embeddings=128,
        initializer_range=0.15,
        tie_word_embeddings=True,
        eos_token_id=0,
    )
    return LocalModel(Qwen2ForCausalLM(config), tokenizer())


def traces(student: LocalModel) -> list[Episode]:
    """Return the right way through each task, in the student's tokens."""
    script = {t.id: [f"?{t.question[0]}", f"={t.answers[0]}"] for t in tasks()}
    played = rollout(Scripted(script), world(), tasks())
    return replay(played, world(), student.encoder)


@cache
def _warm_model() -> Qwen2ForCausalLM:
    student = fresh()
    settings = warm_up(epochs=45)
    with TemporaryDirectory() as folder:
        sft(student, traces(student), settings=settings, output_dir=Path(folder))
    return student.model


def warm() -> LocalModel:
    """Return a student that has imitated some traces, the same at each call."""
    return LocalModel(deepcopy(_warm_model()), tokenizer())


def warm_up(**changed: Any) -> SFT:
    """Return settings of a short SFT of all weights."""
    usual = dict(learning_rate=5e-3, lora_rank=0, batch_size=8, micro_batch_size=8)
    return SFT(**usual | changed)


def practice(**changed: Any) -> GRPO:
    """Return settings of a short GRPO that samples from the whole distribution."""
    usual = dict(
        steps=2,
        group_size=4,
        batch_size=4,
        minibatch_size=4,
        micro_batch_size=16,
        learning_rate=2e-3,
        top_p=1.0,
        top_k=0,
        kl=0.0,
        max_turn_tokens=6,
        max_grad_norm=1e9,
        valid_every=2,
        save_every=1,
    )
    return GRPO(**usual | changed)


__all__ = ["Sampling", "Scripted"]  # for the tests that import this module
