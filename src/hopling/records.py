"""Files of a run: rows that survive a crash, files that are whole or absent, text without secrets.

It does not know what the rows mean.
"""

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hopling.errors import DataError

_USER_INFO = re.compile(r"(?<=://)[^/?#\s\"'<>]+@")
_KEY_NAME = re.compile(r"(KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?)S?$", re.IGNORECASE)
_SHORTEST_KEY = 8


def append(path: Path, row: Mapping[str, Any]) -> None:
    """Append one JSON line; a torn last line of an earlier crash is set aside first.

    The torn text goes to a file of the same name with `.torn` added. [BUGS B34]
    Half a character, which UTF-8 cannot hold, is written as JSON's escape and reads back the same.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    line = json.dumps(row, ensure_ascii=False) + "\n"
    with path.open("a+b") as file:
        _set_torn_aside(path, file)
        file.write(line.encode("utf-8", "backslashreplace"))
        file.flush()
        os.fsync(file.fileno())


def read(path: Path) -> list[dict[str, Any]]:
    """Return the rows of a JSON-lines file, without a torn last line; none if there is no file.

    Raises DataError when any other line is not a JSON object.
    """
    if not path.exists():
        return []
    *lines, torn = path.read_bytes().split(b"\n")
    rows = [_row(path, number, line) for number, line in enumerate(lines, 1) if line.strip()]
    if _is_row(torn):
        rows.append(json.loads(torn))
    return rows


def write_json(path: Path, value: Any) -> None:
    """Write the value as indented JSON; a reader sees the old file or the new one, never half."""
    write_text(path, json.dumps(value, ensure_ascii=False, indent=2) + "\n")


def write_text(path: Path, text: str) -> None:
    """Write the text; a reader sees the old file or the new one, never half."""
    write_bytes(path, text.encode("utf-8"))


def write_bytes(path: Path, data: bytes) -> None:
    """Write the bytes; a reader sees the old file or the new one, never half."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with beside.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


def redact(text: str, environment: Mapping[str, str] = os.environ) -> str:
    """Return the text without user:password in URLs and without the values of secret variables.

    A variable is secret when its name ends in KEY, TOKEN, SECRET, PASSWORD or CREDENTIALS and its
    value has at least 8 characters. [BUGS B35]

    >>> redact("http://me:pw@localhost:8890/sparql with sk-12345678", {"A_KEY": "sk-12345678"})
    'http://***@localhost:8890/sparql with ***'
    """
    secrets = {
        value
        for name, value in environment.items()
        if _KEY_NAME.search(name) and len(value) >= _SHORTEST_KEY
    }
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, "***")
    return _USER_INFO.sub("***@", text)


def _set_torn_aside(path: Path, file: Any) -> None:
    """Leave the file ending in a whole line, and stand at its end."""
    end = file.seek(0, os.SEEK_END)
    start = _last_line_start(file, end)
    if start == end:
        return
    file.seek(start)
    torn = file.read()
    if _is_row(torn):  # the row is whole, only its end of line was lost
        file.write(b"\n")
        return
    with path.with_name(path.name + ".torn").open("ab") as aside:
        aside.write(torn + b"\n")
    file.truncate(start)


def _last_line_start(file: Any, end: int) -> int:
    """Return the place after the last end of line."""
    block, place = 65536, end
    while place > 0:
        begin = max(0, place - block)
        file.seek(begin)
        found = file.read(place - begin).rfind(b"\n")
        if found >= 0:
            return begin + found + 1
        place = begin
    return 0


def _is_row(line: bytes) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except ValueError:
        return False


def _row(path: Path, number: int, line: bytes) -> dict[str, Any]:
    if not _is_row(line):
        raise DataError(
            f"{path}, line {number}: {line[:60]!r} is not a JSON object; each line must hold one. "
            "Mend or delete the line."
        )
    return json.loads(line)
