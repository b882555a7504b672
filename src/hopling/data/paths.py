"""Paths of documents that entities join: what may become a question of several hops.

[GTA-RAG 3.4, Eq. 13] A path is drawn by a random walk over documents and entities, in which no node
comes twice. Every path has a number of its own and depends on the seed and that number only.
"""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random

from hopling.errors import SettingsError
from hopling.graphs.documents import DocumentGraph

MAX_LINK = 2  # entity nodes between two neighbors [GTA-RAG 3.4]
_TRIES = 8  # [ours] steps from one document before the walk gives up


@dataclass(frozen=True)
class Path:
    """Documents, and between each two the one or two entities that join them."""

    documents: tuple[str, ...]
    links: tuple[tuple[str, ...], ...]

    @property
    def id(self) -> str:
        """What no two paths share that are over different documents or entities."""
        nodes = "\x00".join([*self.documents, *("\x01".join(link) for link in self.links)])
        return hashlib.sha256(nodes.encode()).hexdigest()[:12]


def sample_path(graph: DocumentGraph, hops: int, *, rng: Random) -> Path | None:
    """Return a path of so many documents, None where the walk came to a dead end.

    The first document is drawn evenly, each step evenly among a node's new neighbors.
    Raises SettingsError for a path of fewer than two documents.
    """
    if hops < 2:
        raise SettingsError(f"hops is {hops}; a path joins at least 2 documents.")
    documents = [rng.choice(graph.documents).id]
    links: list[tuple[str, ...]] = []
    while len(documents) < hops:
        seen = {entity for link in links for entity in link}
        steps = (_step(graph, documents, seen, rng) for _ in range(_TRIES))
        step = next((found for found in steps if found), None)
        if step is None:
            return None
        links.append(step[0])
        documents.append(step[1])
    return Path(tuple(documents), tuple(links))


def sample_paths(
    graph: DocumentGraph, hops: Sequence[int], *, num: int, seed: int
) -> Iterator[Path | None]:
    """Yield what `num` walks give, with these numbers of hops in turn.

    A walk that comes to a dead end, or over documents that an earlier one joined, gives None.
    """
    if not hops:
        raise SettingsError("hops is empty; name at least one number of documents, such as 2.")
    seen: set[frozenset[str]] = set()
    for number in range(num):
        rng = Random(f"{seed}/{number}")
        path = sample_path(graph, hops[number % len(hops)], rng=rng)
        documents = frozenset(path.documents) if path else frozenset[str]()
        yield path if documents not in seen else None
        seen.add(documents)


def distractors(graph: DocumentGraph, path: Path, *, num: int, seed: int) -> list[str]:
    """Return up to `num` other documents: neighbors of the path's first, then any. [ours]

    A document that shares an entity with the path is one that a reader may mistake for it.
    """
    rng = Random(f"{seed}/{path.id}")
    entities = [entity for document in path.documents for entity in graph.entities_of(document)]
    near = {document for entity in entities for document in graph.documents_of(entity)}
    near -= set(path.documents)
    chosen = rng.sample(sorted(near), min(num, len(near)))
    others = [d.id for d in graph.documents if d.id not in near and d.id not in path.documents]
    return chosen + rng.sample(others, min(num - len(chosen), len(others)))


def _step(
    graph: DocumentGraph, documents: Sequence[str], seen: set[str], rng: Random
) -> tuple[tuple[str, ...], str] | None:
    """Return the entities that lead to a new document, and that, None at a dead end."""
    link: list[str] = []
    choices = _new(graph.entities_of(documents[-1]), seen)
    while choices and len(link) < MAX_LINK:
        link.append(rng.choice(choices))
        found = _new(graph.documents_of(link[-1]), documents)
        choices = _new(graph.related(link[-1]), [*seen, *link])
        last = len(link) == MAX_LINK
        # the walk goes evenly to any neighbor: documents, or entities while one may follow
        num_entities = 0 if last else len(choices)
        if found and rng.randrange(len(found) + num_entities) < len(found):
            return tuple(link), rng.choice(found)
    return None


def _new(nodes: Sequence[str], seen: Sequence[str] | set[str]) -> list[str]:
    return [node for node in nodes if node not in seen]
