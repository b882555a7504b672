"""What recipes share: a question set with its graph, and a run that resumes stage by stage."""

import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.console import Console

from hopling import records
from hopling.data.benchmarks import Benchmark, benchmark
from hopling.data.tasks import movie_files, relabeled
from hopling.environment import Environment
from hopling.episode import Episode, Task
from hopling.errors import SettingsError
from hopling.evaluation.charts import read_curves
from hopling.evaluation.episode_log import EpisodeLog
from hopling.evaluation.evaluate import Evaluation, evaluate
from hopling.evaluation.report import Report
from hopling.evaluation.run import Run, manifest
from hopling.graphs import HopIndex, SparqlEndpoint, build_index
from hopling.policies.local import LocalModel
from hopling.policies.sampling import Sampling
from hopling.progress import progress

Tell = Callable[[Mapping[str, Any]], None]
Learn = Callable[[LocalModel, Path, Tell], None]


def questions_and_graph(
    name: str, data: str, graph: str, stages: "Stages"
) -> tuple[Benchmark, HopIndex | SparqlEndpoint]:
    """Return a question set, with its answers named as the graph names them, and the graph.

    `graph` is a hop index or an endpoint's URL; the shipped movies are built into the run's folder.
    Raises SettingsError when either is missing.
    """
    if graph.startswith(("http://", "https://")):
        opened: HopIndex | SparqlEndpoint = SparqlEndpoint(graph)
    elif name == "movies" and not graph:
        opened = HopIndex.open(_movies(stages.folder, stages.console))
    elif not graph:
        raise SettingsError(
            f"benchmark {name!r} needs its graph: --graph with the folder that `hopling graph "
            "build` wrote, or with an endpoint's URL."
        )
    else:
        opened = HopIndex.open(Path(graph))
    asked = benchmark(name, Path(data) if data else None)
    if name == "movies":
        return asked, opened
    train, valid, test, unseen = (
        tuple(relabeled(tasks, opened))
        for tasks in (asked.train, asked.valid, asked.test, asked.unseen)
    )
    return Benchmark(train, valid, test, unseen, asked.dropped), opened


class Stages:
    """A run folder in which each stage is done once; a killed run goes on where it stopped."""

    def __init__(self, folder: Path, settings: object, console: Console, *, seed: int) -> None:
        self.run = Run(folder, settings)
        self.settings, self.console, self.seed = settings, console, seed
        self.evaluations: dict[str, Evaluation] = {}

    @property
    def folder(self) -> Path:
        """Where the run is kept."""
        return self.run.folder

    def learn(self, stage: str, policy: LocalModel, how: Learn) -> None:
        """Train the policy's weights in place, or load them if the stage is done.

        `how` gets the policy, a folder in which it resumes, and a function that is told of steps.
        """
        place = self.run.checkpoint(stage)
        if self.run.done(stage) is not None:
            policy.model.load_state_dict(LocalModel.load(place).model.state_dict())
            return
        with progress(stage, self.console, unit="steps") as advance:
            place_ = self.folder / "training" / stage
            how(policy, place_, lambda row: advance(row["step"], row["of"]))
        policy.save(place)
        self.run.mark(stage)

    def evaluate(
        self, stage: str, policy: LocalModel, environment: Environment, tasks: Sequence[Task]
    ) -> None:
        """Play the tasks greedily and keep the scores for the report."""
        policy.sampling = Sampling(0.0, max_turn_tokens=policy.sampling.max_turn_tokens)
        ended = 0
        with progress(f"Evaluating {stage}", self.console, unit="tasks") as advance:

            def count(episode: Episode) -> None:
                nonlocal ended
                ended += 1
                advance(ended, len(tasks))

            log = EpisodeLog(self.run.episodes, stage=stage)
            self.evaluations[stage] = evaluate(
                policy, environment, tasks, seed=self.seed, log=log, on_end=count
            )
        policy.forget()

    def report(self, title: str, graph: HopIndex | SparqlEndpoint) -> Report:
        """Return the report of what was evaluated; it is also in the folder."""
        row = manifest(
            self.settings,
            seed=self.seed,
            graph_hash=getattr(graph, "graph_hash", "an endpoint"),
            command=" ".join(["hopling", *sys.argv[1:]]),
            date=datetime.now(UTC),
        )
        self.run.write_manifest(row)
        logs = sorted(self.folder.glob("training/*/metrics.jsonl"))
        rows = [{"stage": log.parent.name, **row} for log in logs for row in records.read(log)]
        self.run.metrics.unlink(missing_ok=True)
        for each in rows:
            records.append(self.run.metrics, each)
        curves = tuple(read_curves(self.run.metrics)) if rows else ()
        report = Report(title, self.evaluations, self.settings, row, curves)
        report.write(self.folder)
        return report


def _movies(folder: Path, console: Console) -> Path:
    index = folder / "graph"
    if not (index / "manifest.json").is_file():
        triples, names = movie_files()
        with progress("Building the movie graph", console, unit="bytes") as advance:
            report = build_index(triples, index, labels=names, on_progress=advance)
        console.print(f"Movie graph: {report.triples:,} triples, {report.entities:,} entities.")
    return index
