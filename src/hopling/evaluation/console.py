"""The report's table and an episode on a terminal; plain text where the output is no terminal."""

from collections.abc import Mapping
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from hopling.episode import Episode, Segment
from hopling.evaluation.report import Report

_STYLES = {"prompt": "dim", "policy": "bold cyan", "environment": "green"}
_CONTROL = {code: "\N{REPLACEMENT CHARACTER}" for code in (*range(32), *range(127, 160))}
_CONTROL = {code: mark for code, mark in _CONTROL.items() if chr(code) not in "\n\t"}


def table(report: Report) -> Table:
    """Return the report's one table: a line per stage, exact match with its interval in front."""
    stages = report.numbers["stages"]
    hops = list(dict.fromkeys(hop for stage in stages.values() for hop in stage["by_hops"]))
    has_unseen = any(stage["unseen"] for stage in stages.values())
    heads = ["Exact match, 95 %", "Hits@1\nfirst", "Hits@1\nany", "F1", "Calls/\ncorrect"]
    heads += [f"{hop} hop" for hop in hops]
    made = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=0)
    made.add_column("", overflow="fold")
    for head in [*heads, *(["Unseen\ntype"] if has_unseen else [])]:
        made.add_column(head, justify="right", no_wrap=True)
    for name, stage in stages.items():
        means, calls = stage["means"], stage["calls_per_correct"]
        cells = [_with_interval(means.get("exact_match"))]
        cells += [_percent(means.get(metric)) for metric in ("hits_first", "hits_any", "f1")]
        cells.append(f"{calls['value']:.2f}" if calls else "none")
        cells += [_percent(stage["by_hops"].get(hop, {}).get("exact_match")) for hop in hops]
        if has_unseen:
            cells.append(_percent((stage["unseen"] or {"means": {}})["means"].get("exact_match")))
        made.add_row(safe(name), *map(Text, cells))
    return made


def show_episode(episode: Episode, console: Console) -> None:
    """Print an episode's segments in the color of their source, under who wrote them.

    Control characters in a graph's or a policy's text are replaced, so that they move no cursor.
    """
    console.print(safe(f"Task {episode.task.id}: {episode.task.question}", style="bold"))
    for segment in episode.segments:
        trained = ", trained" if segment.source == "policy" else ""
        show_segment(segment, console, note=trained)
    ending = episode.ending.value if episode.ending else "not over"
    gold = ", ".join(episode.task.answers) or "none"
    console.rule(style="dim")
    console.print(safe(f"{ending} {episode.reason}".strip() + f"; gold: {gold}"))


def show_segment(segment: Segment, console: Console, *, note: str = "") -> None:
    """Print one segment in the color of its source, under who wrote it."""
    num = f", {len(segment.tokens)} tokens" if segment.tokens else ""
    console.rule(Text(f"{segment.source}{note}{num}"), align="left", style="dim")
    console.print(safe(segment.text.strip("\n"), style=_STYLES[segment.source]))


def safe(text: str, *, style: str = "") -> Text:
    """Return the text with control characters replaced, so that it moves no cursor."""
    return Text(text.translate(_CONTROL), style=style)


def _percent(row: Mapping[str, Any] | None) -> str:
    return f"{100 * row['value']:.1f}" if row else "none"


def _with_interval(row: Mapping[str, Any] | None) -> str:
    if not row:
        return "none"
    return f"{100 * row['value']:.1f} [{100 * row['low']:.1f}, {100 * row['high']:.1f}]"
