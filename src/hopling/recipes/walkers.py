"""CNY's student, and a warm start of constructed walks for one that cannot follow a prompt. [ours]

A tiny student starts from random weights, so it is shown every view that a control will show it.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from random import Random
from typing import Any

from hopling.dialects import chat, format_for
from hopling.dialects.tags import Tags
from hopling.episode import Answer, Call, Encoder, Episode, Task
from hopling.policies.local import LocalModel
from hopling.policies.sampling import Sampling
from hopling.policies.scripted import Scripted
from hopling.recipes.prompts.walking import View
from hopling.recipes.students import SMOLLM2, TINY
from hopling.recipes.walks import Walked
from hopling.rollout import rollout
from hopling.training.recaps import Recap, by_policy, recap_environment
from hopling.training.tiny import tiny_llama, train_tokenizer

CALLS = {"walk": "node"}
RECAP_WORDS = 5  # a tiny student recaps with a text's first words
# traces of each view for every one of the walk
SHARES: dict[View, float] = {"previews": 0.5, "nothing": 0.1, "one text": 0.5, "all texts": 0.3}
INFORMED = 0.5  # walks that go to a neighbor of the target's class
COPIES = 2  # of the graph, each with other ids, so that ids are copied and not learned by heart


def traces(walked: Walked, *, seed: int, encoder: Encoder | None = None) -> list[Episode]:
    """Return constructed episodes of every view, and of recaps, that end rightly.

    A walk goes to a neighbor of the target's class with probability `INFORMED`, else anywhere.
    """
    made: list[Episode] = []
    for copy in range(COPIES):
        rng = Random(seed * COPIES + copy)
        graphs = tuple(graph.renamed(rng) for graph in walked.graphs)
        made += _made(replace(walked, graphs=graphs), rng, encoder)
    return made


def _made(walked: Walked, rng: Random, encoder: Encoder | None) -> list[Episode]:
    tasks = walked.tasks("train")
    made = _played(walked, tasks, "walk", rng, encoder)
    for view, share in SHARES.items():
        some = [task for task in tasks if rng.random() < share]
        made += _played(walked, some, view, rng, encoder)
    texts = sorted({walked.labeled(t).graph.text(n) for t in tasks for n in _around(walked, t)})
    some_texts = rng.sample(texts, min(len(texts), len(tasks) // 4))
    world = recap_environment(walked.dialect, system="")
    recaps = [Task(f"recap {number}", text) for number, text in enumerate(some_texts)]
    scripts = {t.id: [" ".join(t.question.split()[:RECAP_WORDS]) + "\n\n"] for t in recaps}
    return made + rollout(Scripted(scripts, encoder), world, recaps)


def _played(
    walked: Walked, tasks: Sequence[Task], view: View, rng: Random, encoder: Encoder | None
) -> list[Episode]:
    scripts = {task.id: [*_script(walked, task, view, rng)] for task in tasks}
    return rollout(Scripted(scripts, encoder), walked.world(view), tasks)


def _script(walked: Walked, task: Task, view: View, rng: Random) -> Iterator[str]:
    around = _around(walked, task)
    if view == "walk" and around:
        known = walked.labeled(task).graph.classes
        alike = [node for node in around if known.get(node) == task.answers[0]]
        goes = alike if alike and rng.random() < INFORMED else around
        yield walked.dialect.write([Call("walk", {"node": rng.choice(goes)})])
    yield walked.dialect.write([Answer(task.answers[0])])


def _around(walked: Walked, task: Task) -> list[str]:
    return walked.tool(walked.labeled(task)).first(task)


def walker(
    name: str, traces: Callable[[], Sequence[Episode]], *, seed: int
) -> tuple[LocalModel, Tags]:
    """Return the untrained student and its dialect; a tiny one takes its words from the traces."""
    if name != TINY:
        # updates of lr 1e-6 vanish in bf16 weights; the trainers run float32 under bf16 autocast
        policy = LocalModel.smollm2() if name == SMOLLM2 else LocalModel.load(name, dtype="float32")
        known: Any = policy.tokenizer  # whose stubs know more options than any caller gives
        return policy, replace(dialect_of(name), form=format_for(known))
    tokenizer = train_tokenizer(s.text for trace in traces() for s in trace.segments)
    ids = tokenizer.get_vocab()
    # an id follows either, so what is copied after a bracket is copied after the tag as well
    model = tiny_llama(len(ids), seed=seed, alike=[(ids["<walk>"], ids["["])])
    policy = LocalModel(model, tokenizer, sampling=Sampling(max_turn_tokens=64), max_live=256)
    return policy, dialect_of(name)


def dialect_of(name: str) -> Tags:
    """Return the dialect of the named student; a tiny one reads plain text."""
    return Tags(CALLS) if name == TINY else Tags(CALLS, form=chat.qwen)


def recap_of(name: str, dialect: Tags) -> Recap:
    """Return the recap that the student itself writes; a tiny one was taught it without words."""
    return by_policy(dialect, system="") if name == TINY else by_policy(dialect)
