"""What commands print: a table for people, or the same values as JSON."""

import json
from collections.abc import Mapping, Sequence

from rich import box
from rich.console import Console
from rich.table import Table

from hopling.evaluation.console import safe


def screen(*, to_stderr: bool = False) -> Console:
    """Return the console to print to; standard error where standard output carries JSON."""
    return Console(stderr=to_stderr, highlight=False, soft_wrap=False)


def print_json(value: object) -> None:
    """Print the value as JSON on standard output."""
    print(json.dumps(value, ensure_ascii=False, indent=2))


def print_rows(head: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print a table; numbers stand to the right."""
    made = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for place, name in enumerate(head):
        numeric = bool(rows) and all(isinstance(row[place], int | float) for row in rows)
        made.add_column(name, justify="right" if numeric else "left", overflow="fold")
    for row in rows:
        made.add_row(*(safe(shown(cell)) for cell in row))
    screen().print(made)


def print_pairs(pairs: Mapping[str, object]) -> None:
    """Print names with their values, one a line."""
    width = max(map(len, pairs), default=0)
    for name, value in pairs.items():
        screen().print(safe(f"{name:{width}}  {shown(value)}"))


def shown(value: object) -> str:
    """Return a value as a table shows it.

    >>> shown(133582), shown(None), shown(True)
    ('133,582', '-', 'yes')
    """
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value is None:
        return "-"
    return f"{value:,}" if isinstance(value, int | float) else str(value)
