from typing import Any

import pytest

from hopling.errors import SettingsError
from hopling.evaluation.compare import compare
from hopling.evaluation.evaluate import Evaluation, evaluate


def played(world: Any, right: set[str], *, num: int = 6, num_calls: int = 1) -> Evaluation:
    policy = world.policy(lambda view: view.task_id in right, num_calls=num_calls)
    return evaluate(policy, world.environment, world.tasks(num), seed=0)


def test_questions_are_fixed_broken_or_left(world: Any) -> None:
    """USERS 3.3: the fixed/broken matrix."""
    before = played(world, {"t0", "t1"}, num_calls=2)
    after = played(world, {"t1", "t2", "t3", "t4"})
    found = compare(before, after)
    assert (found.both_right, found.fixed, found.broken, found.both_wrong) == (1, 3, 1, 1)
    assert found.difference.value == pytest.approx(2 / 6)
    assert found.calls_both_correct is not None
    assert found.calls_both_correct.value == -1.0


def test_a_paired_interval_is_narrower_than_the_questions_spread(world: Any) -> None:
    """Ours: what both get right and wrong alike says nothing of their difference."""
    same = played(world, {"t0", "t1", "t2"})
    found = compare(same, played(world, {"t0", "t1", "t2"}))
    assert (found.difference.low, found.difference.high) == (0.0, 0.0)


def test_unscored_and_missing_episodes_are_left_out_and_counted(world: Any) -> None:
    """DESIGN law 5."""
    before = played(world, {"t0"}, num=5)
    world.find.down = {"t1"}
    found = compare(before, played(world, {"t0"}, num=4))
    assert found.num_dropped == 2
    assert found.difference.num == 3


def test_evaluations_without_a_common_question_cannot_be_compared(world: Any) -> None:
    """CONVENTIONS, "Errors"."""
    before = played(world, set())
    with pytest.raises(SettingsError, match="no question was scored for 'f1' in both"):
        compare(before, before.where(lambda row: False), metric="f1")
