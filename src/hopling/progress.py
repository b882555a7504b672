"""Progress of a long command: count, rate and time left; plain lines where there is no terminal."""

import itertools
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

Advance = Callable[[int, int | None], None]

_LINE_EVERY_S = 10.0


@dataclass
class Pace:
    """How far a count has come, and how fast."""

    unit: str
    clock: Callable[[], float] = time.monotonic
    started: float = field(init=False)

    def __post_init__(self) -> None:
        self.started = self.clock()

    def line(self, done: int, total: int | None) -> str:
        """Return count, rate and time left.

        >>> pace = Pace("tasks", iter([0.0, 10.0]).__next__)
        >>> pace.line(50, 200)
        '50 of 200 tasks, 5.0/s, 30 s left'
        """
        seconds = self.clock() - self.started
        rate = done / seconds if seconds > 0 else 0.0
        scale, unit = (1 << 20, "MiB") if self.unit == "bytes" else (1, self.unit)
        count = f"{done / scale:,.0f}"
        if total:
            count += f" of {total / scale:,.0f}"
        left = f", {_spelled((total - done) / rate)} left" if total and rate else ""
        return f"{count} {unit}, {rate / scale:,.1f}/s{left}"


@contextmanager
def progress(
    label: str, console: Console, *, unit: str, clock: Callable[[], float] = time.monotonic
) -> Iterator[Advance]:
    """Give a function that takes how much is done, of how much in all, and shows it."""
    pace = Pace(unit, clock)
    if not console.is_terminal:
        yield _lines(label, console, pace)
        return
    columns = TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[line]}")
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(label, total=None, line="")
        yield lambda done, total: bar.update(
            task, completed=done, total=total, line=pace.line(done, total)
        )


def counting(advance: Advance, total: int, *, done: int = 0) -> Callable[[object], None]:
    """Return a function that takes what has ended, one by one, and advances."""
    ended = itertools.count(done + 1)
    return lambda _: advance(next(ended), total)


def _lines(label: str, console: Console, pace: Pace) -> Advance:
    last = pace.started

    def advance(done: int, total: int | None) -> None:
        nonlocal last
        now = pace.clock()
        if now - last >= _LINE_EVERY_S:
            last = now
            console.print(f"{label}: {pace.line(done, total)}", markup=False)

    return advance


def _spelled(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
