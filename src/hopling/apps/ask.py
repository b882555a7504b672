"""`hopling ask`: one question, its turns shown as they come."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated

import typer

from hopling.apps.flags import with_flags
from hopling.apps.tables import screen
from hopling.apps.world import Playing, environment, open_graph, open_model
from hopling.environment import Environment
from hopling.episode import Completion, Encoder, Ending, Episode, Segment, Task, View
from hopling.errors import SettingsError, WorldError
from hopling.evaluation.console import safe, show_segment
from hopling.graphs.base import Graph
from hopling.graphs.names import folded
from hopling.rollout import play
from hopling.settings import setting

if TYPE_CHECKING:
    from hopling.rollout import Policy

_MAX_WORDS = 12  # of a name that is looked for in a question


@dataclass(frozen=True)
class Asking(Playing):
    """How one question is asked."""

    start: tuple[str, ...] = setting((), "ours", "Ids to start from; else a name in the question.")


@with_flags(Asking)
def ask(
    question: Annotated[str, typer.Argument(help="What you want to know.")], settings: Asking
) -> None:
    """Ask one question and watch the model search."""
    console = screen()
    graph = open_graph(settings.graph, languages=settings.languages, console=console)
    start = resolved(graph, settings.start)
    if not start:
        start, name = named(graph, question)
        others = f" (also {', '.join(start[1:])}; choose with --start)" if start[1:] else ""
        console.print(safe(f"Starting from {name}: {start[0]}{others}", style="dim"))
    policy = open_model(settings)
    world = environment(settings, graph, policy)
    episode = world.begin(Task("ask", question, start[:1]), policy.encoder, seed=settings.seed)

    def show(segment: Segment) -> None:
        if segment.source == "prompt":  # the rules and the tool's schema would bury the question
            segment = replace(segment, text=episode.prompt.user)
        show_segment(segment, console)

    play_shown(policy, world, episode=episode, show=show)
    console.rule(style="dim")
    if episode.ending is Ending.UNSCORED:
        raise WorldError(episode.reason)
    if episode.answer is None:
        ending = episode.ending.value if episode.ending else "not over"
        console.print(safe(f"No answer: {ending}."))
        raise typer.Exit(1)
    console.print(safe(episode.answer.text, style="bold"))


def play_shown(
    policy: "Policy", world: Environment, *, episode: Episode, show: Callable[[Segment], None]
) -> None:
    """Play an episode and show each of its segments as soon as it is there."""
    num_shown = 0

    def catch_up() -> None:
        nonlocal num_shown
        for segment in episode.segments[num_shown:]:
            show(segment)
        num_shown = len(episode.segments)

    play(_Watched(policy, catch_up), world, [episode])
    catch_up()


def resolved(graph: Graph, names: Sequence[str]) -> tuple[str, ...]:
    """Return the ids that the names stand for.

    Raises SettingsError for a name that is no id, with ids that have it as a label.
    """
    ids = graph.resolve(names)
    for name, id in zip(names, ids, strict=True):
        if id is None:
            similar = graph.find(name, 3)
            hint = f" Like it by label: {', '.join(similar)}." if similar else ""
            raise SettingsError(f"The graph has no entity {name!r}.{hint}")
    return tuple(id for id in ids if id)


def named(graph: Graph, question: str) -> tuple[tuple[str, ...], str]:
    """Return the ids whose label is the longest that stands in the question, and that label.

    Raises SettingsError when no label stands there.
    """
    for words in _phrases(question):
        ids = graph.find(words, 10)
        labels = zip(ids, graph.labels(ids), strict=True)
        same = tuple(id for id, label in labels if folded(label or "") == folded(words))
        if same:
            return same, words
    raise SettingsError(
        "No entity of the graph is named in the question. Name one with --start ID; "
        "`hopling graph search FOLDER NAME` finds ids."
    )


def _phrases(question: str) -> Iterator[str]:
    """Yield the runs of words in a question, the longest first, as written."""
    words = [(m.start(), m.end()) for m in re.finditer(r"[^\s?!,;:\"()]+", question)]
    spans = {
        (words[i][0], words[j][1])
        for i in range(len(words))
        for j in range(i, min(len(words), i + _MAX_WORDS))
    }
    for start, end in sorted(spans, key=lambda span: (span[0] - span[1], span)):
        yield question[start:end].removesuffix("'s").rstrip(".")


class _Watched:
    """A policy that says when it is about to write a turn."""

    concurrent = False
    max_live = 1

    def __init__(self, policy: "Policy", before_turn: Callable[[], None]) -> None:
        self._policy = policy
        self._before_turn = before_turn

    @property
    def encoder(self) -> Encoder | None:
        return self._policy.encoder

    def generate(self, views: Sequence[View], stops: Sequence[str]) -> list[Completion]:
        self._before_turn()
        return self._policy.generate(views, stops)
