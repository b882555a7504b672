"""Exact match and F1 of a short answer with any of its spellings, as open-domain QA reports them.

The normalization is that of SQuAD's evaluation script, and yes/no answers count as in HotpotQA's.
It drops punctuation, so "3.14" is "314" here; `answers` compares by value instead.
Scorers raise SettingsError for a task of which no answer is left after normalization, and an empty
prediction earns nothing. [BUGS B32]
"""

import re
import string
from collections import Counter

from hopling.episode import Episode
from hopling.errors import SettingsError

_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLES = re.compile(r"\b(?:a|an|the)\b")
_CLOSED = ("yes", "no", "noanswer")  # no partial credit against any of these [HotpotQA 2018]


def squad_normalized(text: str) -> str:
    """Return the text in lower case, without ASCII punctuation, articles and extra spaces.

    [SQuAD 2016]

    >>> squad_normalized("The  Cat's pyjamas, a.k.a. An Idea!")
    'cats pyjamas aka idea'
    """
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split())


def squad_em(episode: Episode) -> float:
    """Return 1.0 iff the answer is one of the task's answers once normalized. [GTA-RAG Eq. 19]"""
    return float(_predicted(episode) in _gold(episode) - {""})


def squad_f1(episode: Episode) -> float:
    """Return the best F1 over words between the answer and one of the task's answers."""
    predicted = _predicted(episode)
    return max(word_f1(predicted, gold) for gold in _gold(episode))


def word_f1(predicted: str, gold: str) -> float:
    """Return the harmonic mean of precision and recall over the words of two normalized texts.

    A word counts as often as it stands in both. [SQuAD 2016; HotpotQA 2018]

    >>> round(word_f1("rock", "rock n roll"), 3), word_f1("no", "no way")
    (0.5, 0.0)
    """
    if predicted != gold and (predicted in _CLOSED or gold in _CLOSED):
        return 0.0
    found, wanted = predicted.split(), gold.split()
    same = sum((Counter(found) & Counter(wanted)).values())
    return 2 * same / (len(found) + len(wanted)) if same else 0.0


def _predicted(episode: Episode) -> str:
    return squad_normalized(episode.answer.text) if episode.answer else ""


def _gold(episode: Episode) -> set[str]:
    gold = {squad_normalized(answer) for answer in episode.task.answers} - {""}
    if not gold:
        raise SettingsError(
            f"Task {episode.task.id!r} has no answer that is more than articles and punctuation "
            f"({list(episode.task.answers)}), so its episodes cannot be scored. Leave it out."
        )
    return gold
