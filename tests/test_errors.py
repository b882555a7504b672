"""Tests of hopling.errors."""

import pytest

from hopling.errors import DataError, HoplingError, SettingsError, ToolError, WorldError, nearest


def test_each_kind_of_failure_is_caught_apart() -> None:
    """DESIGN law 5: three fates, so no kind is a case of another but a bad line of bad settings."""
    kinds = (SettingsError, WorldError, ToolError)
    for kind in kinds:
        assert issubclass(kind, HoplingError)
        assert not any(issubclass(kind, other) for other in kinds if other is not kind)
    assert issubclass(DataError, SettingsError)


@pytest.mark.parametrize(
    ("name", "hint"),
    [("kl_coef", " Did you mean 'kl'?"), ("group_sise", " Did you mean 'group_size'?"), ("x", "")],
)
def test_the_nearest_name_is_offered_only_if_it_is_near(name: str, hint: str) -> None:
    """Issue 2, "Bad input": unknown settings name the nearest one."""
    assert nearest(name, ["kl", "group_size", "seed"]) == hint
