"""Text that tools print: Markdown tables, shortened names, and literals without their syntax."""

import re
from collections.abc import Sequence
from functools import lru_cache

WIDTH = 400  # [ours] characters of a cell, unless a table is too long

_LITERAL = re.compile(r'"(.*)"(?:@[A-Za-z0-9-]+|\^\^\S+)?', re.DOTALL)
_ESCAPE = re.compile(r'\\(?:u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|[tbnrf"\'\\])')
_ESCAPED = {"t": "\t", "b": "\b", "n": "\n", "r": "\r", "f": "\f"}


def lexical(literal: str) -> str:
    """Return a literal's text without quotes, language and datatype; bare text stays as it is.

    >>> lexical('"05"^^<http://www.w3.org/2001/XMLSchema#integer>'), lexical('"Zoe"@en')
    ('05', 'Zoe')
    """
    match = _LITERAL.fullmatch(literal)
    return _ESCAPE.sub(_unescaped, match[1]) if match else literal


def spelled(relation: str) -> str:
    """Return a label for a relation that has none: its last part, in words. [ours]

    >>> spelled("film.actor.film_roles"), spelled("http://t.example/born#in_place")
    ('film roles', 'in place')
    """
    last = re.split(r"[./#:]", relation.rstrip("./#:"))[-1]
    return last.replace("_", " ").strip() or relation


def quoted(values: Sequence[object], most: int = 5) -> str:
    """Return values as a policy may have written them, for a message."""
    shown = ", ".join(shortened(repr(value), 100) for value in values[:most])
    return shown + (f" and {len(values) - most} more" if len(values) > most else "")


def shortened(text: str, width: int) -> str:
    """Return the text, or its beginning and "..." where it is longer than `width`."""
    return text if len(text) <= width else text[: width - 3] + "..."


def head(*names: str) -> str:
    """Return the head of a Markdown table."""
    return f"| {' | '.join(names)} |\n|{'---|' * len(names)}"


def cell(text: str) -> str:
    """Return a text as one line, bars escaped."""
    return " ".join(text.split()).replace("|", "\\|")


@lru_cache(maxsize=1 << 14)  # a graph has few relations, and a call shows many of them
def row_cells(relation: str, label: str | None, width: int) -> str:
    """Return the cells of a relation in a table of rows."""
    return f"{cell(relation)} | {cell(shortened(label or spelled(relation), width))}"


def property_cells(relation: str, label: str | None) -> tuple[str, str]:
    """Return the cells of a relation in a table of rows and in a summary."""
    return row_cells(relation, label, WIDTH), row_cells(relation, label, 100)


def _unescaped(match: re.Match[str]) -> str:
    code = match[0][1:]
    if code[0] in "uU":
        point = int(code[1:], 16)
        return chr(point) if point < 0x110000 else match[0]
    return _ESCAPED.get(code, code)
