"""Makes a document graph of documents and of what was read out of them.

Document-entity edges weigh 1, relation edges the number of triples that join the two entities,
synonymy edges their cosine. [GTA-RAG Eq. 4, Eq. 5, 3.2]
"""

import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from hopling.errors import SettingsError
from hopling.graphs.base import Document
from hopling.graphs.document_store import WORDS, Content, Linking
from hopling.graphs.entities import Facts, homonyms, key_of, resolve
from hopling.graphs.openie import Extraction, to_row
from hopling.graphs.ppr import Adjacency
from hopling.graphs.vectors import Embedder, Vectors, Words, alike, embedded, letters


@dataclass(frozen=True)
class Statistics:
    """What a document graph is made of, counted as in Table 5, and what to look at.

    Edges are counted once, whichever way they are walked. `merged` entities have several forms;
    `homonyms` share their name with one of another kind. `without_entities` are documents that only
    their text can find. `graph_hash` depends on the content alone. [GTA-RAG Table 5]
    """

    documents: int
    entities: int
    document_entity_edges: int
    relation_edges: int
    synonymy_edges: int
    average_document_degree: float
    triples: int
    failed: int
    without_entities: int
    merged: int
    homonyms: int
    graph_hash: str


def assemble(
    documents: Sequence[Document],
    extractions: Sequence[Extraction],
    *,
    embedder: Embedder | None,
    linking: Linking,
    aliases: Mapping[str, str],
    earlier: Content | None = None,
) -> Content:
    """Return the content of the graph; what `earlier` embedded is not embedded again.

    Raises SettingsError without documents, and when two documents have one id.
    """
    ordered = _matched(documents, extractions)
    facts = resolve(ordered, aliases)
    names = [entity.name for entity in facts.entities]
    texts = [passage(document) for document in documents]
    told = sentences(facts)
    document_index: Words | Vectors
    triple_index: Words | Vectors
    if embedder is None:
        document_index, triple_index = Words.of(texts), Words.of(told)
        entity_rows = None
    else:
        before = _Embedded(earlier)
        document_index = Vectors(before.rows(embedder, "document", texts))
        triple_index = Vectors(before.rows(embedder, "triple", told))
        entity_rows = before.rows(embedder, "entity", names)
    synonyms, cosines = _synonyms(names, entity_rows, linking)
    return Content(
        tuple(documents),
        tuple(ordered),
        "",
        dict(aliases),
        linking,
        embedder.name if embedder else WORDS,
        embedder.dimension if embedder else 0,
        facts,
        synonyms,
        cosines,
        _joined(len(documents), facts, synonyms, cosines),
        document_index,
        triple_index,
        entity_rows,
    )


def passage(document: Document) -> str:
    """Return what is embedded of a document."""
    return f"{document.title}\n{document.text}"


def sentences(facts: Facts) -> list[str]:
    """Return what is embedded of each triple."""
    names = [entity.name for entity in facts.entities]
    rows = zip(facts.triples.tolist(), facts.relations, strict=True)
    return [f"{names[head]} {relation} {names[tail]}" for (head, tail), relation in rows]


def relations(facts: Facts) -> tuple[np.ndarray, np.ndarray]:
    """Return the pairs of entities that triples join, smaller first, and how many do."""
    pairs = np.sort(facts.triples[facts.triples[:, 0] != facts.triples[:, 1]], axis=1)
    pairs, counts = np.unique(pairs, axis=0, return_counts=True)
    return pairs.reshape(-1, 2), counts


def statistics(content: Content) -> Statistics:
    """Return the counts of a graph."""
    facts, num_documents = content.facts, len(content.documents)
    mentioned = len(np.unique(facts.mentions[:, 0])) if len(facts.mentions) else 0
    return Statistics(
        documents=num_documents,
        entities=len(facts.entities),
        document_entity_edges=len(facts.mentions),
        relation_edges=len(relations(facts)[0]),
        synonymy_edges=len(content.synonyms),
        average_document_degree=len(facts.mentions) / num_documents,
        triples=len(facts.triples),
        failed=sum(one.status == "failed" for one in content.extractions),
        without_entities=num_documents - mentioned,
        merged=sum(len(entity.aliases) > 1 for entity in facts.entities),
        homonyms=sum(map(len, homonyms(facts.entities))),
        graph_hash=_hash(content),
    )


def _matched(documents: Sequence[Document], extractions: Sequence[Extraction]) -> list[Extraction]:
    """Return one extraction for each document, in their order."""
    if not documents:
        raise SettingsError(
            "There are no documents, so there is nothing to search. Name a file that has some."
        )
    counts = Counter(document.id for document in documents)
    if twice := [id for id, count in counts.items() if count > 1]:
        raise SettingsError(f"{len(twice)} ids name several documents, such as {twice[0]!r}.")
    known = {extraction.document_id: extraction for extraction in extractions}
    if lost := [id for id in known if id not in counts]:
        raise SettingsError(
            f"There is an extraction for {lost[0]!r}, but no such document among {len(counts)}."
        )
    return [known.get(document.id, Extraction(document.id)) for document in documents]


def _synonyms(
    names: Sequence[str], rows: np.ndarray | None, linking: Linking
) -> tuple[np.ndarray, np.ndarray]:
    """Return pairs of entities that are written or meant alike, and their cosines."""
    told = [place for place, name in enumerate(names) if _long(name, linking.min_characters)]
    places = np.asarray(told, np.int64)
    vectors = letters([key_of(names[place]) for place in told]) if rows is None else rows[places]
    firsts, seconds, cosines = alike(
        vectors, threshold=linking.synonymy, limit=linking.max_synonyms
    )
    pairs = np.stack([places[firsts], places[seconds]], axis=1).astype(np.int32)
    return pairs.reshape(-1, 2), cosines


def _joined(
    num_documents: int, facts: Facts, synonyms: np.ndarray, cosines: np.ndarray
) -> Adjacency:
    pairs, counts = relations(facts)
    edges = np.concatenate(
        [
            facts.mentions + np.asarray([0, num_documents], np.int32),
            pairs + num_documents,
            synonyms + num_documents,
        ]
    )
    weights = np.concatenate([np.ones(len(facts.mentions)), counts, cosines])
    num_nodes = num_documents + len(facts.entities)
    return Adjacency.from_edges(num_nodes, edges[:, 0], edges[:, 1], weights)


class _Embedded:
    """What an earlier graph embedded, by kind and text."""

    def __init__(self, earlier: Content | None) -> None:
        self._known: dict[tuple[str, str], np.ndarray] = {}
        if earlier is None or earlier.entity_rows is None:
            return
        texts = {
            "document": [passage(document) for document in earlier.documents],
            "triple": sentences(earlier.facts),
            "entity": [entity.name for entity in earlier.facts.entities],
        }
        rows = {
            "document": getattr(earlier.document_index, "rows", ()),
            "triple": getattr(earlier.triple_index, "rows", ()),
            "entity": earlier.entity_rows,
        }
        for kind, made in texts.items():
            self._known |= {(kind, text): row for text, row in zip(made, rows[kind], strict=True)}

    def rows(self, embedder: Embedder, kind: str, texts: Sequence[str]) -> np.ndarray:
        """Return the texts' vectors; only those of unknown texts are made."""
        missing = list(dict.fromkeys(text for text in texts if (kind, text) not in self._known))
        made = embedded(embedder, missing)
        self._known |= {(kind, text): row for text, row in zip(missing, made, strict=True)}
        found = [self._known[kind, text] for text in texts]
        return np.stack(found) if found else np.zeros((0, embedder.dimension), np.float32)


def _long(name: str, min_characters: int) -> bool:
    return sum(character.isalnum() for character in name) >= min_characters


def _hash(content: Content) -> str:
    parts = sorted(json.dumps(list(document)) for document in content.documents)
    parts += sorted(json.dumps(to_row(one), sort_keys=True) for one in content.extractions)
    made = [content.embedder, content.dimension, vars(content.linking), dict(content.aliases)]
    parts.append(json.dumps(made, sort_keys=True))
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]
