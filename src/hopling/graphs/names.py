"""Which label is shown, and which labels a name may mean.

One key serves look-ups everywhere: Unicode NFC, case-folded, white space joined. The label itself
is never changed.
"""

import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from difflib import SequenceMatcher
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


class NameTable:
    """Labels in memory, found by name; for graphs that have no index of their own."""

    def __init__(self, labels: Iterable[tuple[str, str]]):
        self._rows = sorted(set(labels), key=lambda row: (row[1], row[0]))
        self._keys = [folded(text) for text, _ in self._rows]
        self._by_key: dict[str, list[int]] = {}
        self._by_trigram: dict[str, list[int]] = {}
        for i, key in enumerate(self._keys):
            self._by_key.setdefault(key, []).append(i)
        for key, rows in self._by_key.items():
            for piece in trigrams(key):
                self._by_trigram.setdefault(piece, []).append(rows[0])

    def find(self, name: str, limit: int) -> list[str]:
        """Return ids whose label is the name: exact first, then case-folded, then similar."""
        key = folded(name)
        if not key or limit < 1:
            return []
        same = self._by_key.get(key, [])
        rows = sorted(same, key=lambda i: self._rows[i][0] != name)
        if len(rows) < limit:
            for _, other in self._similar(key):
                rows += self._by_key[other]
        return list(dict.fromkeys(self._rows[i][1] for i in rows))[:limit]

    def _similar(self, key: str) -> list[tuple[float, str]]:
        pieces = trigrams(key)
        shared = Counter(i for piece in pieces for i in self._by_trigram.get(piece, ()))
        by_overlap = sorted(shared, key=lambda i: (-shared[i] / (len(self._keys[i]) + len(key)), i))
        others = [self._keys[i] for i in by_overlap[:MAX_CANDIDATES]]
        scored = [(-likeness(key, other), other) for other in others if other != key]
        return sorted(pair for pair in scored if -pair[0] >= MIN_LIKENESS)
