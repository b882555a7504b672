"""Advantages within a group."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopling.training.advantages import by_group, centered, is_flat, standardized

REWARDS = st.lists(st.floats(-2, 2, allow_nan=False), min_size=1, max_size=8)


def test_rewards_are_standardized_by_the_population_std():
    """GTA-RAG Eq. 20, CNY Eq. 5: rewards 1, 0, 0, 0 have mean 1/4 and std sqrt(3)/4."""
    first, *rest = standardized([1.0, 0.0, 0.0, 0.0], epsilon=0.0)
    assert first == pytest.approx(0.75 / (3**0.5 / 4))
    assert rest == pytest.approx([-0.25 / (3**0.5 / 4)] * 3)


def test_centered_rewards_keep_their_scale():
    """Dr. GRPO: no division by the std."""
    assert centered([1.0, 0.0, 0.0, 0.0]) == [0.75, -0.25, -0.25, -0.25]


@pytest.mark.parametrize("advantage", [standardized, centered])
@given(st.floats(-2, 2, allow_nan=False), st.integers(1, 9))
def test_a_group_without_spread_gets_exactly_zero(advantage, reward, size):
    """BUGS B29: the mean of equal floats may round, the advantage may not."""
    assert advantage([reward] * size) == [0.0] * size


def test_groups_are_those_of_the_task_when_tasks_are_interleaved():
    """BUGS B29: A, B, A, B with rewards 1, 0, 0, 1."""
    assert by_group("ABAB", [1.0, 0.0, 0.0, 1.0], centered) == [0.5, -0.5, -0.5, 0.5]


@given(st.lists(st.tuples(st.sampled_from("ABC"), st.sampled_from([0.0, 0.3, 1.0, None]))))
def test_shuffling_a_batch_changes_no_advantage(rows):
    """BUGS B29: groups are keyed by the task, independent of the order."""
    order = list(range(len(rows)))
    random.Random(0).shuffle(order)
    straight = by_group([g for g, _ in rows], [r for _, r in rows], standardized)
    shuffled = by_group([rows[i][0] for i in order], [rows[i][1] for i in order], standardized)
    assert [straight[i] for i in order] == shuffled


def test_an_unscored_episode_counts_in_no_mean_and_no_spread():
    """The fifth law: the world's failure says nothing of the policy."""
    with_failure = by_group("AAAA", [1.0, None, 0.0, None], standardized)
    assert with_failure[0] == by_group("AA", [1.0, 0.0], standardized)[0]
    assert with_failure[1] == with_failure[3] == 0.0


@given(REWARDS)
def test_advantages_of_a_group_sum_to_zero(rewards):
    """A baseline neither rewards nor punishes the group as a whole."""
    assert sum(centered(rewards)) == pytest.approx(0.0, abs=1e-9)
    assert is_flat(rewards) or max(standardized(rewards)) > 0
