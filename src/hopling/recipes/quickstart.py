"""Quickstart: SoG-R1 on a movie graph with a tiny student, trained in front of you in ten minutes.

The recipe is `sog_r1` itself, at a size for two cores; every value that differs is ours.

    hopling run quickstart
"""

from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from hopling.evaluation.report import Report
from hopling.recipes import sog_r1
from hopling.recipes.small import GRPO_SMALL, SFT_SMALL
from hopling.recipes.traces import Name
from hopling.settings import setting
from hopling.training.settings import GRPO, SFT


@dataclass(frozen=True)
class Settings(sog_r1.Settings):
    """SoG-R1's settings at the quickstart's size."""

    benchmark: Name = setting("movies", "ours", "The movie graph that ships with hopling.")
    student: str = setting("tiny", "ours", "1.5 million parameters, from random weights.")
    hops: tuple[int, ...] = setting((1, 2), "ours", "Three hops are left to the full recipe.")
    filtered: float = setting(0.5, "ours", "Half of the traces probe first, as the paper's do.")
    valid: int = setting(200, "ours", "Validation questions.")
    test: int | None = setting(300, "ours", "Test questions; those of the unseen type come on top.")
    max_probe_rows: int | None = setting(4, "ours", "Sums up early: a tiny student reads slowly.")
    max_turns: int = setting(8, "ours", "Turns of an episode, the answer's included.")
    max_tokens: int | None = setting(512, "ours", "Tokens of an episode.")
    sft: SFT = setting(SFT(**SFT_SMALL), "ours")
    grpo: GRPO = setting(GRPO(**GRPO_SMALL), "ours")


def run(settings: Settings, folder: Path, console: Console) -> Report:
    """Run SoG-R1 with the quickstart's settings."""
    return sog_r1.run(settings, folder, console)
