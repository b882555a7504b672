"""The student of a recipe: tiny (made here, from random weights), smollm2, or any model by name."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from hopling.dialects import ToolCalls, chat, check_history, format_for
from hopling.episode import Episode, Prompt, Task
from hopling.graphs import Graph
from hopling.policies.local import LocalModel
from hopling.policies.sampling import Sampling
from hopling.recipes import prompts
from hopling.training.tiny import tiny_llama, train_tokenizer

TINY, SMOLLM2 = "tiny", "smollm2"


@dataclass
class Student:
    """A policy with the dialect that its model reads and writes."""

    policy: LocalModel
    dialect: ToolCalls

    def prompt(self, graph: Graph) -> Callable[[Task], Prompt]:
        """Return what the student is told of a task."""
        return prompts.prompt_for(self.dialect.format, graph)


def dialect_of(name: str) -> ToolCalls:
    """Return the dialect in which traces for the named student are made."""
    return ToolCalls(chat.compact if name == TINY else chat.qwen)


def new_student(name: str, traces: Sequence[Episode], *, seed: int) -> Student:
    """Return the untrained student; a tiny one takes its vocabulary from the traces.

    Raises SettingsError when the model cannot be loaded or its template rewrites history.
    """
    if name == TINY:
        return Student(_tiny(traces, seed), ToolCalls(chat.compact))
    # updates of lr 2e-7 vanish in bf16 weights; the trainers run float32 ones under bf16 autocast
    policy = LocalModel.smollm2() if name == SMOLLM2 else LocalModel.load(name, dtype="float32")
    tokenizer: Any = policy.tokenizer  # whose stubs know more options than any caller gives
    dialect = ToolCalls(format_for(tokenizer))
    check_history(tokenizer, dialect.format)
    return Student(policy, dialect)


def _tiny(traces: Sequence[Episode], seed: int) -> LocalModel:
    tokenizer = train_tokenizer(segment.text for trace in traces for segment in trace.segments)
    ids = tokenizer.get_vocab()
    brace, cell = ids["\u0120{"], ids["\u0120|\u0120"]
    # a name follows either, so what is copied after a cell's bar is copied after a brace as well
    model = tiny_llama(len(ids), seed=seed, alike=[(brace, cell)])
    return LocalModel(model, tokenizer, sampling=Sampling(max_turn_tokens=64), max_live=256)
