"""An entity-document graph that is searched in words.

Documents, the entities in them and the triples between these. It does not extract triples; see
`openie`.
"""

from collections import defaultdict
from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

from hopling.errors import SettingsError
from hopling.graphs.base import Document


class Triple(NamedTuple):
    """A fact that a document states, in words."""

    head: str
    relation: str
    tail: str


class Extraction(NamedTuple):
    """What was read out of one document; entities of triples need not be listed again."""

    document_id: str
    entities: tuple[str, ...] = ()
    triples: tuple[Triple, ...] = ()


class DocumentGraph:
    """Documents and the entities that join them."""

    def __init__(self, documents: Sequence[Document], extractions: Sequence[Extraction]) -> None:
        if not documents:
            raise SettingsError("There are no documents, so nothing could be found.")
        self.documents = tuple(documents)
        self._places = {document.id: place for place, document in enumerate(documents)}
        self._extractions = {extraction.document_id: extraction for extraction in extractions}

    @classmethod
    def build(
        cls, documents: Sequence[Document], extractions: Sequence[Extraction] = ()
    ) -> "DocumentGraph":
        """Return the graph of documents and of what was read out of them."""
        return cls(documents, extractions)

    def document(self, document_id: str) -> Document:
        """Return a document by its id."""
        return self.documents[self._places[document_id]]

    def triples_of(self, document_id: str) -> list[Triple]:
        """Return the triples that a document states, in its order."""
        found = self._extractions.get(document_id)
        return list(found.triples) if found else []

    def entities_of(self, document_id: str) -> list[str]:
        """Return the entities of a document, in the order in which it names them."""
        found = self._extractions.get(document_id)
        if found is None:
            return []
        ends = [end for triple in found.triples for end in (triple.head, triple.tail)]
        return list(dict.fromkeys([*found.entities, *ends]))

    def documents_of(self, entity: str) -> list[str]:
        """Return the ids of the documents that name an entity, in the corpus's order."""
        return list(self._documents_of.get(entity, ()))

    def related(self, entity: str) -> list[str]:
        """Return the entities that a relation or a synonymy edge joins to an entity, sorted."""
        return sorted(self._related.get(entity, ()))

    def retrieve(self, queries: Sequence[str]) -> list[list[Document]]:
        """Return, for each query, the documents found, best first, each of them once."""
        import bm25s

        found = []
        for query in queries:
            tokens = bm25s.tokenize([query], show_progress=False, return_ids=False)
            scores = self._bm25.get_scores(tokens[0])
            best = sorted(range(len(self.documents)), key=lambda place: (-scores[place], place))
            found.append([self.documents[place] for place in best[:5] if scores[place] > 0])
        return found

    @cached_property
    def _bm25(self):
        import bm25s

        index = bm25s.BM25()
        texts = [f"{document.title}\n{document.text}" for document in self.documents]
        index.index(bm25s.tokenize(texts, show_progress=False), show_progress=False)
        return index

    @cached_property
    def _documents_of(self) -> dict[str, list[str]]:
        found = defaultdict(list)
        for document in self.documents:
            for entity in self.entities_of(document.id):
                found[entity].append(document.id)
        return dict(found)

    @cached_property
    def _related(self) -> dict[str, set[str]]:
        found = defaultdict(set)
        for document in self.documents:
            for head, _, tail in self.triples_of(document.id):
                if head != tail:
                    found[head].add(tail)
                    found[tail].add(head)
        return dict(found)
