"""`hopling eval`: a model on a file of tasks, with intervals; a killed one plays only the rest."""

import re
import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from hopling.apps.flags import AsJson, with_flags
from hopling.apps.tables import print_json, screen
from hopling.apps.world import MOVIES, Playing, environment, open_graph, open_model
from hopling.episode import Task
from hopling.errors import SettingsError
from hopling.progress import counting, progress
from hopling.settings import setting

if TYPE_CHECKING:
    from hopling.data.tasks import Split
    from hopling.evaluation.report import Report


@dataclass(frozen=True)
class Evaluating(Playing):
    """What is evaluated, and on which tasks."""

    tasks: str = setting("", "ours", "File of tasks, or movies: its test questions.")
    limit: int | None = setting(None, "ours", "Take this many tasks from the front.")
    closed_book: bool = setting(False, "ours", "Also ask without the tool: what the weights know.")


@with_flags(Evaluating)
def evaluate_model(
    settings: Evaluating, *, as_json: AsJson = False, out: str | None = None
) -> None:
    """Evaluate a model on a file of tasks: exact match, F1, Hits@1, calls, by hops."""
    from hopling.evaluation.console import table

    tasks = read(settings.tasks, limit=settings.limit)
    folder = Path(out or f"runs/eval-{_word(settings.model)}-{_word(settings.tasks)}")
    report = _evaluated(settings, tasks, folder)
    page = report.write(folder)
    if as_json:
        print_json(report.numbers)
    else:
        screen().print(table(report))
        print(f"Report: {page}")
    failed = sum(stage.outcomes["world failure"] for stage in report.stages.values())
    if failed:
        print(
            f"{failed} episodes are unscored, since the graph or the model did not answer. "
            "The same command plays them again.",
            file=sys.stderr,
        )
        raise typer.Exit(3)


def read(
    name: str, *, limit: int | None = None, splits: "Sequence[Split]" = ("test", "unseen")
) -> list[Task]:
    """Return the tasks of a file, or the movie questions of some splits.

    Raises SettingsError when none was named, DataError for a bad file.
    """
    from hopling.data.tasks import movies, read_tasks

    if not name:
        raise SettingsError(f"No tasks were named. Write --tasks with a file, or {MOVIES}.")
    if limit is not None and limit < 1:
        raise SettingsError(f"limit is {limit}; expected at least 1 task.")
    if name == MOVIES and not Path(name).exists():
        return [task for split in splits for task in movies(split)][:limit]
    return read_tasks(Path(name))[:limit]


def _evaluated(settings: Evaluating, tasks: list[Task], folder: Path) -> "Report":
    from hopling.data.tasks import relabeled
    from hopling.evaluation.episode_log import EpisodeLog
    from hopling.evaluation.evaluate import closed_book, evaluate
    from hopling.evaluation.report import Report
    from hopling.evaluation.run import Run, manifest

    console = screen(to_stderr=True)
    graph = open_graph(settings.graph, languages=settings.languages, console=console)
    if settings.tasks != MOVIES:  # the shipped ones are named as their graph names them
        tasks = relabeled(tasks, graph)
    policy = open_model(settings)
    world = environment(settings, graph, policy)
    run = Run(folder, settings)
    about = manifest(
        settings,
        seed=settings.seed,
        graph_hash=getattr(graph, "graph_hash", ""),
        command=shlex.join(["hopling", *sys.argv[1:]]),
        date=datetime.now(UTC),
    )
    run.write_manifest(about)
    worlds = {"Closed book": closed_book(world)} if settings.closed_book else {}
    stages = {}
    for stage, place in {**worlds, "With the graph": world}.items():
        log = EpisodeLog(run.episodes, stage=stage)
        with progress(stage, console, unit="tasks") as advance:
            ended = counting(advance, len(tasks), done=len(log.read()))
            stages[stage] = evaluate(
                policy, place, tasks, seed=settings.seed, log=log, on_end=ended
            )
    return Report(f"{settings.model} on {settings.tasks}", stages, settings, about)


def _word(name: str) -> str:
    return re.sub(r"[^\w.-]+", "-", Path(name.rstrip("/")).name or "unnamed")
