"""What a document graph holds, and the folder that keeps it: written whole or not at all.

The folder has a manifest, JSON lines for what people read (documents, extractions, entities) and
one array a file for the rest, which is mapped and not read when the folder is opened.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from hopling.graphs.base import Document
from hopling.graphs.entities import Entity, Facts
from hopling.graphs.layout import own_manifest, refuse_cut, replaced, write_arrays
from hopling.graphs.openie import Extraction, fingerprint, from_row, to_row
from hopling.graphs.ppr import Adjacency
from hopling.graphs.vectors import Vectors, Words
from hopling.settings import setting

FORMAT = "hopling document graph"
VERSION = 1
DOCUMENTS = "documents.jsonl"
EXTRACTIONS = "extractions.jsonl"
ENTITIES = "entities.jsonl"
RELATIONS = "relations.jsonl"
VOCABULARIES = "vocabularies.jsonl"
WORDS = "words"  # the name of the embedder that is none
AGAIN = "Build it again: hopling graph build CORPUS --kind documents --out FOLDER."


@dataclass(frozen=True)
class Linking:
    """Which entities are joined as synonyms."""

    synonymy: float = setting(0.8, "code HippoRAG 2", "Cosine above which two entities are joined.")
    max_synonyms: int = setting(100, "code HippoRAG 2", "Synonyms that an entity names at most.")
    min_characters: int = setting(3, "code HippoRAG 2", "Letters and digits of a synonym.")


@dataclass(frozen=True)
class Content:
    """All that a document graph holds; nodes are the documents and then the entities.

    `synonyms` are rows of two entities, with `cosines` beside them. `entity_rows` are the vectors
    of the entities, where an embedder made them.
    """

    documents: tuple[Document, ...]
    extractions: tuple[Extraction, ...]
    extractor: str
    aliases: Mapping[str, str]
    linking: Linking
    embedder: str
    dimension: int
    facts: Facts
    synonyms: np.ndarray
    cosines: np.ndarray
    adjacency: Adjacency
    document_index: Words | Vectors
    triple_index: Words | Vectors
    entity_rows: np.ndarray | None


def save(content: Content, folder: Path, statistics: Mapping[str, Any]) -> None:
    """Write the folder beside its place and put it there when it is whole."""
    arrays, vocabularies = _arrays(content)
    rows = zip(content.documents, content.extractions, strict=True)
    texts: dict[str, Iterable[Any]] = {
        DOCUMENTS: (document._asdict() for document in content.documents),
        EXTRACTIONS: (to_row(one, fingerprint(d, content.extractor)) for d, one in rows),
        ENTITIES: map(asdict, content.facts.entities),
        RELATIONS: content.facts.relations,
        VOCABULARIES: [vocabularies],
    }
    manifest = {
        "format": FORMAT,
        "version": VERSION,
        "embedder": content.embedder,
        "dimension": content.dimension,
        "extractor": content.extractor,
        "linking": asdict(content.linking),
        "aliases": dict(content.aliases),
        "statistics": dict(statistics),
    }
    with replaced(folder) as fresh:
        sizes = {name: _write_lines(fresh / name, lines) for name, lines in texts.items()}
        write_arrays(fresh, arrays, {**manifest, "texts": sizes})


def load(folder: Path) -> Content:
    """Return what a folder holds.

    Raises SettingsError for a folder that is not a whole document graph of this version.
    """
    manifest = read_manifest(folder)
    arrays = {
        name: np.load(folder / f"{name}.npy", mmap_mode="r", allow_pickle=False).view(np.ndarray)
        for name in manifest["arrays"]
    }
    (vocabularies,) = _read_lines(folder / VOCABULARIES)
    entities = tuple(
        Entity(row["id"], row["kind"], tuple((form, count) for form, count in row["aliases"]))
        for row in _read_lines(folder / ENTITIES)
    )
    documents = tuple(Document(**row) for row in _read_lines(folder / DOCUMENTS))
    facts = Facts(
        entities,
        arrays["mentions"],
        arrays["triples"],
        tuple(_read_lines(folder / RELATIONS)),
        arrays["stated"],
    )
    sizes = {"document": len(documents), "triple": len(facts.triples)}
    indexes = {
        name: _index(name, arrays, vocabularies.get(name), size) for name, size in sizes.items()
    }
    return Content(
        documents,
        tuple(map(from_row, _read_lines(folder / EXTRACTIONS))),
        manifest["extractor"],
        manifest["aliases"],
        Linking(**manifest["linking"]),
        manifest["embedder"],
        manifest["dimension"],
        facts,
        arrays["synonyms"],
        arrays["cosines"],
        Adjacency(**{field.name: arrays[f"graph_{field.name}"] for field in fields(Adjacency)}),
        indexes["document"],
        indexes["triple"],
        arrays.get("entity_rows"),
    )


def read_manifest(folder: Path) -> dict[str, Any]:
    """Return the manifest of a whole document graph of this version.

    Raises SettingsError for any other folder.
    """
    manifest = own_manifest(folder, FORMAT, version=VERSION, other="no document graph", again=AGAIN)
    sizes = {f"{name}.npy": file["bytes"] for name, file in manifest["arrays"].items()}
    for name, size in {**manifest["texts"], **sizes}.items():
        refuse_cut(folder / name, size, again=AGAIN)
    return manifest


def _arrays(content: Content) -> tuple[dict[str, np.ndarray], dict[str, list[str]]]:
    """Return every array by its file's name, and the words of the indexes that are of words."""
    arrays = {
        "mentions": content.facts.mentions,
        "triples": content.facts.triples,
        "stated": content.facts.stated,
        "synonyms": content.synonyms,
        "cosines": content.cosines,
        **{f"graph_{name}": array for name, array in _parts(content.adjacency).items()},
    }
    if content.entity_rows is not None:
        arrays["entity_rows"] = content.entity_rows
    vocabularies = {}
    for name in ("document", "triple"):
        index = getattr(content, f"{name}_index")
        parts = _parts(index)
        if isinstance(index, Words):
            known = parts.pop("vocabulary")
            vocabularies[name] = sorted(known, key=known.__getitem__)
            parts.pop("num_texts")
        arrays |= {f"{name}_{part}": array for part, array in parts.items()}
    return arrays, vocabularies


def _parts(value: Adjacency | Words | Vectors) -> dict[str, Any]:
    return {field.name: getattr(value, field.name) for field in fields(value)}


def _index(
    name: str, arrays: Mapping[str, np.ndarray], vocabulary: list[str] | None, size: int
) -> Words | Vectors:
    if vocabulary is None:
        return Vectors(arrays[f"{name}_rows"])
    return Words(
        {word: place for place, word in enumerate(vocabulary)},
        arrays[f"{name}_starts"],
        arrays[f"{name}_texts"],
        arrays[f"{name}_values"],
        size,
    )


def _write_lines(path: Path, values: Iterable[Any]) -> int:
    """Write a JSON value a line and return how many bytes that took."""
    with path.open("wb") as file:
        for value in values:
            line = json.dumps(value, ensure_ascii=False) + "\n"
            file.write(line.encode("utf-8", "backslashreplace"))
        return file.tell()


def _read_lines(path: Path) -> Iterator[Any]:
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)
