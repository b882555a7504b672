"""Charts as SVG text for a page that loads nothing; colors come from the page's style."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from math import isfinite
from pathlib import Path

from hopling import records
from hopling.evaluation.intervals import Estimate

_WIDTH, _HEIGHT = 300, 150
_LEFT, _RIGHT, _TOP, _BOTTOM = 44, 10, 8, 22


@dataclass(frozen=True)
class Curve:
    """One metric of one stage over its steps."""

    stage: str
    name: str
    points: tuple[tuple[float, float], ...]


def read_curves(path: Path) -> list[Curve]:
    """Return the curves of a metrics file: every number of the rows that have a `step`.

    `stage` of a row, if it has one, keeps the steps of several stages apart.
    """
    found: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for row in records.read(path):
        if not _is_number(row.get("step")):
            continue
        for name, value in row.items():
            if name != "step" and _is_number(value):
                found.setdefault((str(row.get("stage", "")), name), []).append((row["step"], value))
    return [Curve(stage, name, tuple(points)) for (stage, name), points in found.items()]


def line_chart(curve: Curve) -> str:
    """Return a curve as a small chart with its extreme values at the axes.

    >>> line_chart(Curve("rl", "reward", ((0, 0.1), (1, 0.4)))).count("<polyline")
    1
    """
    steps = [step for step, _ in curve.points]
    values = [value for _, value in curve.points]
    low, high = min(values), max(values)
    x0, x1, y0, y1 = _LEFT, _WIDTH - _RIGHT, _HEIGHT - _BOTTOM, _TOP
    across, up = (max(steps) - min(steps)) or 1, (high - low) or 1
    places = [
        (x0 + (x1 - x0) * (s - min(steps)) / across, y0 + (y1 - y0) * ((v - low) / up))
        for s, v in curve.points
    ]
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    x, y = places[-1]
    parts = [
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" '
        f'aria-label="{escape(curve.name)} by step, last {values[-1]:.4g}">',
        f'<path class="axis" d="M{x0},{y1} V{y0} H{x1}"/>',
        f'<polyline class="line" points="{line}"/>',
        f'<circle class="dot" cx="{x:.1f}" cy="{y:.1f}" r="3"/>',
        _text(x0 - 6, y1 + 8, f"{high:.3g}", "end"),
        _text(x0 - 6, y0, f"{low:.3g}", "end") if high > low else "",
        _text(x0, y0 + 16, f"{min(steps):g}", "start"),
        _text(x1, y0 + 16, f"step {max(steps):g}", "end"),
        "</svg>",
    ]
    return "".join(parts)


def interval_chart(rows: Sequence[tuple[str, Estimate]]) -> str:
    """Return a dot with its interval for each named share, on one axis from 0 to 100 %."""
    width, left, right, step = 640, 130, 60, 28
    height = step * len(rows) + 26
    span = width - left - right
    parts = [f'<svg viewBox="0 0 {width} {height}" role="img" aria-label="shares with intervals">']
    for tick in range(0, 101, 25):
        x = left + span * tick / 100
        parts.append(f'<path class="grid" d="M{x:.1f},4 V{height - 20}"/>')
        parts.append(_text(x, height - 6, f"{tick} %" if tick else "0", "middle"))
    for number, (name, share) in enumerate(rows):
        y = step * number + step / 2 + 4
        low, value, high = (left + span * v for v in (share.low, share.value, share.high))
        parts.append(_text(left - 10, y + 4, name, "end"))
        parts.append(f'<path class="whisker" d="M{low:.1f},{y} H{high:.1f}"/>')
        parts.append(f'<circle class="dot" cx="{value:.1f}" cy="{y}" r="5"/>')
        parts.append(_text(high + 8, y + 4, f"{100 * share.value:.1f}", "start"))
    return "".join([*parts, "</svg>"])


def _text(x: float, y: float, text: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and isfinite(value)
