import io
from collections.abc import Callable

import pytest
from rich.console import Console

from hopling.progress import Pace, progress


def ticking(*seconds: float) -> Callable[[], float]:
    """Return a clock that shows these times in turn."""
    return iter(seconds).__next__


def test_plain_lines_come_every_ten_seconds_where_there_is_no_terminal() -> None:
    """USERS.md 3.2: plain lines when not a TTY; count, rate and time left."""
    out = io.StringIO()
    clock = ticking(0, 5, 12, 12, 15, 23, 23)
    with progress("Eval", Console(file=out, width=100), unit="tasks", clock=clock) as advance:
        for done in (5, 12, 15, 46):
            advance(done, 92)
    assert out.getvalue().splitlines() == [
        "Eval: 12 of 92 tasks, 1.0/s, 80 s left",
        "Eval: 46 of 92 tasks, 2.0/s, 23 s left",
    ]


def test_a_terminal_gets_a_bar_that_goes_away() -> None:
    """Ours."""
    out = io.StringIO()
    console = Console(file=out, width=100, force_terminal=True)
    with progress("Eval", console, unit="tasks", clock=ticking(0, 10)) as advance:
        advance(50, 200)
    assert "Eval" in out.getvalue()


@pytest.mark.parametrize(
    ("unit", "done", "total", "line"),
    [
        ("bytes", 1 << 20, 3 << 20, "1 of 3 MiB, 0.1/s, 20 s left"),
        ("tasks", 1, 1000, "1 of 1,000 tasks, 0.1/s, 2.8 h left"),
        ("tasks", 10, 610, "10 of 610 tasks, 1.0/s, 10 min left"),
        ("tasks", 0, 10, "0 of 10 tasks, 0.0/s"),
        ("tasks", 10, None, "10 tasks, 1.0/s"),
        ("tasks", 10, 10, "10 of 10 tasks, 1.0/s, 0 s left"),
    ],
)
def test_a_line_has_count_rate_and_time_left(
    unit: str, done: int, total: int | None, line: str
) -> None:
    """By hand, ten seconds after the start."""
    assert Pace(unit, ticking(0, 10)).line(done, total) == line
