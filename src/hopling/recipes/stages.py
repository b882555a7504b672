"""What recipes share: a run that is evaluated and resumed stage by stage."""

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.console import Console

from hopling.environment import Environment
from hopling.episode import Task
from hopling.errors import SettingsError
from hopling.evaluation.charts import read_curves
from hopling.evaluation.episode_log import EpisodeLog
from hopling.evaluation.evaluate import Evaluation, evaluate
from hopling.evaluation.report import Report
from hopling.evaluation.run import Run, manifest
from hopling.policies.local import LocalModel
from hopling.progress import counting, progress
from hopling.training.processes import Processes

Tell = Callable[[Mapping[str, Any]], None]
Learn = Callable[[LocalModel, Path, Tell], None]


class Stages:
    """A run folder in which each stage is done once; a killed run goes on where it stopped.

    With `processes`, training is divided among them, and the first does the rest. Without, more
    than one is refused.
    """

    def __init__(
        self,
        folder: Path,
        settings: object,
        console: Console,
        *,
        seed: int,
        processes: Processes | None = None,
    ) -> None:
        if processes is None and os.environ.get("WORLD_SIZE", "1") != "1":
            raise SettingsError(
                "this recipe is for one process; under torchrun call sft() and grpo() from a "
                "script, as docs/scale.md shows."
            )
        self.shared = (processes or Processes()).shared
        self.run = self.shared(lambda: Run(folder, settings))
        self.folder = self.run.folder
        self.settings, self.console, self.seed = settings, console, seed
        self.evaluations: dict[str, Evaluation] = {}

    def learn(self, stage: str, policy: LocalModel, how: Learn) -> None:
        """Train the policy's weights in place, or load them if the stage is done.

        `how` gets the policy, a folder in which it resumes, and a function that is told of steps.
        """
        place = self.run.checkpoint(stage)
        if self.shared(lambda: self.run.done(stage)) is not None:
            policy.model.load_state_dict(LocalModel.load(place).model.state_dict())
            return
        with progress(stage, self.console, unit="steps") as advance:
            work = self.folder / "training" / stage
            how(policy, work, lambda row: advance(row["step"], row["of"]))

        def keep() -> None:
            policy.save(place)
            self.run.mark(stage)

        self.shared(keep)

    def evaluate(
        self,
        stage: str,
        policy: LocalModel,
        environment: Environment,
        tasks: Sequence[Task],
        *,
        judge: Callable[[Evaluation], Evaluation] = lambda evaluation: evaluation,
    ) -> None:
        """Play the tasks greedily and keep the scores, as judged, for the report."""
        policy.sampling = replace(policy.sampling, temperature=0.0, top_p=1.0, top_k=0)
        self.evaluations[stage] = self.shared(
            lambda: judge(self._evaluated(stage, policy, environment, tasks))
        )
        policy.forget()

    def _evaluated(
        self, stage: str, policy: LocalModel, environment: Environment, tasks: Sequence[Task]
    ) -> Evaluation:
        log = EpisodeLog(self.run.episodes, stage=stage)
        with progress(f"Evaluating {stage}", self.console, unit="tasks") as advance:
            ended = counting(advance, len(tasks))
            return evaluate(policy, environment, tasks, seed=self.seed, log=log, on_end=ended)

    def report(self, title: str, graph: object) -> Report:
        """Return the report of what was evaluated; it is also in the folder.

        `graph` is what was searched; its `graph_hash` goes to the manifest, if it has one.
        """
        return self.shared(lambda: self._reported(title, graph))

    def _reported(self, title: str, graph: object) -> Report:
        row = manifest(
            self.settings,
            seed=self.seed,
            graph_hash=getattr(graph, "graph_hash", "an endpoint"),
            command=" ".join(["hopling", *sys.argv[1:]]),
            date=datetime.now(UTC),
        )
        self.run.write_manifest(row)
        self.run.gather_metrics(self.folder.glob("training/*/metrics.jsonl"))
        curves = tuple(read_curves(self.run.metrics)) if self.run.metrics.exists() else ()
        report = Report(title, self.evaluations, self.settings, row, curves)
        report.write(self.folder)
        return report
