"""`hopling check`: can the tasks of a file be won on a graph, and do empty answers earn nothing?"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass

import typer

from hopling.apps.evaluate import read
from hopling.apps.flags import AsJson, with_flags
from hopling.apps.reach import Way, ways
from hopling.apps.tables import print_json, print_rows, screen
from hopling.apps.world import MOVIES, open_graph
from hopling.data.tasks import Split
from hopling.dialects import ToolCalls, braced
from hopling.environment import Environment
from hopling.episode import Action, Answer, Call, Episode, Task
from hopling.errors import SettingsError
from hopling.graphs.base import Graph
from hopling.policies.scripted import Scripted
from hopling.progress import progress
from hopling.rewards import exact_match, num_calls, predicted, sog_r1
from hopling.rollout import rollout
from hopling.settings import setting
from hopling.tools import OneHopSearch

MAX_HOPS = 4  # of a task that does not say how many it takes
_CHECKS = {
    "start": "its start is in the graph",
    "present": "its answers are in the graph",
    "reachable": "its answers are reachable",
    "gold": "its answers earn full reward",
    "empty": "an empty answer earns nothing",
}


@dataclass(frozen=True)
class Failure:
    """A check that a task did not pass, and why."""

    id: str
    check: str
    why: str


@dataclass(frozen=True)
class Checking:
    """What is checked."""

    tasks: str = setting("", "ours", f"File of tasks, or {MOVIES}.")
    graph: str = setting(MOVIES, "ours", f"Folder of a graph, an endpoint's URL, or {MOVIES}.")
    hops: int | None = setting(None, "ours", "How far answers may be; else what each task says.")
    limit: int | None = setting(None, "ours", "Take this many tasks from the front.")
    show: int = setting(20, "ours", "List at most this many failures.")


@with_flags(Checking)
def check(settings: Checking, *, as_json: AsJson = False) -> None:
    """Check that a file's gold answers can be reached and earn full reward on a graph."""
    console = screen(to_stderr=True)
    splits: list[Split] = ["train", "valid", "test", "unseen"]
    tasks = read(settings.tasks, limit=settings.limit, splits=splits)
    graph = open_graph(settings.graph, console=console)
    failures: list[Failure] = []
    with progress("Checking", console, unit="tasks") as advance:
        for number, task in enumerate(tasks, 1):
            failures += failures_of(task, graph, hops=settings.hops)
            advance(number, len(tasks))
    if as_json:
        failed = len({failure.id for failure in failures})
        rows = [asdict(failure) for failure in failures]
        print_json({"tasks": len(tasks), "failed": failed, "failures": rows})
    else:
        _print(len(tasks), failures, most=settings.show)
    if failures:
        raise typer.Exit(1)


def failures_of(task: Task, graph: Graph, *, hops: int | None = None) -> list[Failure]:
    """Return what a task fails of all checks."""
    failures: list[Failure] = []

    def fail(check: str, why: str) -> None:
        failures.append(Failure(task.id, check, why))

    ids = graph.resolve(task.start)
    missing = [name for name, id in zip(task.start, ids, strict=True) if id is None]
    if missing or not task.start:
        fail("start", f"not found: {_listed(missing)}" if missing else "none is named")
    most = _hops(task) if hops is None else hops
    found = ways(graph, task, start=[id for id in ids if id], hops=most)
    if absent := [way.answer for way in found if not way.present]:
        fail("present", _listed(absent))
    if far := [way.answer for way in found if way.present and not way.reached]:
        fail("reachable", f"not within {most} hops: {_listed(far)}")
    _check_rewards(task, _world(graph), found, fail)
    return failures


def _check_rewards(
    task: Task, world: Environment, found: Sequence[Way], fail: Callable[[str, str], None]
) -> None:
    look: list[Action] = [
        Call("Search", {"entities": list(task.start[:1]) or ["none"], "direction": "outgoing"})
    ]
    # a name with a comma is one name only where an observation held it
    look += [way.call for way in found if way.call and "," in way.answer]
    try:
        won = _played(task, world, [*look, Answer(braced(task.answers))])
    except SettingsError as error:
        fail("gold", str(error))
        return
    reward = sog_r1(num_calls(won))
    if exact_match(won) != 1:
        fail("gold", f"the names are read as {_listed(predicted(won))}")
    elif reward(won) != 1:
        fail("gold", f"exact match is 1, but the reward is {reward(won):g}")
    lost = _played(task, world, [*look, Answer(braced([""]))])
    if exact_match(lost) or reward(lost):
        fail("empty", "an answer without names is rewarded")


def _world(graph: Graph) -> Environment:
    search = OneHopSearch(graph)
    return Environment(lambda task: task.question, (search,), ToolCalls(), max_turns=10_000)


def _played(task: Task, world: Environment, actions: Sequence[Action]) -> Episode:
    """Return the episode of these actions, one a turn."""
    script = {task.id: [world.dialect.write([action]) for action in actions]}
    (episode,) = rollout(Scripted(script), world, [task])
    return episode


def _hops(task: Task) -> int:
    said = task.hints.get("hops")
    return said if isinstance(said, int) and said > 0 else MAX_HOPS


def _listed(names: Sequence[str], most: int = 3) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(map(repr, names[:most])) + more if names else "nothing"


def _print(num_tasks: int, failures: Sequence[Failure], *, most: int) -> None:
    counts = Counter(failure.check for failure in failures)
    rows = [(text, num_tasks - counts[name], counts[name]) for name, text in _CHECKS.items()]
    print_rows(("check", "tasks that pass", "that fail"), rows)
    shown = [(one.id, _CHECKS[one.check], one.why) for one in failures[:most]]
    if shown:
        print_rows(("task", "fails that", "since"), shown)
    if len(failures) > most:
        print(f"{len(failures) - most:,} more; --json lists them all, --show N more of them.")
