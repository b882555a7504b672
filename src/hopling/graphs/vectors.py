"""Which texts are nearest to a query: by their words (BM25), or by an embedder's vectors.

Both kinds of index answer many queries in one call. Nothing here loads a model; see `Embedder`.
"""

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import chain, pairwise
from typing import Any, Protocol

import numpy as np

from hopling.errors import SettingsError
from hopling.graphs.ppr import Scores, load_sparse

BLOCK = 64  # queries, or rows of a table of all against all, that are compared at once
_WORD = re.compile(r"\w+")
# scripts without spaces between words: Thai, kana, Han
_UNSPACED = re.compile("[\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff]+")


class Embedder(Protocol):
    """Turns texts into vectors; `name` and `dimension` are kept with what it made."""

    @property
    def name(self) -> str:
        """What tells this embedder from others."""
        ...

    @property
    def dimension(self) -> int:
        """How long a vector is."""
        ...

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        """Return one row for each text, in their order."""
        ...


def embedded(embedder: Embedder, texts: Sequence[str]) -> np.ndarray:
    """Return the texts' vectors with length 1; a text without words gets zeros, near nothing.

    Raises SettingsError when the embedder does not return one row of its dimension for each text,
    or something that is no number. [BUGS B18]
    """
    rows = np.zeros((len(texts), embedder.dimension), np.float32)
    told = [place for place, text in enumerate(texts) if text.strip()]
    if not told:
        return rows
    found = np.asarray(embedder.embed([texts[place] for place in told]), np.float32)
    if found.shape != (len(told), embedder.dimension):
        raise SettingsError(
            f"Embedder {embedder.name!r} returned an array of shape {found.shape} for {len(told)} "
            f"texts; it must be ({len(told)}, {embedder.dimension}), one row for each text."
        )
    if not np.isfinite(found).all():
        raise SettingsError(f"Embedder {embedder.name!r} returned a value that is no number.")
    length = np.linalg.norm(found, axis=1, keepdims=True)
    rows[told] = found / np.where(length > 0, length, 1)
    return rows


def words(text: str) -> list[str]:
    """Return a text's words as they are compared: case and accents folded, stop words left out.

    Where words are not set apart by spaces, each pair of characters is one.

    >>> words("The mother of Zo\\u00eb, in \\u6771\\u4eac\\u90fd")
    ['mother', 'zoe', '\u6771\u4eac', '\u4eac\u90fd']
    """
    apart = unicodedata.normalize("NFKD", text.casefold())
    folded = unicodedata.normalize("NFC", "".join(c for c in apart if not _is_accent(c)))
    left_out = _stop_words()
    return [w for w in _WORD.findall(_UNSPACED.sub(_in_pairs, folded)) if w not in left_out]


@dataclass(frozen=True)
class Vectors:
    """An index of an embedder's vectors, which are compared with every query.

    limit: flat; beyond some 100,000 rows an approximate index would be quicker.
    """

    rows: np.ndarray

    def nearest(self, queries: np.ndarray, k: int) -> list[Scores]:
        """Return the k rows with the highest cosine above 0, best first, for each query."""
        found = []
        for first in range(0, len(queries), BLOCK):
            for row in queries[first : first + BLOCK] @ self.rows.T:
                places = np.argpartition(row, -k)[-k:] if 0 < k < len(row) else np.arange(len(row))
                places = places[row[places] > 0]
                found.append(Scores(places, row[places]).top(k))
        return found


@dataclass(frozen=True)
class Words:
    """An index of words: what each word adds to the BM25 score of each text that has it.

    Row w of the table is `texts[starts[w]:starts[w + 1]]`, with `values` beside it.
    """

    vocabulary: Mapping[str, int]
    starts: np.ndarray
    texts: np.ndarray
    values: np.ndarray
    num_texts: int

    @classmethod
    def of(cls, texts: Sequence[str]) -> "Words":
        """Return the index of texts, with bm25s's own constants (k1 1.5, b 0.75)."""
        bm25s = load_bm25s()
        told = [words(text) for text in texts]
        if not any(told):
            return cls({}, np.zeros(1, np.int64), np.zeros(0, np.int32), np.zeros(0), len(texts))
        # bm25s itself numbers words by their hashes, which differ from process to process
        number = {word: place for place, word in enumerate(sorted(set(chain(*told))))}
        index = bm25s.BM25()
        index.index(
            ([[number[word] for word in text] for text in told], number),
            show_progress=False,
            create_empty_token=False,
        )
        table = index.scores
        return cls(
            number,
            np.asarray(table["indptr"], np.int64),
            np.asarray(table["indices"], np.int32),
            np.asarray(table["data"], np.float32),
            len(texts),
        )

    def nearest(self, queries: Sequence[Sequence[str]], k: int) -> list[Scores]:
        """Return the k texts with the highest score above 0, best first, for each query's words."""
        known = [[self.vocabulary[w] for w in query if w in self.vocabulary] for query in queries]
        ends = np.cumsum([0, *map(len, known)])
        columns = np.concatenate([*map(np.asarray, known), np.zeros(0)]).astype(np.int32)
        asked = load_sparse().csr_array(
            (np.ones(len(columns), np.float32), columns, ends),
            shape=(len(known), len(self.starts) - 1),
        )
        scored = asked @ self._table
        return [
            Scores(scored.indices[start:end], scored.data[start:end]).top(k)
            for start, end in pairwise(scored.indptr)
        ]

    @cached_property
    def _table(self) -> Any:
        shape = len(self.starts) - 1, self.num_texts
        return load_sparse().csr_array((self.values, self.texts, self.starts), shape=shape)


def letters(texts: Sequence[str]) -> Any:
    """Return a sparse row for each text: its letters in threes, TF-IDF, length 1."""
    places: dict[str, int] = {}
    columns: list[int] = []
    ends = [0]
    for text in texts:
        padded = f" {text} "
        threes = {padded[at : at + 3] for at in range(max(1, len(padded) - 2))}
        columns.extend(places.setdefault(three, len(places)) for three in sorted(threes))
        ends.append(len(columns))
    spread = np.asarray(columns, np.int32)
    counts = np.bincount(spread, minlength=len(places))
    weights = np.log(1 + len(texts) / np.maximum(counts, 1)).astype(np.float32)[spread]
    sparse = load_sparse()
    rows = sparse.csr_array((weights, spread, np.asarray(ends)), shape=(len(texts), len(places)))
    length = np.sqrt(rows.multiply(rows).sum(axis=1))
    rows.data /= np.repeat(np.where(length > 0, length, 1), np.diff(ends)).astype(np.float32)
    return rows


def alike(rows: Any, *, threshold: float, limit: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return pairs of rows with a cosine above the threshold, each once, smaller row first.

    Each row names its `limit` nearest at most; a pair stays if one of the two names it. `rows` are
    of length 1, dense or sparse.
    """
    firsts, seconds, cosines = [], [], []
    turned = rows.T.tocsr() if hasattr(rows, "tocsr") else rows.T
    num_rows = rows.shape[0]
    for first in range(0, num_rows, 8 * BLOCK):
        table = rows[first : first + 8 * BLOCK] @ turned
        for place, near in enumerate(_above(table, threshold), first):
            apart = near.nodes != place
            best = Scores(near.nodes[apart], near.values[apart]).top(limit)
            firsts.append(np.minimum(best.nodes, place))
            seconds.append(np.maximum(best.nodes, place))
            cosines.append(best.values)
    if not firsts:
        return np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.float32)
    keys = np.concatenate(firsts).astype(np.int64) * num_rows + np.concatenate(seconds)
    keys, kept = np.unique(keys, return_index=True)
    return keys // num_rows, keys % num_rows, np.minimum(np.concatenate(cosines)[kept], 1.0)


def load_bm25s() -> Any:
    """Return bm25s; raises SettingsError that says how to install it."""
    try:
        import bm25s
    except ModuleNotFoundError as error:
        raise SettingsError(
            "Searching documents by words needs bm25s. Run: pip install 'hopling[documents]'"
        ) from error
    return bm25s


def _above(table: Any, threshold: float) -> list[Scores]:
    """Return the columns of each row of a table whose value is above the threshold."""
    if not hasattr(table, "tocsr"):
        rows, columns = np.nonzero(table > threshold)
        values = table[rows, columns]
        ends = np.searchsorted(rows, np.arange(table.shape[0] + 1))
    else:
        kept = table.data > threshold
        columns, values = table.indices[kept], table.data[kept]
        ends = np.concatenate([[0], np.cumsum(kept)])[table.indptr]
    return [Scores(columns[a:b], values[a:b]) for a, b in pairwise(ends)]


@cache
def _stop_words() -> frozenset[str]:
    return frozenset(load_bm25s().stopwords.STOPWORDS_EN)


def _is_accent(character: str) -> bool:
    return "\u0300" <= character <= "\u036f"


def _in_pairs(run: re.Match[str]) -> str:
    text = run.group()
    pairs = [text[at : at + 2] for at in range(max(1, len(text) - 1))]
    return f" {' '.join(pairs)} "
