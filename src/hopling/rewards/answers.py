"""Rewards and metrics that compare an episode's answer with the task's.

Names are compared by `key`: text by its normalized form, and numbers, dates and booleans by value.
Scorers are called on scored episodes only. All of them raise SettingsError for a task without
answers, since nothing can be said then.
"""

import re
import unicodedata
from collections.abc import Hashable, Iterable
from datetime import date
from decimal import Decimal, InvalidOperation

from hopling.episode import Episode
from hopling.errors import SettingsError


def normalized(name: str) -> str:
    """Return the form by which names are compared: NFKC, case-folded, spaces collapsed.

    >>> normalized("  New\\u00a0York  CITY ")
    'new york city'
    """
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())
    return " ".join(folded.split())


def key(name: str) -> Hashable:
    """Return what two names share iff they are the same answer.

    Only these spellings are read as values; all else is text, so that "007" is not "7": [ours]
    numbers as 7, -5, 1,000, 1.50, (3.14), with any dash as minus; dates as 1961-08-04, also with a
    time zone or midnight, 4 August 1961, August 4, 1961; true and false. A literal in its source
    form, such as "05"^^xsd:integer, is read by its datatype.

    >>> key("1,000") == key("1000.0"), key("007") == key("7")
    (True, False)
    """
    typed = _TYPED.fullmatch(name.strip())
    text = normalized(typed["text"] if typed else name)
    kind = re.split(r"[#:/]", typed["type"])[-1].rstrip(">").casefold() if typed else ""
    if kind == "string":
        return text
    if text in ("true", "false") or (kind == "boolean" and text in ("1", "0")):
        return ("boolean", text in ("true", "1"))
    number = _number(text, lenient=bool(kind))
    if number is not None:
        return ("number", number)
    day = _date(text)
    return ("date", day) if day else text


def predicted(episode: Episode) -> tuple[str, ...]:
    """Return the names in the episode's answer, in order, each brace group split into names.

    The whole of `{A, B}` is one name where an observation held it or it reads as a value; else it
    is split at commas, the longest names that observations held first. An answer without braces is
    one name. Names that normalize to nothing are left out. [ours]
    """
    answer = episode.answer
    if answer is None:
        return ()
    seen = _seen(episode)
    groups = [group[1:-1] for group in _GROUP.findall(answer.text)] or [answer.text]
    names = [name for group in groups for name in _split(group.replace("\\|", "|"), seen)]
    return tuple(name for name in names if normalized(name))


def exact_match(episode: Episode) -> float:
    """Return 1.0 iff the set of predicted names is the set of answers. [SoG-R1 4.4]"""
    gold = _gold(episode)
    return float(_keys(predicted(episode)) == gold)


def f1(episode: Episode) -> float:
    """Return the harmonic mean of precision and recall over the two sets of names."""
    gold, found = _gold(episode), _keys(predicted(episode))
    return 2 * len(gold & found) / (len(gold) + len(found))


def hits_any(episode: Episode) -> float:
    """Return 1.0 iff any predicted name is an answer."""
    return float(bool(_gold(episode) & _keys(predicted(episode))))


def hits_first(episode: Episode) -> float:
    """Return 1.0 iff the first predicted name is an answer."""
    return float(bool(_gold(episode) & _keys(predicted(episode)[:1])))


def observed(episode: Episode) -> float:
    """Return the share of the task's answers whose name stood in an observation."""
    gold = _gold(episode)
    return len(gold & _seen(episode)) / len(gold)


def grounded(episode: Episode) -> float:
    """Return the share of predicted names that stood in an observation, 0.0 without any name."""
    found = _keys(predicted(episode))
    return len(found & _seen(episode)) / max(1, len(found))


def ungrounded(episode: Episode) -> tuple[str, ...]:
    """Return the predicted names that stood in no observation. [BUGS B26]"""
    seen = _seen(episode)
    return tuple(name for name in predicted(episode) if key(name) not in seen)


_GROUP = re.compile(r"\{(?:[^{}]|\{[^{}]*\})*\}")
_TYPED = re.compile(r'"(?P<text>.*)"(?:\^\^(?P<type>\S+))', re.DOTALL)
_NUMBER = re.compile(r"-?(?:0|[1-9]\d*|[1-9]\d{0,2}(?:,\d{3})+)(?:\.\d+)?")
_DASHES = str.maketrans({"\u2212": "-", "\u2013": "-", "\u2010": "-", "\u2011": "-"})
_ISO_DATE = re.compile(r"(\d{4})-(\d{2})-(\d{2})(?:t00:00:00(?:\.0+)?)?(?:z|[+-]\d{2}:\d{2})?")
_MONTHS = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
]
_MONTH, _DAY, _YEAR = rf"(?P<month>{'|'.join(_MONTHS)})", r"(?P<day>\d{1,2})", r"(?P<year>\d{4})"
_DAY_FIRST = re.compile(f"{_DAY} {_MONTH},? {_YEAR}")
_MONTH_FIRST = re.compile(f"{_MONTH} {_DAY},? {_YEAR}")


def _gold(episode: Episode) -> set[Hashable]:
    gold = _keys(episode.task.answers)
    if not gold:
        raise SettingsError(
            f"Task {episode.task.id!r} has no answers, so its episodes cannot be scored. "
            "Give it answers or leave it out."
        )
    return gold


def _keys(names: Iterable[str]) -> set[Hashable]:
    return {key(name) for name in names if normalized(name)}


def _seen(episode: Episode) -> set[Hashable]:
    return _keys(name for observation in episode.observations for name in observation.names)


def _split(group: str, seen: set[Hashable]) -> list[str]:
    whole = group.strip()
    if key(whole) in seen or not isinstance(key(whole), str):
        return [whole]
    parts = group.split(",")
    most = 1 + max((held.count(",") for held in seen if isinstance(held, str)), default=0)
    names = []
    while parts:
        lengths = range(min(most, len(parts)), 1, -1)
        held = (n for n in lengths if key(",".join(parts[:n])) in seen)
        n = next(held, 1)
        names.append(",".join(parts[:n]).strip())
        parts = parts[n:]
    return names


def _number(text: str, *, lenient: bool) -> Decimal | None:
    text = text.translate(_DASHES)
    if text.startswith("(") and text.endswith(")"):
        text = text[1:-1].strip()
    if not lenient and not _NUMBER.fullmatch(text):
        return None
    try:
        number = Decimal(text.replace(",", ""))
    except InvalidOperation:
        return None
    return number if number.is_finite() else None


def _date(text: str) -> date | None:
    iso = _ISO_DATE.fullmatch(text)
    if iso:
        year, month, day = iso[1], iso[2], iso[3]
    elif written := _DAY_FIRST.fullmatch(text) or _MONTH_FIRST.fullmatch(text):
        year, month, day = written["year"], str(_month(written["month"])), written["day"]
    else:
        return None
    try:
        return date(int(year), int(month), int(day))
    except ValueError:
        return None


def _month(name: str) -> int:
    return _MONTHS.index(name) + 1
