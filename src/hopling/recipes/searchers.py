"""GTA-RAG's student: tiny (made here, from random weights), smollm2, or any model by name."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from hopling.dialects import chat, format_for
from hopling.dialects.tags import Tags
from hopling.episode import Episode, Prompt, Task
from hopling.policies.local import LocalModel
from hopling.policies.sampling import Sampling
from hopling.recipes.prompts.searching import compact, searching
from hopling.recipes.students import SMOLLM2, TINY
from hopling.training.tiny import tiny_llama, train_tokenizer

_TAGS = Tags({"search": "query"}, observation="info")


def dialect_of(name: str) -> Tags:
    """Return the dialect in which the named student's replays are made; a tiny one's is plain."""
    return _TAGS if name == TINY else replace(_TAGS, form=chat.qwen)


def prompt_of(name: str) -> Callable[[Task], Prompt]:
    """Return what the named student is told of a task."""
    return compact if name == TINY else searching


def searcher(name: str, replays: Sequence[Episode], *, seed: int) -> tuple[LocalModel, Tags]:
    """Return the untrained student and its dialect; a tiny one takes its words from the replays."""
    if name != TINY:
        # updates of lr 1e-6 vanish in bf16 weights; the trainers run float32 under bf16 autocast
        policy = LocalModel.smollm2() if name == SMOLLM2 else LocalModel.load(name, dtype="float32")
        known: Any = policy.tokenizer  # whose stubs know more options than any caller gives
        return policy, replace(_TAGS, form=format_for(known))
    tokenizer = train_tokenizer(s.text for episode in replays for s in episode.segments)
    ids = tokenizer.get_vocab()
    # the first query and thought begin as the question does
    alike = [(ids[tag], ids["<question>"]) for tag in ("<search>", "<think>")]
    model = tiny_llama(len(ids), seed=seed, alike=alike)
    policy = LocalModel(model, tokenizer, sampling=Sampling(max_turn_tokens=64), max_live=256)
    return policy, _TAGS
