"""An entity-document graph that is searched in words [GTA-RAG 3.2].

    graph = DocumentGraph.build(documents, extractions)
    graph.retrieve(["Who directed Kismet?", "Oslo"])

It extracts nothing itself; see `openie`. A graph does not change: `add` and `remove` return
another one, and make again only what differs.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from types import MappingProxyType

import numpy as np

from hopling.errors import SettingsError, nearest
from hopling.graphs.base import Document
from hopling.graphs.document_build import Statistics, assemble, statistics
from hopling.graphs.document_store import WORDS, Content, Linking, load, save
from hopling.graphs.entities import Entity, key_of, triples_of
from hopling.graphs.openie import Extraction, Triple
from hopling.graphs.ppr import Scores, Seeds, rank
from hopling.graphs.vectors import Embedder, embedded, words
from hopling.settings import setting

_FUSION = 60  # of reciprocal ranks [RouteRAG 2025]

__all__ = ["DocumentGraph", "Extraction", "Linking", "Retrieval", "Triple"]


@dataclass(frozen=True)
class Retrieval:
    """What one search returns; without `num_graph` or `num_passages`, that part is switched off."""

    num_graph: int = setting(3, "code RouteRAG", "Documents that the graph finds; K_g.")
    num_passages: int = setting(3, "code RouteRAG", "Documents found by their text; K_d.")
    num_triples: int = setting(5, "code HippoRAG 2", "Triples nearest to the query; walks start.")
    restart: float = setting(0.5, "code HippoRAG 2", "Probability that a walk starts again.")
    rarity: float = setting(
        1.0, "code HippoRAG 2", "Power of 1 / documents of an entity in its weight; 0 in Eq. 6."
    )

    def __post_init__(self) -> None:
        if min(self.num_graph, self.num_passages, self.num_triples) < 0:
            raise SettingsError(f"{self} has a number below 0; 0 switches a part off.")
        if not self.num_graph and not self.num_passages:
            raise SettingsError("num_graph and num_passages are 0, so nothing would be found.")


@dataclass(frozen=True, eq=False)
class DocumentGraph:
    """Documents, and the entities and triples that join them."""

    content: Content
    embedder: Embedder | None = None
    retrieval: Retrieval = Retrieval()

    @classmethod
    def build(
        cls,
        documents: Sequence[Document],
        extractions: Sequence[Extraction] = (),
        *,
        embedder: Embedder | None = None,
        linking: Linking = Linking(),  # noqa: B008
        aliases: Mapping[str, str] = MappingProxyType({}),
        extractor: str = "",
    ) -> "DocumentGraph":
        """Return the graph of documents and of what `extractor` read out of them.

        Without an embedder, queries, triples and passages are compared by their words, and names
        by their letters. `aliases` says what a name, written exactly, shall mean.
        Raises SettingsError without documents and when an id stands for two of them.
        """
        content = assemble(
            documents, extractions, embedder=embedder, linking=linking, aliases=aliases
        )
        return cls(replace(content, extractor=extractor), embedder)

    @classmethod
    def open(
        cls,
        folder: str | Path,
        *,
        embedder: Embedder | None = None,
        retrieval: Retrieval = Retrieval(),
    ) -> "DocumentGraph":
        """Return the graph of a folder, with the embedder that it was built with.

        Raises SettingsError for another embedder and for a folder that is no whole graph.
        """
        content = load(Path(folder))
        given, size = (embedder.name, embedder.dimension) if embedder else (WORDS, 0)
        if (given, size) != (content.embedder, content.dimension):
            raise SettingsError(
                f"{folder} was built with embedder {content.embedder!r} of dimension "
                f"{content.dimension}, not with {given!r} of {size}. Open it with that one, or "
                "build it again."
            )
        return cls(content, embedder, retrieval)

    def save(self, folder: str | Path) -> None:
        """Write the graph to a folder; a graph that stood there is replaced when all is written."""
        save(self.content, Path(folder), vars(self.statistics))

    def add(
        self, documents: Sequence[Document], extractions: Sequence[Extraction] = ()
    ) -> "DocumentGraph":
        """Return the graph with these documents too; one with a known id takes its place.

        It equals the graph that is built of all of them at once.
        """
        known = {document.id: document for document in self.documents}
        known |= {document.id: document for document in documents}
        read = {extraction.document_id: extraction for extraction in self.content.extractions}
        for document in documents:
            read.pop(document.id, None)
        read |= {extraction.document_id: extraction for extraction in extractions}
        return self._of(list(known.values()), list(read.values()))

    def remove(self, document_ids: Sequence[str]) -> "DocumentGraph":
        """Return the graph without these documents; raises SettingsError for an unknown id."""
        gone = {self._place(document_id) for document_id in document_ids}
        kept = [place for place in range(len(self.documents)) if place not in gone]
        extractions = [self.content.extractions[place] for place in kept]
        return self._of([self.documents[place] for place in kept], extractions)

    @property
    def documents(self) -> tuple[Document, ...]:
        """All documents, in the order in which they were given."""
        return self.content.documents

    @cached_property
    def statistics(self) -> Statistics:
        """How much there is of what."""
        return statistics(self.content)

    def document(self, document_id: str) -> Document:
        """Return a document; raises SettingsError for an unknown id."""
        return self.documents[self._place(document_id)]

    def find(self, name: str) -> list[Entity]:
        """Return the entities that a name may mean, homonyms included.

        Case, accents' form and punctuation do not matter. [BUGS B15, B19]
        """
        places = dict.fromkeys(chain(self._by_key.get(key_of(name), ()), self._exactly(name)))
        return [self.content.facts.entities[place] for place in places]

    def entities_of(self, document_id: str) -> list[str]:
        """Return the ids of a document's entities, in the order in which they were read."""
        place = self._place(document_id)
        ids = self.content.facts.entities
        return [ids[one].id for one in self._entities_by_document.get(place, ())]

    def documents_of(self, entity: str) -> list[str]:
        """Return the ids of the documents that name an entity, in the documents' order.

        Raises SettingsError for an unknown entity.
        """
        places = self._documents_by_entity.get(self._entity(entity), ())
        return [self.documents[place].id for place in places]

    def triples_of(self, document_id: str) -> list[Triple]:
        """Return the triples that a document states, with the ids of their entities."""
        place = self._place(document_id)
        return triples_of(self.content.facts, self._triples_by_document.get(place, ()))

    def related(self, entity: str) -> list[str]:
        """Return the entities that a relation or a synonymy edge joins to an entity, sorted.

        Raises SettingsError for an unknown entity.
        """
        ids, graph = self.content.facts.entities, self.content.adjacency
        first = len(self.documents)
        node = first + self._entity(entity)
        neighbors = graph.neighbors[graph.starts[node] : graph.starts[node + 1]]
        return sorted(ids[one - first].id for one in neighbors if one >= first)

    def retrieve(self, queries: Sequence[str]) -> list[list[Document]]:
        """Return, for each query, what graph and passages find, best first, each document once.

        A query that nothing fits finds nothing. [GTA-RAG Eq. 9]
        """
        asked: Sequence[Sequence[str]] | np.ndarray
        asked = (
            [words(query) for query in queries]
            if self.embedder is None
            else (embedded(self.embedder, queries))
        )
        found = []
        if self.retrieval.num_graph:
            found.append(self._by_graph(asked))
        if self.retrieval.num_passages:
            index = self.content.document_index
            found.append(index.nearest(asked, self.retrieval.num_passages))  # type: ignore[arg-type]
        return [
            [self.documents[place] for place in fused([scores.nodes for scores in lists])]
            for lists in zip(*found, strict=True)
        ]

    def _by_graph(self, asked: Sequence[Sequence[str]] | np.ndarray) -> list[Scores]:
        """Return the documents that walks reach from the triples nearest to each query.

        [GTA-RAG Eq. 6, Eq. 7, Eq. 8]
        """
        near = self.content.triple_index.nearest(asked, self.retrieval.num_triples)  # type: ignore[arg-type]
        num_documents, rarity = len(self.documents), self.retrieval.rarity
        seeds = []
        for scores in near:
            ends = self.content.facts.triples[scores.nodes].ravel()
            weights = np.repeat(scores.values, 2) * self._spread[ends] ** -rarity
            seeds.append(Seeds(ends + num_documents, weights))
        return rank(
            self.content.adjacency,
            seeds,
            self.retrieval.num_graph,
            below=num_documents,
            restart=self.retrieval.restart,
        )

    def _of(
        self, documents: Sequence[Document], extractions: Sequence[Extraction]
    ) -> "DocumentGraph":
        content = assemble(
            documents,
            extractions,
            embedder=self.embedder,
            linking=self.content.linking,
            aliases=self.content.aliases,
            earlier=self.content,
        )
        return replace(self, content=replace(content, extractor=self.content.extractor))

    def _place(self, document_id: str) -> int:
        try:
            return self._places[document_id]
        except KeyError:
            guess = nearest(document_id, self._places)
            raise SettingsError(f"There is no document {document_id!r}.{guess}") from None

    def _entity(self, entity: str) -> int:
        places = self._exactly(entity) or self._by_key.get(key_of(entity), [])
        if len(places) == 1:
            return places[0]
        ids = [self.content.facts.entities[place].id for place in places]
        choice = f" It may mean {', '.join(map(repr, ids))}." if ids else ""
        raise SettingsError(f"There is no entity {entity!r}.{choice}")

    def _exactly(self, name: str) -> list[int]:
        place = self._by_id.get(name)
        return [] if place is None else [place]

    @cached_property
    def _spread(self) -> np.ndarray:
        """How many documents name each entity."""
        mentions = self.content.facts.mentions[:, 1]
        return np.bincount(mentions, minlength=len(self.content.facts.entities)).astype(float)

    @cached_property
    def _places(self) -> dict[str, int]:
        return {document.id: place for place, document in enumerate(self.documents)}

    @cached_property
    def _by_id(self) -> dict[str, int]:
        return {entity.id: place for place, entity in enumerate(self.content.facts.entities)}

    @cached_property
    def _by_key(self) -> dict[str, list[int]]:
        found: dict[str, list[int]] = defaultdict(list)
        for place, entity in enumerate(self.content.facts.entities):
            for key in {key_of(form) for form, _ in entity.aliases}:
                found[key].append(place)
        return dict(found)

    @cached_property
    def _entities_by_document(self) -> dict[int, list[int]]:
        return _grouped(self.content.facts.mentions)

    @cached_property
    def _documents_by_entity(self) -> dict[int, list[int]]:
        return _grouped(self.content.facts.mentions[:, ::-1])

    @cached_property
    def _triples_by_document(self) -> dict[int, list[int]]:
        return _grouped(self.content.facts.stated)


def fused(rankings: Sequence[Sequence[int]]) -> list[int]:
    """Return the items of several rankings, best first, each once, by their reciprocal ranks.

    >>> fused([[7, 3], [5, 7]])
    [7, 5, 3]
    """
    scores: dict[int, float] = defaultdict(float)
    for ranking in rankings:
        for place, item in enumerate(ranking, 1):
            scores[int(item)] += 1 / (_FUSION + place)
    return sorted(scores, key=lambda item: -scores[item])


def _grouped(rows: np.ndarray) -> dict[int, list[int]]:
    """Return the second numbers of rows by their first, in the rows' order."""
    found: dict[int, list[int]] = defaultdict(list)
    for first, second in rows.tolist():
        found[first].append(second)
    return dict(found)
