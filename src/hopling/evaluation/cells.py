"""Numbers as table cells, and tables, in HTML."""

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

NOTHING = '<span class="range">none</span>'


def share(row: Mapping[str, Any] | None, *, signed: bool = False) -> str:
    """Return an estimate between 0 and 1 in percent, with its interval.

    >>> share({"value": 0.5, "low": 0.4, "high": 0.6, "num": 9})
    '50.0 <span class="range">40.0 to 60.0</span>'
    """
    return _cell(row, 100, 1, signed) if row else NOTHING


def amount(row: Mapping[str, Any] | None, *, signed: bool = False) -> str:
    """Return an estimate in its own unit, with its interval."""
    return _cell(row, 1, 2, signed) if row else NOTHING


def table(
    heads: Sequence[str], rows: Sequence[Sequence[str]], *, caption: str = "", style: str = ""
) -> str:
    """Return a table; the cells are HTML already, heads and caption are not."""
    head = "".join(f"<th>{escape(name)}</th>" for name in heads)
    body = "".join("<tr>" + "".join(f"<td>{c}</td>" for c in row) + "</tr>" for row in rows)
    note = f"<caption>{escape(caption)}</caption>" if caption else ""
    return (
        f'<div class="wide"><table class="{style}">{note}<thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def _cell(row: Mapping[str, Any], scale: int, digits: int, signed: bool) -> str:
    sign = "+" if signed else ""
    value, low, high = (f"{scale * row[k]:{sign}.{digits}f}" for k in ("value", "low", "high"))
    return f'{value} <span class="range">{low} to {high}</span>'
