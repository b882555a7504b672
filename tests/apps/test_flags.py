from dataclasses import dataclass

import pytest
import typer
from typer.testing import CliRunner

from hopling.apps.flags import with_flags
from hopling.errors import SettingsError
from hopling.settings import setting


@dataclass(frozen=True)
class Inner:
    """Settings inside of settings."""

    steps: int = setting(3, "ours", "Steps.")


@dataclass(frozen=True)
class Outer:
    """Settings of a command."""

    rate: float = setting(0.5, "ours", "Rate.")
    names: tuple[str, ...] = setting((), "ours", "Names.")
    strict: bool = setting(True, "ours", "Strict.")
    loud: bool = setting(False, "ours", "Loud.")
    inner: Inner = Inner()


def application(seen: list[object]) -> typer.Typer:
    """Return a program of one command that notes what it was given."""
    app = typer.Typer(pretty_exceptions_enable=False)

    @app.command()
    @with_flags(Outer)
    def act(word: str, settings: Outer) -> None:
        """Do something."""
        seen.append((word, settings))

    return app


def test_each_setting_is_a_flag_and_its_value_is_converted() -> None:
    """Ours: nested names are joined by a dash, as in `hopling run`."""
    seen: list[object] = []
    flags = ["--rate", "0.25", "--names", "a,b", "--no-strict", "--loud", "--inner-steps", "7"]
    result = CliRunner().invoke(application(seen), ["x", *flags])
    assert result.exit_code == 0, result.output
    assert seen == [("x", Outer(0.25, ("a", "b"), False, True, Inner(7)))]


def test_what_is_not_given_keeps_its_default() -> None:
    """Ours."""
    seen: list[object] = []
    CliRunner().invoke(application(seen), ["x"])
    assert seen == [("x", Outer())]


def test_help_shows_what_a_setting_is_and_its_default() -> None:
    """Ours."""
    output = CliRunner().invoke(application([]), ["--help"]).output
    assert "Do something." in output
    assert "--inner-steps" in output
    assert "Default: 0.5" in output


def test_a_bad_value_is_refused_as_in_a_file() -> None:
    """Ours."""
    result = CliRunner().invoke(application([]), ["x", "--rate", "fast"])
    with pytest.raises(SettingsError, match="rate is 'fast'; expected a number"):
        raise result.exception or AssertionError
