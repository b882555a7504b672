"""Numbers of a step, and alarms."""

import re

import pytest

import asking
from hopling.episode import Ending
from hopling.policies.scripted import Scripted
from hopling.rollout import rollout
from hopling.training.metrics import alarms, digest, summarized


def digests(scripts, rewards):
    tasks = [t for t in asking.tasks(2) for _ in range(2)]
    played = [
        rollout(Scripted({t.id: s}), asking.world(), [t])[0]
        for t, s in zip(tasks, scripts, strict=True)
    ]
    return [
        digest(episode, reward=reward, correct=asking.right(episode), others={})
        for episode, reward in zip(played, rewards, strict=True)
    ]


def test_shares_count_what_happened():
    """Ours: two tasks, two episodes each, counted by hand."""
    scripts = [["?a", "=1"], ["oops", "?a", "=9"], ["=2"], ["?b", "?b", "?b"]]
    row = summarized(digests(scripts, [1.0, 0.0, 1.0, 0.0]))
    assert row["reward"] == row["correct"] == 0.5
    assert row["calls"] == (1 + 1 + 0 + 3) / 4
    assert row["turns"] == (2 + 3 + 1 + 3) / 4
    assert row["malformed"] == 0.25
    assert row["repeats"] == 2 / 5
    assert row["answered"] == 0.75
    assert row["endings"]["out of turns"] == 1
    assert row["flat_groups"] == 0.0


def test_a_shaped_reward_may_spread_where_correctness_does_not():
    """MEASURED: flat groups are counted on correctness."""
    scripts = [["=9"], ["?a", "=9"], ["=2"], ["?b", "=2"]]
    row = summarized(digests(scripts, [0.0, 0.1, 1.0, 0.9]))
    assert (row["flat_groups"], row["flat_rewards"]) == (1.0, 0.0)


def test_unscored_episodes_are_counted_and_left_out_of_the_means():
    """The fifth law."""
    scripts = [["?a", "=1"], ["?a", "=1"], ["=2"], ["=2"]]
    row = summarized(digests(scripts, [1.0, None, 0.5, None]))
    assert (row["reward"], row["unscored"]) == (0.75, 0.5)


def healthy(steps):
    usual = dict(entropy=1.0, kl=0.02, answered=0.9, cut=0.1, flat_rewards=0.4, unscored=0.0)
    return [{"step": step, **usual} for step in range(1, steps + 1)]


def test_a_healthy_run_raises_no_alarm():
    """Ours."""
    assert alarms(healthy(9)) == []
    assert alarms([{"step": 0, "valid_correct": 0.1}]) == []


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"entropy": 0.05}, "entropy fell from 1 to 0.05"),
        ({"kl": 4.0}, r"kl jumped to 4 \(usual: 0.02\)"),
        ({"answered": 0.5}, "fell from 90 % to 50 %"),
        ({"cut": 0.6}, "60 % of the episodes ran out of tokens"),
        ({"unscored": 0.3}, "30 % of the episodes could not be scored"),
    ],
)
def test_each_collapse_is_named(changed, words):
    """DESIGN 7: alarms name what went flat."""
    history = [*healthy(5), healthy(6)[-1] | changed]
    (alarm,) = alarms(history)
    assert re.search(words, alarm)


def test_groups_that_stay_flat_raise_an_alarm_and_one_step_does_not():
    """BUGS B29: counted and shown."""
    flat = [row | {"flat_rewards": 1.0} for row in healthy(3)]
    assert alarms(flat[:2]) == []
    (alarm,) = alarms(flat)
    assert "no group has had any spread" in alarm


def test_every_ending_has_a_count():
    """Ours: a reader sees a zero, not a missing name."""
    row = summarized(digests([["=1"]] * 4, [0.0] * 4))
    assert set(row["endings"]) == {ending.value for ending in Ending}
