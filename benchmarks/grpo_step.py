"""A GRPO step on our rollouts, side by side with TRL's own trainer and its tool loop.

    OMP_NUM_THREADS=1 HF_HUB_OFFLINE=1 python benchmarks/grpo_step.py

One random Qwen2 of about a million parameters plays 4 tasks 8 times each, in three calls and an
answer, in Qwen's tool-call format. The tokens are scripted on both sides (the model computes them,
then the script's are taken), so both read, sample and train on the same tokens, with the same
optimizer and micro-batches. Times are CPU seconds of this process. The first step is not counted.
"""

import random
import tempfile
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import cycle
from pathlib import Path
from statistics import fmean
from typing import Any
from unittest import mock

import torch
from datasets import Dataset
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import (
    LogitsProcessor,
    LogitsProcessorList,
    PreTrainedTokenizerFast,
    PrinterCallback,
    Qwen2Config,
    Qwen2ForCausalLM,
    TrainerCallback,
)
from transformers.utils import get_json_schema
from trl import GRPOConfig, GRPOTrainer
from trl import chat_template_utils as templates

from hopling.dialects.tokenizers import format_for
from hopling.dialects.tool_calls import ToolCalls
from hopling.environment import Environment
from hopling.episode import Call, Completion, Episode, Observation, Prompt, Task
from hopling.policies import local_turn
from hopling.policies.local import LocalModel
from hopling.records import read
from hopling.training.grpo import grpo
from hopling.training.practice import Goal, Run
from hopling.training.settings import GRPO

STEPS, TASKS, GROUP, MICRO = 5, 4, 8, 8
CALLS = 3
SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
TABLE = "\n".join(f"| film.actor.film | m.0{n}x | Some Film {n} |" for n in range(8))
QUESTION = "Which films with more than one actor did the director of this film make? " * 4
SYSTEM = "Search the graph. " * 8


def ask(key: str) -> str:
    """Search for a key.

    Args:
        key: What to search for.

    Returns:
        A table.
    """
    return TABLE


@dataclass(frozen=True)
class Ask:
    """The same tool in our form; its schema is what transformers makes of `ask`."""

    name: str = "ask"
    schema: dict[str, Any] = field(default_factory=dict)

    def __call__(self, episode: Episode, key: str) -> Observation:
        return Observation(ask(key))


def make_tokenizer() -> PreTrainedTokenizerFast:
    """Return a byte-level tokenizer with Qwen's markers and chat template."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=600, special_tokens=[*SPECIAL], initial_alphabet=alphabet, show_progress=False
    )
    template = templates.qwen2_5_chat_template
    tokenizer.train_from_iterator([TABLE, QUESTION, SYSTEM, template] * 3, trainer)
    tokenizer.add_tokens([AddedToken(t, special=False) for t in ("<tool_call>", "</tool_call>")])
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token=SPECIAL[0],
        eos_token=SPECIAL[2],
        chat_template=template,
        extra_special_tokens=[SPECIAL[1]],
    )


def make_model(tokenizer: PreTrainedTokenizerFast) -> Qwen2ForCausalLM:
    """Return random weights, the same at each call."""
    torch.manual_seed(0)
    config = Qwen2Config(
        vocab_size=2600,
        hidden_size=128,
        intermediate_size=384,
        num_hidden_layers=4,
        num_attention_heads=4,
        num_key_value_heads=4,
        max_position_embeddings=4096,
        tie_word_embeddings=True,
        eos_token_id=tokenizer.eos_token_id,
    )
    return Qwen2ForCausalLM(config)


def make_script(dialect: ToolCalls, tokenizer: PreTrainedTokenizerFast) -> list[int]:
    """Return the tokens of an episode's turns, one after the other, end markers included."""
    call = dialect.write([Call("ask", {"key": "director"})])
    turns = [call] * CALLS + ["Final answer: {Some Film 3}"]
    return [token for turn in turns for token in tokenizer.encode(turn + SPECIAL[2])]


class Timed(LocalModel):
    """Our policy, with the CPU seconds that its model took."""

    seconds = 0.0

    def generate(self, views: Any, stops: Any) -> list[Completion]:
        started = time.process_time()
        completions = super().generate(views, stops)
        self.seconds += time.process_time() - started
        return completions


@dataclass(frozen=True)
class Result:
    """CPU seconds of a counted step, tokens trained in the last, and our own rollouts' share."""

    step: float
    sampled: float
    bookkeeping: float = 0.0


def ours(tokenizer: PreTrainedTokenizerFast, folder: Path) -> Result:
    """Return what our trainer took."""
    dialect = ToolCalls(format_for(tokenizer))
    schema = get_json_schema(ask)
    student = Timed(make_model(tokenizer), tokenizer)
    script = cycle(make_script(dialect, tokenizer))
    draw = local_turn.draw

    def scripted(logits_BV: torch.Tensor, *rest: Any) -> tuple[torch.Tensor, torch.Tensor]:
        tokens_B, logprobs_B = draw(logits_BV, *rest)
        return torch.full_like(tokens_B, next(script)), logprobs_B

    steps = Steps()
    with mock.patch.object(local_turn, "draw", scripted):
        grpo(
            student,
            Environment(
                lambda task: Prompt(task.question, SYSTEM), (Ask(schema=schema),), dialect, 6
            ),
            tasks=[Task(f"t{n}", f"{QUESTION}{n}") for n in range(TASKS)],
            goal=Goal(lambda episode: float(episode.seed % 2)),
            settings=GRPO(
                steps=STEPS,
                group_size=GROUP,
                batch_size=TASKS,
                minibatch_size=TASKS,
                micro_batch_size=MICRO,
                top_p=1.0,
                top_k=0,
                kl=0.0,
                learning_rate=1e-5,
                save_every=1000,
            ),
            run=Run(folder, on_step=steps),
        )
    rows = read(folder / "metrics.jsonl")
    assert rows[-1]["endings"]["answered"] == TASKS * GROUP, rows[-1]["endings"]
    rollout_s = sum(row["rollout_cpu_seconds"] for row in rows)
    share = 1 - student.seconds / rollout_s
    return Result(steps.mean(), rows[-1]["sampled_tokens"], share)


class Steps(TrainerCallback):
    """Notes the CPU seconds of each step, for either trainer."""

    def __init__(self) -> None:
        self.times = [time.process_time()]

    def __call__(self, row: Any) -> None:
        self.times.append(time.process_time())

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self(None)

    def mean(self) -> float:
        """Return the mean of all steps but the first."""
        pairs = list(zip(self.times, self.times[1:], strict=False))[1:]
        return fmean(end - start for start, end in pairs)


class Forced(LogitsProcessor):
    """Makes `generate` take the script's next token."""

    def __init__(self, script: Iterator[int]) -> None:
        self.script = script

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        forced = torch.full_like(scores, -torch.inf)
        forced[:, next(self.script)] = 0.0
        return forced


def theirs(tokenizer: PreTrainedTokenizerFast, folder: Path) -> Result:
    """Return what TRL's trainer took with its own tool loop."""
    model = make_model(tokenizer)
    script = cycle(make_script(ToolCalls(format_for(tokenizer)), tokenizer))
    generate = model.generate
    processors = LogitsProcessorList([Forced(script)])
    model.generate = lambda **kw: generate(**kw, logits_processor=processors)  # type: ignore
    rng = random.Random(0)
    messages = [
        [{"role": "system", "content": SYSTEM}, {"role": "user", "content": f"{QUESTION}{n}"}]
        for n in range(TASKS)
    ]
    steps = Steps()
    trainer = GRPOTrainer(
        model=model,
        reward_funcs=lambda completions, **_: [float(rng.random() < 0.5) for _ in completions],
        args=GRPOConfig(
            output_dir=str(folder),
            use_cpu=True,
            bf16=False,
            activation_checkpointing=False,
            per_device_train_batch_size=MICRO,
            gradient_accumulation_steps=TASKS * GROUP // MICRO,
            num_generations=GROUP,
            max_completion_length=2048,
            max_steps=STEPS,
            learning_rate=1e-5,
            beta=0.0,
            loss_type="grpo",
            save_strategy="no",
            report_to="none",
            disable_tqdm=True,
            logging_steps=1,
        ),
        train_dataset=Dataset.from_dict({"prompt": messages}),
        processing_class=tokenizer,
        tools=[ask],
        callbacks=[steps],
    )
    trainer.remove_callback(PrinterCallback)
    trainer.train()
    calls = trainer.state.log_history[-2]["tools/call_frequency"]
    assert calls == CALLS, f"TRL made {calls} calls an episode"
    return Result(steps.mean(), trainer.state.log_history[-2]["completions/mean_length"])


def main() -> None:
    """Run both sides in turn and print what they took."""
    warnings.simplefilter("ignore")
    tokenizer = make_tokenizer()
    with tempfile.TemporaryDirectory() as folder:
        mine = ours(tokenizer, Path(folder) / "ours")
        other = theirs(tokenizer, Path(folder) / "theirs")
    print(f"sampled tokens an episode: {mine.sampled:.0f} (ours), {other.sampled:.0f} (TRL)")
    print(f"TRL, tools=    {other.step:6.2f} CPU s a step")
    print(f"hopling        {mine.step:6.2f} CPU s a step")
    print(f"ratio          {mine.step / other.step:6.2f} (goal: at most 0.60)")
    print(f"bookkeeping    {100 * mine.bookkeeping:6.1f} % of our rollouts (goal: at most 5)")


if __name__ == "__main__":
    main()
