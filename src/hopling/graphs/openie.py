"""What is read out of documents: entities and triples, kept document by document.

`extract` runs any extractor so that a kill loses one document at most: each result is written down
at once, and a later run asks only for what is missing or failed. [BUGS B16, B17]
"""

import hashlib
import json
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol

from hopling.errors import DataError
from hopling.graphs.base import Document
from hopling.graphs.sources import OnProgress
from hopling.records import append, write_text

Status = Literal["done", "empty", "failed"]
_MAX_NAME = 200  # characters; longer ones are sentences, not names
_BETWEEN = re.compile(r"\s+")


class Triple(NamedTuple):
    """A fact that a document states, in words."""

    head: str
    relation: str
    tail: str


@dataclass(frozen=True)
class Extraction:
    """What was read out of one document; entities of triples need not be listed again.

    `kinds` says what an entity is (person, place, ...) where the extractor knows: two entities of
    one name and of different kinds stay apart. `problem` says why the document failed.
    """

    document_id: str
    entities: tuple[str, ...] = ()
    triples: tuple[Triple, ...] = ()
    kinds: Mapping[str, str] = field(default_factory=dict)
    problem: str = ""

    @property
    def status(self) -> Status:
        """Whether something was found, nothing was there, or the document must be tried again."""
        if self.problem:
            return "failed"
        return "done" if self.entities or self.triples else "empty"


class Extractor(Protocol):
    """Reads entities and triples out of documents; `name` changes when its results would."""

    @property
    def name(self) -> str:
        """What the results depend on, besides the documents."""
        ...

    def extract(self, documents: Sequence[Document]) -> Iterable[Extraction]:
        """Return an extraction for each document, in any order, each as soon as it is there."""
        ...


class Extracted(NamedTuple):
    """All extractions in the documents' order; `num_damaged` lines of the journal were set aside.

    `num_reused` were taken from an earlier run.
    """

    extractions: list[Extraction]
    num_reused: int = 0
    num_damaged: int = 0


def extract(
    documents: Sequence[Document],
    extractor: Extractor,
    journal: Path | None = None,
    *,
    earlier: Path | None = None,
    on_progress: OnProgress | None = None,
) -> Extracted:
    """Return what the extractor reads out of the documents; those that failed say so.

    `journal` is appended to after each document; it and `earlier`, of a finished build, are asked
    first. A document counts as read when title, text and extractor are the same and it did not
    fail. Raises what the extractor raises; the journal keeps what was there by then.
    """
    known: dict[str, Extraction] = {}
    num_damaged = 0
    for path in (earlier, journal):
        if path is not None:
            found, damaged = read_extractions(path, set_aside=path == journal)
            known.update(found)
            num_damaged += damaged
    prints = {document.id: fingerprint(document, extractor.name) for document in documents}
    whole = {print for print, one in known.items() if one.status != "failed"}
    missing = [document for document in documents if prints[document.id] not in whole]
    num_reused = len(documents) - len(missing)
    for count, extraction in enumerate(extractor.extract(missing), num_reused + 1):
        print = prints[extraction.document_id]
        known[print] = extraction
        if journal is not None:
            append(journal, to_row(extraction, print))
        if on_progress:
            on_progress(count, len(documents))
    ordered = [replace_id(known.get(prints[document.id]), document.id) for document in documents]
    return Extracted(ordered, num_reused, num_damaged)


def fingerprint(document: Document, extractor: str) -> str:
    """Return what an extraction depends on, as 16 hexadecimal digits."""
    read = json.dumps([extractor, document.title, document.text])
    return hashlib.sha256(read.encode()).hexdigest()[:16]


def replace_id(extraction: Extraction | None, document_id: str) -> Extraction:
    """Return the extraction as that of another document with the same text."""
    if extraction is None:
        return Extraction(document_id, problem="the extractor returned nothing for it")
    return Extraction(
        document_id, extraction.entities, extraction.triples, extraction.kinds, extraction.problem
    )


def to_row(extraction: Extraction, print: str = "") -> dict[str, Any]:
    """Return the extraction as one line of a journal."""
    return {
        "document": extraction.document_id,
        "fingerprint": print,
        "status": extraction.status,
        "entities": list(extraction.entities),
        "kinds": dict(extraction.kinds),
        "triples": [list(triple) for triple in extraction.triples],
        "problem": extraction.problem,
    }


def from_row(row: Mapping[str, Any]) -> Extraction:
    """Return the extraction of a journal's line; raises DataError when it is not one."""
    try:
        triples = tuple(Triple(*map(_text, triple)) for triple in row["triples"])
        entities = tuple(map(_text, row["entities"]))
        kinds = {_text(name): _text(kind) for name, kind in row["kinds"].items()}
        found = Extraction(_text(row["document"]), entities, triples, kinds, _text(row["problem"]))
    except (KeyError, TypeError, AttributeError) as error:
        raise DataError(f"{str(row)[:80]!r} is no line of extractions ({error!r}).") from error
    if found.status != row.get("status"):
        raise DataError(f"{str(row)[:80]!r} says {row.get('status')!r}, but is {found.status!r}.")
    return found


def read_extractions(path: Path, *, set_aside: bool) -> tuple[dict[str, Extraction], int]:
    """Return a file's extractions by fingerprint, and how many lines could not be read.

    With `set_aside`, the damaged lines move to a file of the same name with `.damaged` added.
    """
    if not path.exists():
        return {}, 0
    found: dict[str, Extraction] = {}
    whole, damaged = [], []
    for line in path.read_bytes().split(b"\n"):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
            found[row["fingerprint"]] = from_row(row)
            whole.append(line)
        except (ValueError, TypeError, KeyError, DataError):
            damaged.append(line)
    if damaged and set_aside:
        with path.with_name(path.name + ".damaged").open("ab") as aside:
            aside.writelines(line + b"\n" for line in damaged)
        write_text(path, b"".join(line + b"\n" for line in whole).decode())
    return found, len(damaged)


def tidy(name: object) -> str:
    """Return a name in NFC, on one line and without quotes around it; "" for what is no name.

    >>> tidy('  "New\\n York" '), tidy(1984), tidy(None), tidy({"name": "x"})
    ('New York', '1984', '', '')
    """
    if isinstance(name, bool) or not isinstance(name, str | int | float):
        return ""
    text = _BETWEEN.sub(" ", unicodedata.normalize("NFC", str(name))).strip().strip("\"'`").strip()
    return text if len(text) <= _MAX_NAME and any(c.isalnum() for c in text) else ""


def tidied(names: Iterable[object]) -> tuple[str, ...]:
    """Return the names that are names, each once."""
    return tuple(dict.fromkeys(filter(None, map(tidy, names))))


def tidied_triples(triples: Iterable[object]) -> tuple[Triple, ...]:
    """Return the triples that are three names, each once."""
    return tuple(dict.fromkeys(_triples(triples)))


def _triples(triples: Iterable[object]) -> Iterator[Triple]:
    for triple in triples:
        if isinstance(triple, Sequence) and not isinstance(triple, str) and len(triple) == 3:
            head, relation, tail = map(tidy, triple)
            if head and relation and tail:
                yield Triple(head, relation, tail)


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is no text")
    return value
