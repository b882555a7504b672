"""Training tasks from a corpus alone: paths become drafts, and drafts that replay become tasks.

A draft is kept only if the retriever that the policy will use returns each turn's document at that
turn. The replay is a scripted policy in the one loop, so nothing about it differs from what a
student meets. [GTA-RAG 3.4, Eq. 14]
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice, zip_longest
from typing import Protocol

from hopling.data.drafts import Draft, Drafts, Rejected, broken_rule
from hopling.data.paths import Path, sample_paths
from hopling.data.teach import KEPT, Traces
from hopling.environment import Environment
from hopling.episode import Action, Answer, Call, Encoder, Ending, Episode, Task
from hopling.errors import SettingsError
from hopling.graphs.documents import DocumentGraph
from hopling.policies.scripted import Scripted
from hopling.rollout import rollout

NO_PATH = "dead end, or documents joined before"
_ROUND = 256  # paths drawn at a time


class Writer(Protocol):
    """Writes a draft, or why there is none, for each path of its graph."""

    @property
    def graph(self) -> DocumentGraph: ...

    def __call__(self, paths: Sequence[Path], /) -> Drafts: ...


@dataclass(frozen=True)
class Synthesis:
    """The episodes that replayed, and the tasks whether they replayed or not, in paths' order.

    `traces.classes` says for each number of hops what became of the paths.
    """

    traces: Traces
    drafted: tuple[Task, ...]

    @property
    def tasks(self) -> tuple[Task, ...]:
        """The validated tasks. [GTA-RAG Eq. 14]"""
        return tuple(episode.task for episode in self.traces.kept)


def synthesize(
    write: Writer,
    environment: Environment,
    *,
    hops: Sequence[int],
    wanted: int,
    max_paths: int,
    seed: int,
) -> Synthesis:
    """Draw paths until `wanted` tasks replay in the environment, at most `max_paths` of them.

    The result depends on the seed, not on how often it was interrupted; a writer that asks a model
    remembers what it was told. Tasks with a question that came before are left out.
    """
    if wanted < 1:
        raise SettingsError(f"wanted is {wanted}; ask for at least one task.")
    kept: list[Episode] = []
    drafted: list[Task] = []
    questions: set[str] = set()
    classes: dict[str, Counter[str]] = {}
    walks = enumerate(sample_paths(write.graph, hops, num=max_paths, seed=seed))
    while len(kept) < wanted and (some := list(islice(walks, _ROUND))):
        for number, path in some:
            if path is None:
                _count(classes, hops[number % len(hops)], NO_PATH)
        paths = [path for _, path in some if path]
        drafts = _ruled(write(paths), paths, write.graph, classes, questions)
        drafted += [draft.task for draft in drafts]
        episodes = replayed([draft.task for draft in drafts], environment)
        written = {episode.task.id for episode in episodes}
        for draft in drafts:
            if draft.path_id not in written:
                _count(classes, len(draft.documents), "the dialect cannot write it")
        for episode in episodes:
            reason = missed(episode)
            is_over = not reason and len(kept) == wanted
            if not is_over:
                _count(classes, len(episode.task.evidence), reason or KEPT)
            if not reason and not is_over:
                kept.append(episode)
    return Synthesis(Traces(tuple(kept), classes), tuple(drafted))


def replayed(
    tasks: Sequence[Task], environment: Environment, encoder: Encoder | None = None
) -> list[Episode]:
    """Return each task played by its own queries and answer, as a student would. [GTA-RAG 3.4]

    What it thinks by the way is written too. The first tool is the one that is asked. A task that
    the dialect cannot write, such as one whose answer holds a tag, is left out.
    """
    scripts = {task.id: _script(task, environment) for task in tasks}
    turns = {id: script for id, script in scripts.items() if script is not None}
    return rollout(Scripted(turns, encoder), environment, [t for t in tasks if t.id in turns])


def _script(task: Task, environment: Environment) -> list[list[str]] | None:
    """Return the turns of a task's hints, None where the dialect cannot write one."""
    tool, dialect = environment.tools[0].name, environment.dialect
    queries, thoughts = task.hints["queries"], task.hints["thoughts"]
    actions: list[Action] = [Call(tool, {"query": query}) for query in queries]
    actions.append(Answer(task.answers[0]))
    script = []
    for action, thought in zip_longest(actions, thoughts[: len(actions)], fillvalue=""):
        assert not isinstance(action, str)
        try:
            script.append(dialect.pieces(dialect.write([action], thought)))
        except SettingsError:
            return None
    return script


def missed(episode: Episode) -> str | None:
    """Return which turn did not return its document, None when the replay went as designed."""
    for turn, (wanted, seen) in enumerate(
        zip(episode.task.evidence, episode.observations, strict=False), start=1
    ):
        if wanted not in seen.nodes:
            return f"turn {turn} does not return its document"
    if episode.ending is Ending.UNSCORED:
        return f"unscored: {episode.reason}"
    if episode.ending is not Ending.ANSWERED:
        return "more turns or tokens than an episode may have"
    return None


def _ruled(
    drafts: Drafts,
    paths: Sequence[Path],
    graph: DocumentGraph,
    classes: dict[str, Counter[str]],
    questions: set[str],
) -> list[Draft]:
    """Return the drafts that keep the rules, and count the others."""
    good: list[Draft] = []
    for draft, path in zip(drafts, paths, strict=True):
        if isinstance(draft, Rejected):
            _count(classes, len(path.documents), draft.reason)
            continue
        reason = broken_rule(draft, graph.document)
        if reason is None and draft.question in questions:
            reason = "the question came before"
        if reason:
            _count(classes, len(draft.documents), reason)
            continue
        questions.add(draft.question)
        good.append(draft)
    return good


def _count(classes: dict[str, Counter[str]], hops: int, outcome: str) -> None:
    classes.setdefault(f"{hops} hop", Counter())[outcome] += 1


def hasty(tasks: Sequence[Task], share: float) -> list[Task]:
    """Return the tasks, of which a share search once and then answer, spread evenly.

    Whoever imitates them has two habits to choose from: to answer from what was found, and to
    search on. [ours]
    """
    if not 0 <= share <= 1:
        raise SettingsError(f"hasty is {share}; a share is between 0 and 1.")
    return [
        _of_one_search(task) if int((n + 1) * share) > int(n * share) else task
        for n, task in enumerate(tasks)
    ]


def _of_one_search(task: Task) -> Task:
    hints = task.hints
    short = {"queries": hints["queries"][:1], "thoughts": hints["thoughts"][:2]}
    return replace(task, hints={**hints, **short})
