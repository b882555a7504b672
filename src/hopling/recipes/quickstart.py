"""Quickstart: SoG-R1 on a movie graph with a tiny student, trained in front of you in ten minutes.

The same recipe as `sog_r1` at a size for two cores; every value that differs is ours.

    hopling run quickstart
"""

from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from hopling.evaluation.report import Report
from hopling.recipes import sog_r1
from hopling.recipes.traces import Name
from hopling.settings import setting
from hopling.training.settings import GRPO, SFT


@dataclass(frozen=True)
class Settings(sog_r1.Settings):
    """SoG-R1's settings at the quickstart's size."""

    benchmark: Name = setting("movies", "ours", "The movie graph that ships with hopling.")
    student: str = setting("tiny", "ours", "1.5 million parameters, from random weights.")
    valid: int = setting(100, "ours", "Validation questions.")
    test: int | None = setting(450, "ours", "Test questions.")
    max_probe_rows: int | None = setting(4, "ours", "Sums up early: a tiny student reads slowly.")
    max_turns: int = setting(8, "ours", "Turns of an episode, the answer's included.")
    max_tokens: int | None = setting(1024, "ours", "Tokens of an episode.")
    sft: SFT = setting(
        SFT(
            epochs=10,
            max_steps=1400,
            learning_rate=1.5e-3,
            schedule="linear",
            warmup_ratio=0.03,
            tokens_per_batch=1024,
            lora_rank=0,
            save_every=1000,
            precision="fp32",
        ),
        "ours",
    )
    grpo: GRPO = setting(
        GRPO(
            steps=40,
            batch_size=16,
            minibatch_size=8,
            micro_batch_size=64,
            learning_rate=3e-4,
            top_p=1.0,
            top_k=0,
            kl=0.0,
            max_turn_tokens=64,
            precision="fp32",
        ),
        "ours",
    )


def run(settings: Settings, folder: Path, console: Console) -> Report:
    """Run SoG-R1 with the quickstart's settings."""
    return sog_r1.run(settings, folder, console)
