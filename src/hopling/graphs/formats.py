"""What a graph is built from: a file in one of many formats, and how it is read.

What a file is follows from its name, or is said. N-Triples and plain TSV are lines of triples and
read by `Lines`; the other formats by a module of `hopling.graphs.readers`, as a stream.
"""

import io
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol, get_args

from hopling.errors import DataError, SettingsError, nearest
from hopling.graphs.sources import BROKEN, Lines, unpacked
from hopling.graphs.terms import Triple, parse_triple

Format = Literal[
    "nt", "nq", "turtle", "trig", "rdfxml",
    "tsv", "csv", "jsonl", "parquet", "graphml", "pyg", "ogb",
]  # fmt: skip

# the relation of a node table's labels; `build_index` takes it for a label's, always
LABEL = "urn:hopling:label"
LINK = "linked_to"  # the relation of an edge whose file names none

_SUFFIXES: dict[str, Format] = {
    ".nt": "nt", ".nq": "nq", ".ttl": "turtle", ".trig": "trig", ".rdf": "rdfxml", ".owl": "rdfxml",
    ".tsv": "tsv", ".txt": "tsv", ".csv": "csv", ".jsonl": "jsonl", ".parquet": "parquet",
    ".graphml": "graphml", ".pt": "pyg",
}  # fmt: skip
_READERS: dict[Format, str] = {
    "turtle": "rdf", "trig": "rdf", "rdfxml": "rdf", "tsv": "tables", "csv": "tables",
    "jsonl": "tables", "parquet": "tables", "graphml": "graphml", "pyg": "tensors",
    "ogb": "tensors",
}  # fmt: skip
# what people call the columns of edges, the likeliest first
HEAD_NAMES = ("head", "subject", "source", "src", "from", "start_id", "h", "s")
RELATION_NAMES = ("relation", "predicate", "property", "type", "rel", "edge_type", "r", "p")
TAIL_NAMES = ("tail", "object", "target", "dst", "destination", "to", "end_id", "t", "o")
_QUAD = re.compile(r"(.*[>\"\w])[ \t]*(?:<[^<>\"]*>|_:[\w.\-:]*[\w\-:])[ \t]*(\.[ \t]*(?:#.*)?)")


class LineFilter(Protocol):
    """What a profile does to N-Triples before they are read: drops lines, or writes them anew."""

    def kept(self, text: bytes) -> bytes:
        """Return whole lines as they are to be read; a dropped one leaves an empty line."""
        ...


@dataclass(frozen=True)
class Source:
    """A file, or the folder of an OGB data set, and how it is read.

    `format` is told by the name where it is None. A table with `header` names its columns; without,
    it has head, relation and tail, or source and target. `delimiter` parts the fields, by default a
    tab or a comma. `profile` filters N-Triples. `arrays` loads a PyG file, for torch is not known
    here: `hopling.training.tensor_files.read_tensors`, which runs nothing of the file.
    """

    path: Path
    format: Format | None = None
    header: bool = False
    delimiter: str = ""
    profile: LineFilter | None = None
    arrays: Callable[[Path], Any] | None = None

    @property
    def kind(self) -> Format:
        """The format, said or told by the name.

        Raises SettingsError for a name that tells none.
        """
        return self.format or format_of(self.path)

    @property
    def is_lines(self) -> bool:
        """Whether each line is a triple of N-Triples, or three fields parted by tabs."""
        is_plain = not self.header and self.delimiter in ("", "\t")
        return self.kind == "nt" or (self.kind == "tsv" and is_plain)

    @property
    def kept(self) -> Callable[[bytes], bytes]:
        """What becomes of whole lines before they are read."""
        return self.profile.kept if self.profile else bytes

    def check(self) -> None:
        """Do nothing for a source that can be read.

        Raises SettingsError for a name that tells no format, and for plain TSV whose first line
        names columns: it would become an edge.
        """
        if self.kind == "tsv" and self.is_lines and self.path.is_file():
            with self.path.open("rb") as raw:
                first = unpacked(self.path, raw).read(200).partition(b"\n")[0]
            cells = first.decode("utf-8-sig", "replace").strip().split("\t")
            if names_columns(cells):
                raise SettingsError(
                    f"{self.path} begins with names of columns ({', '.join(cells)}). "
                    "Write --header, or remove the line."
                )


class Bad(NamedTuple):
    """What a reader could not read: where in the file, by which rule, and how it was written."""

    place: int
    rule: str
    text: str


def triples_of(lines: Lines, source: Source, scope: str) -> Iterator[Triple]:
    """Yield the triples of a source that is no lines of triples, or of N-Quads.

    `scope` keeps its blank nodes apart from other files'.

    A label of a table of nodes comes as a literal of the relation `LABEL`. What cannot be read goes
    the way of all bad lines.
    """
    if source.kind == "nq":
        yield from _quads(lines, source.path, scope)
        return
    read = import_module(f"hopling.graphs.readers.{_READERS[source.kind]}").read
    try:
        for found in read(source, scope):
            if isinstance(found, Bad):
                lines.reject(source.path, *found)
                continue
            yield found
    except FileNotFoundError as error:
        raise SettingsError(f"There is no file {error.filename or source.path}.") from error
    except BROKEN as error:
        raise DataError(f"{source.path} is not whole ({error}). Fetch it again.") from error
    lines.took(source.path)


def _quads(lines: Lines, path: Path, scope: str) -> Iterator[Triple]:
    for first, text in lines.chunks(path):
        for number, raw in enumerate(io.BytesIO(text), first):
            line = lines.decoded(path, number, raw)
            if not line.strip() or line.lstrip().startswith("#"):
                continue
            try:
                triple = _parse_quad(line, scope)
            except ValueError as error:
                lines.reject(path, number, str(error), line)
                continue
            yield triple


def _parse_quad(line: str, scope: str) -> Triple:
    if match := _QUAD.fullmatch(line):
        try:
            return parse_triple(match[1] + match[2], scope)
        except ValueError:
            pass  # three terms, of which the last was cut off
    return parse_triple(line, scope)


def format_of(path: Path) -> Format:
    """Return a file's format by its name; a folder is an OGB data set.

    Raises SettingsError for a name that tells none.
    """
    name = Path(path.name.removesuffix(".gz").removesuffix(".zst"))
    if kind := _SUFFIXES.get(name.suffix.lower()):
        return kind
    if path.is_dir():
        return "ogb"
    raise SettingsError(
        f"{path} ends in none of {', '.join(_SUFFIXES)}, each also with .gz or .zst. "
        "Say what it is (--format), or rename it."
    )


def format_named(name: str) -> Format | None:
    """Return the format of that name, None for "".

    Raises SettingsError for any other name.
    """
    known = get_args(Format)
    if name and name not in known:
        raise SettingsError(
            f"format is {name!r}; write one of {', '.join(known)}.{nearest(name, known)}"
        )
    return next((each for each in known if each == name), None)


def table_triple(number: int, fields: Sequence[str]) -> Triple:
    """Return the edge of a row without named columns: (head, relation, tail).

    Raises ValueError for another number of fields, an empty one, and a first row of names of
    columns, which would be a wrong edge.
    """
    if len(fields) != 3:
        raise ValueError("needs 3 tab-separated fields")
    if not all(fields):
        raise ValueError("a field is empty")
    if number == 1 and names_columns(fields):
        raise ValueError("the line names columns, as a header does (--header)")
    return Triple(*fields)


def names_columns(cells: Sequence[str]) -> bool:
    """Return whether a row is a header such as (head, relation, tail).

    >>> names_columns(["Subject", "predicate", "object"]), names_columns(["a", "type", "b"])
    (True, False)
    """
    names = HEAD_NAMES, RELATION_NAMES, TAIL_NAMES
    return len(cells) == 3 and all(
        cell.strip().lower() in known for cell, known in zip(cells, names, strict=True)
    )
