"""Which label is shown, and which labels a name may mean.

One key serves look-ups everywhere: Unicode NFC, case-folded, white space joined. The label itself
is never changed.
"""

import unicodedata
from collections.abc import Iterable, Sequence
from difflib import SequenceMatcher
from typing import NamedTuple


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

    "en" also takes "en-gb", after every plain "en". The order of `labels` does not matter.

    >>> chosen([Label("de", "Anna"), Label("mul", "Ana")], ["en"])
    Label(language='mul', text='Ana')
    """
    return min(labels, key=lambda label: (_rank(label.language, languages), label), default=None)


def _rank(language: str, languages: Sequence[str]) -> int:
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
