"""Pinned numbers of short runs on a CPU. A change that should not alter numbers leaves them alone.

Losses are those of torch 2.13 on x86; a change that moves them says so in its commit.
"""

import pytest

import asking
from hopling.records import read
from hopling.training.grpo import grpo
from hopling.training.practice import Goal, Run
from hopling.training.sft import sft

SFT_LOSSES = [
    5.95631,
    5.95631,
    4.36907,
    3.67089,
    3.24676,
    2.88099,
    2.60917,
    2.4208,
    2.30362,
    2.24668,
]
GRPO_LOSSES = [0.0, 9e-05, 0.00052, 0.00069, 0.0019, 0.00018, 0.00062, 0.00027, 0.00107, 0.00143]
GRPO_REWARDS = [0.75, 0.5, 0.75, 0.375, 0.4375, 0.8125, 0.5, 0.9375, 0.5, 0.6875]


def practiced(student, folder, **changed):
    grpo(
        student,
        asking.world(),
        tasks=asking.tasks(),
        goal=Goal(asking.right),
        settings=asking.practice(**changed),
        run=Run(folder),
    )
    return read(folder / "metrics.jsonl")


def test_ten_updates_of_sft_and_ten_steps_of_grpo_give_the_pinned_losses(tmp_path):
    """Ours: the same seeds, the same numbers."""
    student = asking.fresh()
    settings = asking.warm_up(epochs=10)
    sft(student, asking.traces(student), settings=settings, output_dir=tmp_path / "sft")
    losses = [row["loss"] for row in read(tmp_path / "sft" / "metrics.jsonl")]
    assert losses == pytest.approx(SFT_LOSSES, abs=1e-4)
    rows = practiced(asking.warm(), tmp_path / "grpo", steps=10, kl=0.05, learning_rate=1e-3)
    assert [row["loss"] for row in rows] == pytest.approx(GRPO_LOSSES, abs=1e-4)
    assert [row["reward"] for row in rows] == GRPO_REWARDS


def test_a_student_gets_better_by_practice(tmp_path):
    """SoG-R1 4.4: from guessing after its call to copying what the call gave."""
    rows = practiced(asking.warm(), tmp_path, steps=25, group_size=8, micro_batch_size=32)
    rewards = [row["reward"] for row in rows]
    assert sum(rewards[-5:]) / 5 > sum(rewards[:5]) / 5 + 0.15
