"""A report: the numbers of a run's stages, as JSON and as one page that loads nothing."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

from hopling import records
from hopling.episode import Episode
from hopling.evaluation.charts import Curve
from hopling.evaluation.compare import compare
from hopling.evaluation.evaluate import METRICS, Evaluation, Outcome, Row
from hopling.evaluation.page import page
from hopling.evaluation.transcript import Example
from hopling.settings import Json, describe

_EXAMPLES = {Outcome.CORRECT: 3, Outcome.WRONG: 3, Outcome.NO_ANSWER: 1, Outcome.CUT: 1}


@dataclass(frozen=True)
class Report:
    """The evaluations of a run by stage, in the order in which the stages ran.

    `curves` are those of the run's metrics file. Questions of a type that training left out
    (`unseen`) are reported apart.
    """

    title: str
    stages: Mapping[str, Evaluation]
    settings: object
    manifest: Mapping[str, Json] = field(default_factory=dict)
    curves: tuple[Curve, ...] = ()

    @cached_property
    def numbers(self) -> dict[str, Any]:
        """All numbers of the report as plain JSON without secrets; the page shows no others."""
        numbers = {
            "title": self.title,
            "metrics": {n: {"label": label, "is": text} for n, (label, text) in METRICS.items()},
            "stages": {name: _stage(evaluation) for name, evaluation in self.stages.items()},
            "comparisons": _comparisons(self.stages),
            "curves": [asdict(curve) for curve in self.curves],
            "settings": [
                {"name": s.name, "value": _shown(s.value), "source": s.source, "help": s.help}
                | {"default": _shown(s.default), "changed": s.value != s.default}
                for s in describe(self.settings)
            ],
            "manifest": dict(self.manifest),
        }
        clean: dict[str, Any] = json.loads(records.redact(json.dumps(numbers)))
        return clean

    @cached_property
    def examples(self) -> list[list[Example]]:
        """Some questions of the last stage by outcome, each with its episodes in all stages."""
        if not self.stages:
            return []
        *others, (last_name, last) = self.stages.items()
        shown: list[list[Example]] = []
        left = dict(_EXAMPLES)
        for episode, row in zip(last.episodes, last.rows, strict=True):
            if left.get(row.outcome, 0) > 0:
                left[row.outcome] -= 1
                same = [_find(name, evaluation, row) for name, evaluation in others]
                found = [example for example in same if example]
                shown.append([_example(last_name, episode, row), *found])
        order = {outcome.value: place for place, outcome in enumerate(_EXAMPLES)}
        return sorted(shown, key=lambda group: order[group[0].outcome])

    def write(self, folder: Path) -> Path:
        """Write `report.json` and `report.html`, without secrets, and return the page's path."""
        records.write_json(folder / "report.json", self.numbers)
        path = folder / "report.html"
        records.write_text(path, records.redact(page(self.numbers, self.examples)))
        return path


def _stage(evaluation: Evaluation) -> dict[str, Any]:
    seen = evaluation.where(lambda row: not row.unseen)
    unseen = evaluation.where(lambda row: row.unseen)
    whole = asdict(seen.summary())
    return {**whole, "unseen": asdict(unseen.summary()) if unseen.rows else None}


def _comparisons(stages: Mapping[str, Evaluation]) -> list[dict[str, Any]]:
    names = list(stages)
    pairs = list(pairwise(names))
    if len(names) > 2:
        pairs.append((names[0], names[-1]))
    found: list[dict[str, Any]] = []
    for before, after in pairs:
        for unseen in (False, True):
            first, second = (
                stages[name].where(lambda row, unseen=unseen: row.unseen is unseen)  # type: ignore[misc]
                for name in (before, after)
            )
            if _scored_keys(first) & _scored_keys(second):
                row = asdict(compare(first, second))
                found.append({"before": before, "after": after, "unseen": unseen, **row})
    return found


def _scored_keys(evaluation: Evaluation) -> set[tuple[str, int]]:
    return {(row.task_id, row.copy) for row in evaluation.rows if row.scores}


def _find(stage: str, evaluation: Evaluation, like: Row) -> Example | None:
    for episode, row in zip(evaluation.episodes, evaluation.rows, strict=True):
        if (row.task_id, row.copy) == (like.task_id, like.copy):
            return _example(stage, episode, row)
    return None


def _example(stage: str, episode: Episode, row: Row) -> Example:
    return Example(stage, row.outcome.value, episode, row.scores)


def _shown(value: object) -> Json:
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, Sequence):
        return [_shown(part) for part in value]
    return str(value)
