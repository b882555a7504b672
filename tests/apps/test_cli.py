import subprocess
import sys

import pytest

from apps.conftest import Hopling
from hopling import apps
from hopling.errors import SettingsError, WorldError


def failing(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every command that opens a graph fail."""

    def fail(*arguments: object, **named: object) -> None:
        raise error

    monkeypatch.setattr(apps.graph, "open_graph", fail)


def test_hopling_alone_says_in_five_lines_what_it_is_and_what_to_type(hopling: Hopling) -> None:
    """The issue: five lines."""
    ran = hopling()
    assert (ran.code, len(ran.out.splitlines())) == (0, 5)
    assert "hopling doctor" in ran.out


def test_the_version_is_the_package_s(hopling: Hopling) -> None:
    """Ours."""
    assert hopling("--version").out == "hopling 0.1.0\n"


def test_python_dash_m_runs_the_same_command() -> None:
    """Ours."""
    command = [sys.executable, "-m", "hopling", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == "hopling 0.1.0\n"


@pytest.mark.parametrize(
    ("error", "code"),
    [(SettingsError("x is 1; expected 2."), 2), (WorldError("x did not answer."), 3)],
)
def test_an_error_is_one_line_and_its_kind_is_the_exit_code(
    hopling: Hopling, monkeypatch: pytest.MonkeyPatch, error: Exception, code: int
) -> None:
    """USERS.md 3.2: what, where, what to do; no trace."""
    failing(error, monkeypatch)
    ran = hopling("graph", "info", "films")
    assert (ran.code, ran.out, ran.err) == (code, "", f"{type(error).__name__}: {error}\n")


def test_a_mistake_of_ours_is_called_so(hopling: Hopling, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours: exit 1, and the way to the trace."""
    failing(KeyError("rows"), monkeypatch)
    ran = hopling("graph", "info", "films")
    assert ran.code == 1
    assert ran.err == "hopling itself failed: KeyError: 'rows'. Add --debug for the trace.\n"


@pytest.mark.parametrize("arguments", [("--debug", "graph", "info"), ("graph", "info", "--debug")])
def test_debug_shows_the_trace_wherever_it_stands(
    hopling: Hopling, arguments: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """USERS.md 3.2: the trace only with --debug."""
    failing(KeyError("rows"), monkeypatch)
    ran = hopling(*arguments, "films")
    assert ran.err.startswith("Traceback")
    assert "Add --debug" not in ran.err


def test_a_command_that_needs_torch_says_what_to_install(
    hopling: Hopling, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The issue: `pip install hopling` needs no torch."""
    failing(ModuleNotFoundError("No module named 'torch'", name="torch"), monkeypatch)
    ran = hopling("graph", "info", "films")
    assert (ran.code, ran.err) == (2, "This needs torch. Run: pip install 'hopling[train]'\n")


def test_an_error_s_text_shows_no_password(
    hopling: Hopling, monkeypatch: pytest.MonkeyPatch
) -> None:
    """BUGS B35."""
    failing(WorldError("http://me:pw@localhost:1 did not answer."), monkeypatch)
    assert "pw" not in hopling("graph", "info", "films").err


def test_an_unknown_option_names_the_nearest(hopling: Hopling) -> None:
    """The issue, "Bad input"."""
    ran = hopling("eval", "--modle", "x")
    assert ran.code == 2
    assert "--model" in ran.err


def test_the_command_line_loads_no_torch() -> None:
    """The issue: what is heavy is loaded by the command that needs it."""
    script = "import sys, hopling.apps.cli; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert not {"torch", "transformers", "httpx"} & set(done.stdout.split())
