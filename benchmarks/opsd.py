"""What OPSD adds to a step of GRPO: one pass over shared beginnings against two passes a walk.

    OMP_NUM_THREADS=1 python benchmarks/opsd.py

One random Llama plays 2 tasks 8 times each. Prompts, turns, previews and recaps have the sizes of
CNY's training (120-word texts, three previews of 20 words, recaps of 32 words; one episode in five
walks twice) and tokens come from a script (the model computes them, then the script's are taken),
so every way reads, samples and trains on the same ones. Times are CPU seconds of this process, the
first step left out. "passes" computes delta as two plain forward passes over whole sequences.
"""

import random
import re
import tempfile
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Any
from unittest import mock

import torch
from tokenizers import Tokenizer, models, pre_tokenizers, trainers
from tokenizers.decoders import ByteLevel
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from hopling.environment import Environment
from hopling.episode import Action, Answer, Call, Episode, Markup, Observation, Prompt, Task
from hopling.policies import local_turn
from hopling.policies.local import LocalModel
from hopling.records import read
from hopling.training import credit
from hopling.training.credit import hindsight
from hopling.training.grpo import grpo
from hopling.training.practice import Goal, Run
from hopling.training.prefixes import SpanScores
from hopling.training.recaps import Recap, by_policy, first_words
from hopling.training.settings import GRPO, OPSD

STEPS, TASKS, GROUP, MICRO = 2, 2, 8, 16
TEXT, PREVIEW, THOUGHT, RECAP = 120, 20, 30, 32  # words
END = "<end>"
RNG = random.Random(0)
WORDS = ["".join(RNG.choices("abcdefghijklmnop", k=RNG.randint(3, 7))) for _ in range(1500)]


def words(number: int, seed: object) -> str:
    """Return so many words, the same for a seed."""
    return " ".join(random.Random(str(seed)).choices(WORDS, k=number))


def previews(node: int) -> str:
    """Return the lines of the three neighbors of a node."""
    return "\n".join(f"[{node * 3 + k}]: {words(PREVIEW, node * 3 + k)}" for k in (1, 2, 3))


class Tagged:
    """`<walk>` or `<answer>` after a thought; a recap is neither, and an answer."""

    stops = (Markup(END),)

    def opening(self, prompt: Prompt, tools: Any) -> list[str]:
        return [prompt.system, prompt.user, "\n"]

    def parse(self, text: str, *, cut: bool = False) -> tuple[Action, ...]:
        if found := re.search(r"<walk>(\d+)</walk>", text):
            return (Call("walk", {"node": found[1]}, found.span()),)
        return (Answer(text),)

    def reply(self, observations: Sequence[Observation]) -> list[str]:
        return ["\n", *(o.text for o in observations), "\n"]

    def write(self, actions: Sequence[Action], thought: str = "") -> str:
        return thought

    def pieces(self, text: str) -> list[str]:
        return [text, Markup(END)]


@dataclass(frozen=True)
class Walk:
    """Gives a node's text and the previews of its neighbors."""

    name: str = "walk"
    schema: dict[str, Any] = field(default_factory=dict)

    def __call__(self, episode: Episode, node: str) -> Observation:
        return Observation(f"{words(TEXT, node)}\n{previews(int(node))}", (node,), (node,))


def make_tokenizer() -> PreTrainedTokenizerFast:
    """Return a byte-level tokenizer in which a word is about one token."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(False)]
    )
    tokenizer.decoder = ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=5000, special_tokens=[END], initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator([" ".join(WORDS), " <walk></walk><answer></answer>"] * 9, trainer)
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token=END, eos_token=END)


def make_model(tokenizer: PreTrainedTokenizerFast) -> LlamaForCausalLM:
    """Return random weights, the same at each call."""
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=128,
        intermediate_size=384,
        num_hidden_layers=4,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=4096,
        tie_word_embeddings=True,
        eos_token_id=0,
    )
    return LlamaForCausalLM(config)


def turn(seed: int, number: int, max_words: int) -> str:
    """Return the turn that an episode's script has; a recap is what has a small limit."""
    if max_words == RECAP_LIMIT:
        return words(RECAP, seed)
    rng = random.Random(seed)
    first = rng.randint(1, 3)
    nodes = [first, *([first * 3 + rng.randint(1, 3)] if rng.random() < 0.2 else [])]
    thought = words(THOUGHT, f"{seed}/{number}")
    if number < len(nodes):
        return f"{thought} <walk>{nodes[number]}</walk>"
    return f"{thought} <answer>{rng.choice(WORDS)}</answer>"


RECAP_LIMIT = 50


@contextmanager
def scripted(tokenizer: PreTrainedTokenizerFast) -> Iterator[None]:
    """Let the model compute each token, and take the script's."""

    def scripts(keys: Sequence[tuple[int, int]], num_tokens: int) -> torch.Tensor:
        rows = torch.zeros(len(keys), num_tokens)
        for row, (seed, number) in zip(rows, keys, strict=True):
            tokens = [*tokenizer.encode(turn(seed, number, num_tokens)), 0][:num_tokens]
            row[: len(tokens)] = torch.tensor(tokens)
        return rows

    def draw(logits_BV: torch.Tensor, tokens_B: torch.Tensor, _: Any) -> Any:
        tokens_B = tokens_B.long()
        logprobs_BV = logits_BV.float().log_softmax(dim=-1)
        return tokens_B, logprobs_BV.gather(1, tokens_B[:, None])[:, 0]

    with (
        mock.patch.object(local_turn, "uniforms", scripts),
        mock.patch.object(local_turn, "draw", draw),
    ):
        yield


def whole_passes(
    model: Any, sequences: Sequence[Sequence[int]], spans: Sequence[tuple[int, int]]
) -> SpanScores:
    """Return what `span_logprobs` does, by a plain forward pass over each whole sequence."""
    result: list[list[float]] = [[] for _ in sequences]
    order = sorted(range(len(sequences)), key=lambda i: len(sequences[i]))
    with torch.no_grad():
        for start in range(0, len(order), MICRO):
            rows = order[start : start + MICRO]
            width = max(len(sequences[i]) for i in rows)
            ids = [[*sequences[i], *[0] * (width - len(sequences[i]))] for i in rows]
            real = [[1] * len(sequences[i]) + [0] * (width - len(sequences[i])) for i in rows]
            last = max(width - spans[i][0] for i in rows) + 1
            logits = model(
                input_ids=torch.tensor(ids),
                attention_mask=torch.tensor(real),
                logits_to_keep=last,
                use_cache=False,
            ).logits
            for row, i in enumerate(rows):
                kept = logits[row].float().log_softmax(-1)
                places = range(*spans[i])
                result[i] = [kept[t - 1 - width, sequences[i][t]].item() for t in places]
    return SpanScores(result, sum(map(len, sequences)))


@dataclass(frozen=True)
class Cost:
    """CPU seconds a step, and tokens read for the credit of an episode."""

    rollout: float
    credit: float
    update: float
    tokens: float
    delta: float

    @property
    def step(self) -> float:
        return self.rollout + self.credit + self.update


def cost(
    tokenizer: PreTrainedTokenizerFast, recap: Recap | None, *, flat: bool, gate: bool
) -> Cost:
    """Return what a step takes; with `flat`, half of the groups have equal rewards."""
    student = LocalModel(make_model(tokenizer), tokenizer)
    world = Environment(
        lambda task: Prompt(f"{words(TEXT, task.id)}\n{previews(0)}\nclasses: {words(20, 1)}"),
        (Walk(),),
        Tagged(),
        max_turns=5,
    )
    made = [hindsight(recap, OPSD(gate=gate, max_recap_tokens=RECAP_LIMIT))] if recap else []

    def reward(episode: Episode) -> float:
        is_flat = flat and int(episode.task.id[1:]) % 2
        return 1.0 if is_flat else float(episode.seed % 2)

    with tempfile.TemporaryDirectory() as folder, scripted(tokenizer):
        grpo(
            student,
            world,
            tasks=[Task(f"t{n}", "") for n in range(TASKS)],
            goal=Goal(reward, credit=tuple(made)),
            settings=GRPO(
                steps=STEPS,
                group_size=GROUP,
                batch_size=TASKS,
                minibatch_size=TASKS,
                micro_batch_size=MICRO,
                top_p=1.0,
                top_k=0,
                kl=0.0,
                learning_rate=1e-6,
                max_turn_tokens=200,
                save_every=1000,
            ),
            run=Run(Path(folder)),
        )
        rows = read(Path(folder) / "metrics.jsonl")[1:]
    assert rows[-1]["endings"]["answered"] == TASKS * GROUP, rows[-1]["endings"]
    parts = [fmean(row[f"{p}_cpu_seconds"] for row in rows) for p in ("rollout", "credit", "train")]
    delta = rows[0].get("delta_abs") or 0.0
    return Cost(*parts, tokens=rows[-1].get("credit_tokens", 0.0), delta=delta)


def main() -> None:
    """Run each way in turn and print what it took."""
    warnings.simplefilter("ignore")
    started = time.process_time()
    tokenizer = make_tokenizer()
    recaps = {"by the policy": by_policy(Tagged(), system=""), "first words": first_words(RECAP)}
    print(f"{'':44}rollouts  credit  update    step  tokens/episode  mean |delta|")
    for flat in (False, True):
        base = show(
            "GRPO" + ", half of the groups flat" * flat,
            cost(tokenizer, None, flat=flat, gate=False),
        )
        for name, recap in recaps.items():
            for gate in (False, True) if flat else (False,):
                label = f"  packed, recap {name}{', gated' * gate}"
                show(label, cost(tokenizer, recap, flat=flat, gate=gate), base)
            if not flat:
                with mock.patch.object(credit, "span_logprobs", whole_passes):
                    passes = cost(tokenizer, recap, flat=flat, gate=False)
                show(f"  passes, recap {name}", passes, base)
    print(f"{time.process_time() - started:.0f} CPU s")


def show(name: str, found: Cost, base: Cost | None = None) -> Cost:
    """Print a line, with what was added to the base."""
    more = f"  {100 * (found.step / base.step - 1):+.1f} %" if base else ""
    print(
        f"{name:44}{found.rollout:8.2f}{found.credit:8.2f}{found.update:8.2f}{found.step:8.2f}"
        f"{found.tokens:16.0f}{found.delta:14.6f}{more}",
        flush=True,
    )
    return found


if __name__ == "__main__":
    main()
