"""Nearest texts by words and by vectors, and pairs that are alike."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from hopling.errors import SettingsError
from hopling.graphs.vectors import Vectors, Words, alike, embedded, letters, words


class Fixed:
    """An embedder that returns what it was told to."""

    def __init__(self, rows: object, dimension: int = 2) -> None:
        self.name, self.dimension, self.rows = "fixed", dimension, rows

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        """Return the rows."""
        return np.asarray(self.rows, float)


def test_words_score_as_bm25_does() -> None:
    """BM25 as Lucene has it, by hand: k1 1.5, b .75, idf ln(1 + (N - n + .5) / (n + .5))."""
    index = Words.of(["red fish", "blue fish fish", "bird"])
    (found,) = index.nearest([words("red fish")], 3)
    lengths, average = (2, 3, 1), 2.0

    def score(frequency: int, length: int, holders: int) -> float:
        idf = np.log(1 + (3 - holders + 0.5) / (holders + 0.5))
        return idf * frequency / (frequency + 1.5 * (0.25 + 0.75 * length / average))

    expected = [score(1, lengths[0], 1) + score(1, lengths[0], 2), score(2, lengths[1], 2)]
    assert found.nodes.tolist() == [0, 1]
    assert found.values == pytest.approx(expected, rel=1e-5)


def test_words_are_numbered_alike_in_every_process() -> None:
    """Issue 5, "Bad input": a killed build resumes to the same files; hashes of words differ."""
    texts = [f"{chr(122 - n)}{n} fish" for n in range(26)]
    index = Words.of([*texts, ""])
    assert list(index.vocabulary) == sorted({word for text in texts for word in text.split()})
    (found,) = index.nearest([["z0"]], 3)
    assert found.nodes.tolist() == [0]


def test_words_are_folded_alike_in_query_and_text() -> None:
    """BUGS B19: case, accents and Unicode forms do not keep a query from its text."""
    index = Words.of(["Zo\u00eb of S\u00e3o Lu\u00eds", "\u6771\u4eac\u90fd", "nothing else"])
    for query in ("zoe", "ZOE\u0308", "sao"):
        assert index.nearest([words(query)], 1)[0].nodes.tolist() == [0]
    assert index.nearest([words("\u4eac\u90fd")], 1)[0].nodes.tolist() == [1]


def test_an_index_of_no_words_finds_nothing() -> None:
    """BUGS B14."""
    for texts in ([], ["", "..."], ["the of"]):
        index = Words.of(texts)
        assert [len(found.nodes) for found in index.nearest([["cat"], []], 3)] == [0, 0]


@settings(deadline=None, max_examples=40)
@given(
    arrays(np.float32, (7, 3), elements=st.floats(-1, 1, width=16)),
    arrays(np.float32, (3, 3), elements=st.floats(-1, 1, width=16)),
    st.integers(0, 9),
)
def test_vectors_are_ranked_by_cosine_and_only_above_zero(
    rows: np.ndarray, queries: np.ndarray, k: int
) -> None:
    """GTA-RAG Eq. 6: beside a plain sort."""
    found = Vectors(rows).nearest(queries, k)
    for scores, query in zip(found, queries, strict=True):
        cosines = rows @ query
        best = [n for n in np.lexsort((np.arange(7), -cosines)) if cosines[n] > 0][:k]
        assert scores.values == pytest.approx(cosines[best], abs=1e-5)
        assert set(scores.nodes.tolist()) <= set(np.flatnonzero(cosines > 0).tolist())


def test_blank_texts_get_no_vector_and_the_others_stay_in_place() -> None:
    """BUGS B18: ["alpha", "", "beta"] with an embedder that is asked for two texts."""
    rows = embedded(Fixed([[3, 4], [0, 2]]), ["alpha", "", "beta"])
    assert rows == pytest.approx(np.asarray([[0.6, 0.8], [0, 0], [0, 1]]))
    assert embedded(Fixed([]), ["", " "]).shape == (2, 2)


@pytest.mark.parametrize(
    ("rows", "rule"),
    [
        ([[1, 2]], r"shape \(1, 2\) for 2 texts"),
        ([[1, 2, 3], [1, 2, 3]], r"must be \(2, 2\)"),
        ([[1, 2], [1, float("nan")]], "no number"),
    ],
)
def test_vectors_that_do_not_fit_their_texts_are_refused(rows: object, rule: str) -> None:
    """BUGS B18: count and dimension are checked, with an explanation."""
    with pytest.raises(SettingsError, match=rule):
        embedded(Fixed(rows), ["alpha", "beta"])


def test_pairs_above_the_threshold_are_named_once() -> None:
    """GTA-RAG 3.2: cosine > delta, dense and sparse alike."""
    dense = np.asarray([[1, 0], [0.8, 0.6], [0, 1], [1, 0]], np.float32)
    firsts, seconds, cosines = alike(dense, threshold=0.7, limit=100)
    assert [*zip(firsts, seconds, strict=True)] == [(0, 1), (0, 3), (1, 3)]
    assert cosines == pytest.approx([0.8, 1.0, 0.8])
    names = letters(["anna karenina", "anna karenin", "war and peace"])
    firsts, seconds, cosines = alike(names, threshold=0.7, limit=100)
    assert [*zip(firsts, seconds, strict=True)] == [(0, 1)]
    assert 0.7 < cosines[0] < 1


def test_a_name_keeps_its_nearest_when_many_are_alike() -> None:
    """HippoRAG 2: at most so many neighbors; a pair stays if one of the two names it."""
    angles = np.asarray([0.0, 0.1, 0.2, 0.3])
    rows = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    firsts, seconds, _ = alike(rows, threshold=0.5, limit=1)
    assert [*zip(firsts, seconds, strict=True)] == [(0, 1), (1, 2), (2, 3)]
    for empty in (np.zeros((0, 2)), letters([])):
        assert [len(part) for part in alike(empty, threshold=0.5, limit=1)] == [0, 0, 0]
