"""Table 3 of GTA-RAG over several runs: each stage, and what an ablation changes.

    python benchmarks/searching.py RUN [RUN ...] [--against "GTA-RAG I"]

RUN is a folder that `hopling run gta_rag` wrote; the runs differ in their seed. Their questions are
pooled, so an interval is over the questions of all runs, and a difference is paired: both stages
answered the same questions. Zero-target searches are per 100 questions. [GTA-RAG Table 3]
"""

import argparse
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np

from hopling import records
from hopling.episode import Ending, Episode
from hopling.evaluation.episode_log import EpisodeLog
from hopling.evaluation.intervals import bootstrap
from hopling.rewards.evidence import found_all, found_evidence, gained, num_zero_target
from hopling.rewards.squad import squad_em

Questions = Mapping[tuple[str, str], Episode]  # by run and task
# what is summed over questions, what that is divided by, and how many of it make the unit
METRICS: dict[str, tuple[Callable[[Episode], float], Callable[[Episode], float], int]] = {
    "exact match": (squad_em, lambda e: 1, 100),
    "target documents": (
        lambda e: len(found_evidence(e)),
        lambda e: len(set(e.task.evidence)),
        100,
    ),
    "complete chains": (found_all, lambda e: 1, 100),
    "zero-target": (num_zero_target, lambda e: 1, 100),
    "searches": (lambda e: len(gained(e)), lambda e: 1, 1),
}


def main() -> None:
    """Print a row for each stage, then one for each difference."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("runs", nargs="+", type=Path)
    parser.add_argument("--against", default="GTA-RAG I", help="the stage that others are held to")
    options = parser.parse_args()
    names = list(
        dict.fromkeys(
            row["stage"] for run in options.runs for row in records.read(run / "episodes.jsonl")
        )
    )
    stages = {name: played(options.runs, name) for name in names}
    print(f"{'':18}{'questions':>9}" + "".join(f"{name:>22}" for name in METRICS))
    for name, questions in stages.items():
        print(row_of(name, questions))
    base = stages[options.against]
    print(f"\nminus {options.against}, on the same questions")
    for name, questions in stages.items():
        if name != options.against:
            print(row_of(name, questions, base))


def played(runs: Sequence[Path], stage: str) -> Questions:
    """Return a stage's episodes that were scored."""
    return {
        (run.name, one.episode.task.id): one.episode
        for run in runs
        for one in EpisodeLog(run / "episodes.jsonl", stage=stage).read()
        if one.episode.ending is not Ending.UNSCORED
    }


def row_of(name: str, questions: Questions, base: Questions | None = None) -> str:
    """Return a stage's metrics with intervals, or what they are above those of another."""
    common = [key for key in questions if base is None or key in base]
    cells = []
    for value, size, unit in METRICS.values():
        before = [value(base[key]) if base is not None else 0.0 for key in common]
        sums = [value(questions[key]) - b for key, b in zip(common, before, strict=True)]
        counts = [size(questions[key]) for key in common]
        found = bootstrap(sums, counts, rng=np.random.default_rng(0))
        assert found is not None
        sign = "+" if base is not None else ""
        shown = [f"{unit * x:{sign}.{1 if unit > 1 else 2}f}" for x in (found.value, found.low)]
        high = f"{unit * found.high:{sign}.{1 if unit > 1 else 2}f}"
        cells.append(f"{shown[0]} [{shown[1]}, {high}]")
    return f"{name:18}{len(common):>9}" + "".join(f"{cell:>22}" for cell in cells)


if __name__ == "__main__":
    main()
