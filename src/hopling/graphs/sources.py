"""Reads triples and labels from files, one line at a time, and accounts for every line.

N-Triples (`.nt`) and TSV of head, relation, tail (`.tsv`, `.txt`), each also with `.gz`. TSV has
no header and no quoting: "NA", "null" and a lone quote are strings like any other.
"""

import gzip
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TextIO

from hopling.errors import DataError, SettingsError
from hopling.graphs.terms import Triple, parse_triple

OnProgress = Callable[[int, int | None], None]

_BATCH = 1 << 16  # lines between two reports of progress


class Lines:
    """The lines of several files, with their bad ones and the bytes read so far.

    A bad line raises DataError, or, where `rejects` is given, is counted and written to it.
    """

    def __init__(self, rejects: TextIO | None = None, on_progress: OnProgress | None = None):
        self.bad: Counter[str] = Counter()
        self.examples: list[str] = []
        self._rejects = rejects
        self._on_progress = on_progress or (lambda done, total: None)
        self._done = 0
        self.total: int | None = None
        self.place = ""  # of the line read last, for messages

    def triples(self, source: Path, scope: str) -> Iterator[Triple]:
        """Yield the triples of a file; `scope` keeps its blank nodes apart from other files'."""
        is_tsv = kind_of(source) == "tsv"
        for number, line in self._lines(source):
            if not is_tsv and (not line.strip() or line.lstrip().startswith("#")):
                continue
            try:
                if is_tsv:
                    head, relation, tail = _fields(line, 3)
                    triple = Triple(head, relation, tail)
                else:
                    triple = parse_triple(line, scope)
            except ValueError as error:
                self._reject(source, number, str(error), line)
                continue
            yield triple

    def labels(self, source: Path) -> Iterator[tuple[str, str]]:
        """Yield the rows (id, label) of a TSV file."""
        for number, line in self._lines(source):
            try:
                node, label = _fields(line, 2)
            except ValueError as error:
                self._reject(source, number, str(error), line)
                continue
            yield node, label

    def _lines(self, source: Path) -> Iterator[tuple[int, str]]:
        try:
            with source.open("rb") as raw:
                stream = gzip.open(raw) if source.suffix == ".gz" else raw  # noqa: SIM115
                for number, line in enumerate(stream, 1):
                    if number % _BATCH == 0:
                        self._on_progress(self._done + raw.tell(), self.total)
                    yield from self._decoded(source, number, line)
                self._done += raw.tell()
                self._on_progress(self._done, self.total)
        except FileNotFoundError as error:
            raise SettingsError(f"There is no file {source}.") from error
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise DataError(
                f"{source} is not a whole gzip file ({error}). Fetch or compress it again."
            ) from error

    def _decoded(self, source: Path, number: int, line: bytes) -> Iterator[tuple[int, str]]:
        try:
            text = line.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
        except UnicodeDecodeError:
            self._reject(source, number, "not UTF-8", line.decode("utf-8", "backslashreplace"))
            return
        if text:
            self.place = f"{source}, line {number}"
            yield number, text

    def _reject(self, source: Path, number: int, rule: str, line: str) -> None:
        line = line.rstrip("\r\n")
        where = f"{source}, line {number}: {rule}"
        if self._rejects is None:
            raise DataError(
                f"{where}: {line[:200]!r}. Mend the line, or build with strict=False to leave "
                "out bad lines and keep a list of them."
            )
        self.bad[rule] += 1
        if len(self.examples) < 10:
            self.examples.append(f"{where}: {line[:200]!r}")
        self._rejects.write(f"{source}\t{number}\t{rule}\t{line}\n")


def kind_of(source: Path) -> str:
    """Return "nt" or "tsv" by the file's name.

    Raises SettingsError for a name that says neither.
    """
    name = source.name.removesuffix(".gz")
    if name.endswith(".nt"):
        return "nt"
    if name.endswith((".tsv", ".txt")):
        return "tsv"
    raise SettingsError(
        f"{source} ends in neither .nt (N-Triples), .tsv nor .txt (head, relation, tail), "
        "each also with .gz. Rename or convert it."
    )


def _fields(line: str, number: int) -> list[str]:
    fields = line.split("\t")
    if len(fields) != number:
        raise ValueError(f"needs {number} tab-separated fields")
    if not all(fields):
        raise ValueError("a field is empty")
    return fields
