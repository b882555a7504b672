"""Which label is shown, and which labels a name may mean.

One key serves look-ups everywhere: Unicode NFC, case-folded, white space joined. The label itself
is never changed.
"""

import unicodedata
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from difflib import SequenceMatcher
from itertools import islice, takewhile
from typing import NamedTuple

MAX_CANDIDATES = 50
MIN_LIKENESS = 0.6


class Label(NamedTuple):
    """A label as it was loaded; `language` is a lower-case tag, or "" when it had none."""

    language: str
    text: str


def folded(name: str) -> str:
    r"""Return the key under which a name is looked up.

    >>> folded("  STRASSE ") == folded("Stra\u00dfe")
    True
    """
    composed = unicodedata.normalize("NFC", name)
    return " ".join(unicodedata.normalize("NFC", composed.casefold()).split())


def chosen(labels: Iterable[Label], languages: Sequence[str]) -> Label | None:
    """Return the label to show: a preferred language, `mul`, untagged, any; ties by text.

    "en" also takes "en-gb", after every plain "en". The order of `labels` does not matter, and
    a blank label is none.

    >>> chosen([Label("de", "Anna"), Label("mul", "Ana")], ["en"])
    Label(language='mul', text='Ana')
    """
    visible = (label for label in labels if label.text.strip())
    return min(visible, key=lambda label: (rank(label.language, languages), label), default=None)


def rank(language: str, languages: Sequence[str]) -> int:
    """Return a language's place in the label chain; the lowest is shown."""
    for place, wanted in enumerate(languages):
        wanted = wanted.lower()
        if language == wanted:
            return 2 * place
        if language.startswith(wanted + "-"):
            return 2 * place + 1
    return 2 * len(languages) + {"mul": 0, "": 1}.get(language, 2)


def likeness(name: str, other: str) -> float:
    """Return how alike two folded names are, from 0.0 to 1.0."""
    return SequenceMatcher(None, name, other, autojunk=False).ratio()


def trigrams(name: str) -> set[str]:
    """Return the three-character pieces of a folded name, its ends marked by a space.

    >>> sorted(trigrams("ana"))
    [' an', 'ana', 'na ']
    """
    padded = f" {name} "
    return {padded[i : i + 3] for i in range(len(padded) - 2)}


def distinct(ids: Iterable[str], limit: int) -> list[str]:
    """Return the first `limit` ids that differ; of an iterator no more is taken.

    >>> distinct(iter("abac"), 2)
    ['a', 'b']
    """
    found: dict[str, None] = {}
    for id in ids if limit > 0 else ():
        found[id] = None
        if len(found) == limit:
            break
    return list(found)


class NameTable:
    """Labels in memory, found by name; for graphs that have no index of their own."""

    def __init__(self, labels: Iterable[tuple[str, str]]):
        self._rows: dict[str, list[tuple[str, str]]] = {}  # (id, label), by folded label
        for text, id in sorted(set(labels), key=lambda label: label[::-1]):
            self._rows.setdefault(folded(text), []).append((id, text))
        self._keys = sorted(self._rows)
        self._by_trigram: dict[str, list[int]] = {}
        for place, key in enumerate(self._keys):
            for piece in trigrams(key):
                self._by_trigram.setdefault(piece, []).append(place)

    def meant(self, name: str) -> Iterator[str]:
        """Yield ids by label: the same, case-folded, one that begins so, similar."""
        key = folded(name)
        if not key:
            return
        same = self._rows.get(key, [])
        yield from (id for id, _ in sorted(same, key=lambda row: row[1] != name))
        for other in (*self._beginning(key), *self._similar(key)):
            yield from (id for id, _ in self._rows[other])

    def _beginning(self, key: str) -> Iterator[str]:
        longer = islice(self._keys, bisect_right(self._keys, key), None)
        return takewhile(lambda other: other.startswith(key), longer)

    def _similar(self, key: str) -> list[str]:
        pieces = trigrams(key)
        shared = Counter(i for piece in pieces for i in self._by_trigram.get(piece, ()))
        by_overlap = sorted(shared, key=lambda i: (-shared[i] / (len(self._keys[i]) + len(key)), i))
        others = [self._keys[i] for i in by_overlap[:MAX_CANDIDATES]]
        scored = [(-likeness(key, other), other) for other in others if other != key]
        return [other for score, other in sorted(scored) if -score >= MIN_LIKENESS]
