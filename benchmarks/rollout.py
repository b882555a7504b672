"""Rollouts with the cache kept from turn to turn, side by side with a prefill of every turn.

    OMP_NUM_THREADS=1 python benchmarks/rollout.py

One random Qwen2 of about a million parameters plays 32 episodes, in groups of 8, of four turns.
Observations and turn lengths are scripted, so both sides read and sample equally many tokens. The
other side calls transformers' `generate` on the whole context of all episodes each turn, with
left padding. Times are CPU seconds of this process, and the sides take turns in each repeat.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM

from hopling.episode import Prompt, View
from hopling.policies.local import LocalModel
from hopling.policies.sampling import Sampling

VOCAB = 2600
TURNS = 4
TURN_TOKENS = 40
GROUPS, GROUP_SIZE = 4, 8
REPEATS = 3


@dataclass(frozen=True)
class Load:
    """Tokens of each group's prompt, and of each episode's observations, by turn."""

    prompts: list[list[int]]
    observations: list[list[list[int]]]


def make_load(rng: torch.Generator) -> Load:
    """Return prompts of 300-400 tokens and observations of 40-160, all of random tokens."""

    def tokens(shortest: int, longest: int) -> list[int]:
        length = int(torch.randint(shortest, longest, (), generator=rng))
        return torch.randint(5, VOCAB, (length,), generator=rng).tolist()

    prompts = [tokens(300, 400) for _ in range(GROUPS)]
    episodes = range(GROUPS * GROUP_SIZE)
    return Load(prompts, [[tokens(40, 160) for _ in range(TURNS)] for _ in episodes])


def make_policy() -> LocalModel:
    """Return the model with random weights; no stop is given, so a turn runs to its limit."""
    torch.manual_seed(0)
    config = Qwen2Config(
        vocab_size=VOCAB,
        hidden_size=128,
        intermediate_size=384,
        num_hidden_layers=4,
        num_attention_heads=4,
        num_key_value_heads=4,
        max_position_embeddings=4096,
        tie_word_embeddings=True,
        eos_token_id=None,
    )
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocab = {character: number for number, character in enumerate(alphabet)}
    backend = Tokenizer(models.BPE(vocab=vocab, merges=[]))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=backend)
    sampling = Sampling(max_turn_tokens=TURN_TOKENS)
    return LocalModel(Qwen2ForCausalLM(config).eval(), tokenizer, sampling=sampling)


def play(load: Load, write: Callable[[list[list[int]], int], list[list[int]]]) -> None:
    """Play all episodes; `write` gets their contexts and returns the tokens of their turns."""
    contexts = [list(load.prompts[e // GROUP_SIZE]) for e in range(GROUPS * GROUP_SIZE)]
    for turn in range(TURNS):
        written = write(contexts, turn)
        for e, context in enumerate(contexts):
            assert len(written[e]) == TURN_TOKENS
            context += written[e] + load.observations[e][turn]


def cached(policy: LocalModel) -> Callable[[list[list[int]], int], list[list[int]]]:
    """Return a writer that uses the policy's cache."""
    policy.forget()

    def write(contexts: list[list[int]], turn: int) -> list[list[int]]:
        views = [
            View(e, "", 1000 * turn + e, Prompt(""), (), (), tuple(context))
            for e, context in enumerate(contexts)
        ]
        return [list(completion.tokens) for completion in policy.generate(views, ())]

    return write


def prefilled(policy: LocalModel) -> Callable[[list[list[int]], int], list[list[int]]]:
    """Return a writer that calls transformers' generate on the whole contexts."""
    model = policy.model

    def write(contexts: list[list[int]], turn: int) -> list[list[int]]:
        width = max(map(len, contexts))
        ids = torch.tensor([[0] * (width - len(c)) + c for c in contexts])
        mask = torch.tensor([[0] * (width - len(c)) + [1] * len(c) for c in contexts])
        output = model.generate(
            input_ids=ids,
            attention_mask=mask,
            do_sample=True,
            top_k=0,
            max_new_tokens=TURN_TOKENS,
            pad_token_id=0,
        )
        return output[:, width:].tolist()

    return write


def main() -> None:
    """Print CPU seconds of both sides and their ratio, best of three repeats."""
    policy = make_policy()
    sides = {"cache kept": cached, "prefill every turn": prefilled}
    seconds: dict[str, list[float]] = {name: [] for name in sides}
    for repeat in range(REPEATS):
        load = make_load(torch.Generator().manual_seed(repeat))
        for name, side in sides.items():
            start = time.process_time()
            play(load, side(policy))
            seconds[name].append(time.process_time() - start)
    sampled = GROUPS * GROUP_SIZE * TURNS * TURN_TOKENS
    for name, times in seconds.items():
        print(f"{name:20} {min(times):6.2f} CPU s  {sampled / min(times):6.0f} sampled tokens/s")
    ours, theirs = (min(seconds[name]) for name in sides)
    print(f"ratio                {theirs / ours:6.2f}")


if __name__ == "__main__":
    main()
