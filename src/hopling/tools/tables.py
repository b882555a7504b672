"""Text that tools print: Markdown tables, shortened names, and literals without their syntax."""

import re
from collections.abc import Sequence

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


def markdown(head: Sequence[str], body: Sequence[Sequence[str]]) -> str:
    """Return a table in Markdown; cells are one line each, and bars in them are escaped."""
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    lines += [f"| {' | '.join(map(_cell, row))} |" for row in body]
    return "\n".join(lines)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _unescaped(match: re.Match[str]) -> str:
    code = match[0][1:]
    if code[0] in "uU":
        point = int(code[1:], 16)
        return chr(point) if point < 0x110000 else match[0]
    return _ESCAPED.get(code, code)
