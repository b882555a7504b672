from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopling.data.paths import Path, distractors, sample_path, sample_paths
from hopling.errors import SettingsError
from hopling.graphs.base import Document
from hopling.graphs.documents import DocumentGraph, Extraction, Triple
from small_corpus import corpus

GRAPH = corpus()


def _joined(graph: DocumentGraph, path: Path) -> bool:
    """Return whether each link leads from its document to the next one."""
    for place, link in enumerate(path.links):
        here, there = path.documents[place : place + 2]
        starts, ends = link[0] in graph.entities_of(here), link[-1] in graph.entities_of(there)
        between = len(link) == 1 or link[1] in graph.related(link[0])
        if not (starts and ends and between):
            return False
    return True


@given(st.integers(0, 10_000), st.integers(2, 4))
def test_neighbors_are_joined_by_one_or_two_entities_and_no_node_comes_twice(seed: int, hops: int):
    """GTA-RAG 3.4, Eq. 13."""
    path = sample_path(GRAPH, hops, rng=Random(seed))
    if path is not None:
        entities = [entity for link in path.links for entity in link]
        assert len(set(path.documents)) == hops == len(path.links) + 1
        assert len(set(entities)) == len(entities)
        assert all(1 <= len(link) <= 2 for link in path.links)
        assert _joined(GRAPH, path)


def test_no_two_paths_join_the_same_documents():
    """Issue 5, 5: deduplicated, by the set of documents."""
    paths = [path for path in sample_paths(GRAPH, (2, 3), num=200, seed=0) if path]
    assert {len(path.documents) for path in paths} == {2, 3}
    assert len({frozenset(path.documents) for path in paths}) == len(paths)


def test_a_path_depends_on_the_seed_and_its_number_only():
    """Ours: what is drawn later does not depend on how many were drawn at once."""
    first = list(sample_paths(GRAPH, (2,), num=50, seed=1))
    assert list(sample_paths(GRAPH, (2,), num=20, seed=1)) == first[:20]
    assert list(sample_paths(GRAPH, (2,), num=50, seed=2)) != first


def test_documents_without_entities_and_islands_are_dead_ends():
    """BUGS B14."""
    documents = [Document(id, id, "...") for id in "abc"]
    graph = DocumentGraph.build(documents, [Extraction("a", triples=(Triple("A", "is", "B"),))])
    assert list(sample_paths(graph, (2,), num=20, seed=0)) == [None] * 20


def test_distractors_are_other_documents_and_neighbors_come_first():
    """GTA-RAG 3.4; which documents mislead is ours."""
    path = Path(("Kismet", "Ann Lee"), (("Ann Lee",),))
    assert distractors(GRAPH, path, num=1, seed=0) == ["Oslo"]
    assert sorted(distractors(GRAPH, path, num=9, seed=0)) == ["Bo Dale", "Low", "Oslo", "Rome"]
    assert distractors(GRAPH, path, num=3, seed=0) == distractors(GRAPH, path, num=3, seed=0)


def test_a_path_of_one_document_is_refused():
    """Ours."""
    with pytest.raises(SettingsError, match="at least 2"):
        sample_path(GRAPH, 1, rng=Random(0))
    with pytest.raises(SettingsError, match="hops is empty"):
        next(sample_paths(GRAPH, (), num=1, seed=0))
