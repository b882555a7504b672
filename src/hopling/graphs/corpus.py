"""Reads documents, and triples that others extracted, from the files that people have.

JSONL, JSON and parquet with `text` (also `contents`, `passage`) and, where there are any, `title`
and `id` (`_id`); folders of .txt and .md; OpenIE results of HippoRAG; folders of graphrag's parquet
tables. JSON files may end in .gz.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hopling.errors import DataError, SettingsError
from hopling.graphs.base import Document
from hopling.graphs.formats import Bad
from hopling.graphs.openie import Extraction, tidied, tidied_triples, tidy
from hopling.graphs.readers.rows import parquet_rows, placed_rows
from hopling.graphs.sources import opened

_TEXT_FILES = (".txt", ".md", ".markdown")
_ROW_FILES = (".jsonl", ".json", ".parquet")
_GRAPHRAG = ("text_units.parquet", "entities.parquet", "relationships.parquet")
_MAX_RELATION = 160  # characters of a description that stands for a relation
_RELATED = "is related to"


@dataclass
class Corpus:
    """Documents, what others read out of them, and what was left out.

    `extractions` is None where the files hold documents only. A document without text is left out
    as empty, one that repeats another as a duplicate; `bad` counts other rows by rule.
    """

    documents: list[Document] = field(default_factory=list)
    extractions: list[Extraction] | None = None
    num_duplicates: int = 0
    num_empty: int = 0
    bad: Counter[str] = field(default_factory=Counter)


def read_corpus(sources: Sequence[Path], *, strict: bool = True) -> Corpus:
    """Return the documents of files and folders.

    A document without an id gets its title for one; another text of that title gets " #2" added.
    Raises DataError for a row that is no document, or counts it where `strict` is false, and
    SettingsError when no document is left.
    """
    corpus = Corpus()
    shelf = _Shelf(corpus)
    for source in sources:
        if not source.exists():
            raise SettingsError(f"There is no file or folder {source}.")
        if source.is_dir() and (source / _GRAPHRAG[0]).is_file():
            _add_graphrag(source, shelf)
            continue
        for place, row in _rows(source):
            try:
                shelf.add(row)
            except ValueError as error:
                if strict:
                    raise DataError(f"{source}, {place}: {error}. Mend or delete it.") from error
                corpus.bad[str(error)] += 1
    if not corpus.documents:
        found = f"{corpus.num_empty} without text" if corpus.num_empty else "none"
        raise SettingsError(
            f"{', '.join(map(str, sources))}: no documents to search ({found}). A row needs 'text'."
        )
    return corpus


def passages(documents: Iterable[Document], max_words: int) -> list[Document]:
    """Return the documents with long ones cut into passages of so many words at most.

    Paragraphs stay whole where they fit. The passages of document d are d#1, d#2 and so on.

    >>> [d.id for d in passages([Document("d", "", "a b\\n\\nc d e")], 3)]
    ['d#1', 'd#2']
    """
    found = []
    for document in documents:
        parts = list(_packed(document.text, max_words))
        if len(parts) < 2:
            found.append(document)
            continue
        for number, text in enumerate(parts, 1):
            found.append(Document(f"{document.id}#{number}", document.title, text))
    return found


class _Shelf:
    """Puts rows into a corpus, each document once."""

    def __init__(self, corpus: Corpus) -> None:
        self.corpus = corpus
        self._by_id: dict[str, Document] = {}
        self._titled: dict[str, list[Document]] = defaultdict(list)

    def add(self, row: object) -> str | None:
        """Add a row's document and return its id, None when it has no text.

        Raises ValueError, with the rule, for a row that is no document.
        """
        if isinstance(row, Bad):
            raise ValueError(row.rule)
        if not isinstance(row, Mapping):
            raise ValueError("a document must be an object with 'text'")
        title, text = _title_and_text(row)
        if not text.strip():
            self.corpus.num_empty += 1
            return None
        given = next((row[name] for name in ("id", "_id") if row.get(name) is not None), None)
        document_id = self._free_id(title or f"document {len(self._by_id) + 1}", title, text)
        if given is not None:
            document_id = _whole(str(given))
        document = Document(document_id, title, text)
        known = self._by_id.setdefault(document_id, document)
        if known != document:
            raise ValueError(f"id {document_id!r} stands for two different documents")
        if known is not document:
            self.corpus.num_duplicates += 1
            return document_id
        self.corpus.documents.append(document)
        self._titled[title].append(document)
        if "extracted_triples" in row:
            self.read(
                document_id, row.get("extracted_entities") or (), row["extracted_triples"] or ()
            )
        return document_id

    def read(
        self,
        document_id: str,
        entities: Iterable[object],
        triples: Iterable[object],
        kinds: Mapping[str, str] | None = None,
    ) -> None:
        """Add what others read out of a document."""
        if self.corpus.extractions is None:
            self.corpus.extractions = []
        self.corpus.extractions.append(
            Extraction(document_id, tidied(entities), tidied_triples(triples), dict(kinds or {}))
        )

    def _free_id(self, name: str, title: str, text: str) -> str:
        """Return the id of the document that says the same, or one that is not taken."""
        for known in self._titled.get(title, ()):
            if known.text == text:
                return known.id
        number, free = 1, name
        while free in self._by_id:
            number += 1
            free = f"{name} #{number}"
        return free


def _title_and_text(row: Mapping[str, Any]) -> tuple[str, str]:
    """Return title and text; HippoRAG and Search-R1 put the title on the text's first line."""
    for name in ("text", "contents", "passage"):
        if name in row:
            break
    else:
        raise ValueError(f"a document must have 'text'; found {', '.join(map(repr, row)) or '{}'}")
    title, text = row.get("title"), row[name]
    if not isinstance(text, str | None) or not isinstance(title, str | None):
        raise ValueError("'title' and 'text' must be text")
    title, text = _whole(title or ""), _whole(text or "")
    first, newline, rest = text.partition("\n")
    if name != "text" and not title and newline and rest.strip():
        title, text = first.strip().strip('"'), rest
    return title.strip(), text


def _rows(source: Path) -> Iterator[tuple[str, object]]:
    """Yield where each row of a file or folder stands, and the row."""
    suffix = (source.with_suffix("") if source.suffix == ".gz" else source).suffix.lower()
    if source.is_dir():
        yield from _text_rows(source)
    elif suffix in _TEXT_FILES:
        yield "the file", _text_row(source, source.name)
    elif suffix == ".json":
        yield from _listed(source)
    elif suffix in (".jsonl", ".parquet"):
        yield from placed_rows(source)
    else:
        raise SettingsError(
            f"{source} has ending {source.suffix!r}. Documents come in folders of text and in "
            f"{', '.join(_ROW_FILES + _TEXT_FILES)}."
        )


def _listed(source: Path) -> Iterator[tuple[str, object]]:
    try:
        whole = json.loads(_read(source))
    except ValueError as error:
        raise DataError(f"{source} is not JSON ({error}). Write it again.") from error
    rows = whole.get("docs") if isinstance(whole, Mapping) else whole
    if not isinstance(rows, list):
        raise DataError(f"{source} must be a list of documents, or have one under 'docs'.")
    for number, row in enumerate(rows, 1):
        yield f"document {number}", row


def _text_rows(folder: Path) -> Iterator[tuple[str, object]]:
    files = sorted(f for f in folder.rglob("*") if f.suffix.lower() in (*_TEXT_FILES, *_ROW_FILES))
    for file in files:
        if file.suffix.lower() in _TEXT_FILES:
            yield file.name, _text_row(file, file.relative_to(folder).as_posix())
        else:
            yield from _rows(file)


def _text_row(file: Path, name: str) -> dict[str, str]:
    text = _read(file)
    heading = next((line for line in text.split("\n") if line.startswith("# ")), "")
    return {"id": name, "title": heading[2:].strip() or file.stem, "text": text}


def _add_graphrag(folder: Path, shelf: _Shelf) -> None:
    """Add graphrag's text units as documents, and what it read out of each."""
    titles: dict[str, str] = {}
    if (folder / "documents.parquet").is_file():
        titles = {
            row["id"]: row.get("title") or "" for row in parquet_rows(folder / "documents.parquet")
        }
    entities: dict[str, list[str]] = defaultdict(list)
    triples: dict[str, list[tuple[str, str, str]]] = defaultdict(list)
    kinds: dict[str, str] = {}
    for row in parquet_rows(folder / _GRAPHRAG[1]):
        kinds[tidy(row["title"])] = str(row.get("type") or "").casefold()
        for unit in row.get("text_unit_ids") or ():
            entities[unit].append(row["title"])
    for row in parquet_rows(folder / _GRAPHRAG[2]):
        relation = tidy((row.get("description") or _RELATED)[:_MAX_RELATION]) or _RELATED
        for unit in row.get("text_unit_ids") or ():
            triples[unit].append((row["source"], relation, row["target"]))
    for row in parquet_rows(folder / _GRAPHRAG[0]):
        owners = [row["document_id"]] if row.get("document_id") else row.get("document_ids") or []
        title = titles.get(owners[0], "") if owners else ""
        unit = row["id"]
        if shelf.add({"id": unit, "title": title, "text": row["text"]}) is None:
            continue
        names = [name for triple in triples[unit] for name in (triple[0], triple[2])]
        known = {n: kinds[n] for n in map(tidy, [*entities[unit], *names]) if kinds.get(n)}
        shelf.read(unit, entities[unit], triples[unit], known)


def _read(path: Path) -> str:
    with opened(path) as stream:
        raw = stream.read()
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(f"{path} is not UTF-8 ({error}). Convert it.") from error


def _packed(text: str, max_words: int) -> Iterator[str]:
    held: list[str] = []
    num_words = 0
    for paragraph in text.split("\n\n"):
        words = paragraph.split()
        whole = len(words) <= max_words
        parts = (
            [paragraph]
            if whole
            else [" ".join(words[at : at + max_words]) for at in range(0, len(words), max_words)]
        )
        for part in parts:
            size = len(part.split())
            if held and num_words + size > max_words:
                yield "\n\n".join(held)
                held, num_words = [], 0
            if size:
                held.append(part)
                num_words += size
    if held:
        yield "\n\n".join(held)


def _whole(text: str) -> str:
    """Return the text with half characters, which UTF-8 cannot hold, replaced."""
    return text.encode("utf-8", "replace").decode()
