import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopling.evaluation import intervals
from hopling.evaluation.intervals import Estimate, bootstrap


def test_the_interval_of_a_share_is_the_binomials() -> None:
    """Normal approximation: 0.5 -+ 1.96 * sqrt(0.25 / 400) = 0.451 to 0.549."""
    found = bootstrap([1.0, 0.0] * 200, [1] * 400, rng=np.random.default_rng(0))
    assert found is not None
    assert (found.value, found.num) == (0.5, 400)
    assert found.low == pytest.approx(0.451, abs=0.006)
    assert found.high == pytest.approx(0.549, abs=0.006)


def test_more_copies_of_the_same_questions_narrow_nothing() -> None:
    """Ours: questions are drawn again, not episodes."""
    once = bootstrap([1.0, 0.0, 1.0], [1, 1, 1], rng=np.random.default_rng(0))
    thrice = bootstrap([3.0, 0.0, 3.0], [3, 3, 3], rng=np.random.default_rng(0))
    assert once == thrice


def test_questions_without_a_value_count_for_nothing() -> None:
    """DESIGN law 5: unscored is not zero."""
    found = bootstrap([1.0, 0.0], [1, 0], rng=np.random.default_rng(0))
    assert found == Estimate(1.0, 1.0, 1.0, 1)
    assert bootstrap([0.0], [0], rng=np.random.default_rng(0)) is None
    assert bootstrap([], [], rng=np.random.default_rng(0)) is None


def test_the_block_size_changes_no_number(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours: blocks bound the memory only."""
    whole = bootstrap([1.0, 0.0, 2.0], [1, 1, 2], rng=np.random.default_rng(5))
    monkeypatch.setattr(intervals, "_BLOCK", 3 * 64)
    assert bootstrap([1.0, 0.0, 2.0], [1, 1, 2], rng=np.random.default_rng(5)) == whole


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 3)), min_size=1, max_size=20))
def test_an_interval_stays_within_the_questions_means(pairs: list[tuple[int, int]]) -> None:
    """Ours: a mean of drawn questions lies between the smallest and the largest."""
    sums, counts = [float(s) for s, _ in pairs], [float(c) for _, c in pairs]
    found = bootstrap(sums, counts, rng=np.random.default_rng(0))
    means = [s / c for s, c in pairs]
    assert found is not None
    assert min(means) - 1e-9 <= found.low <= found.high <= max(means) + 1e-9
