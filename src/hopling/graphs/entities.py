"""Which names mean one entity, by a rule that is stated, reported and can be overruled.

Names are one entity when they are equal in NFKC without case, punctuation and a leading "the", and
when no two of them are of different kinds (person, place, ...). What is merged keeps every form as
an alias, and the extractions are never changed, so each merge can be undone: an alias table maps
forms, written exactly, to the names that they shall mean. [BUGS B15, B19]
"""

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from hopling.graphs.openie import Extraction, Triple

_APART = re.compile(r"[\W_]+")


@dataclass(frozen=True)
class Entity:
    """One thing that documents name; `id` is its commonest form, with its kind if need be.

    `aliases` are all its forms, the commonest first, with how often each was read.
    """

    id: str
    kind: str
    aliases: tuple[tuple[str, int], ...]

    @property
    def name(self) -> str:
        """The commonest form alone: what is compared with other names."""
        return self.aliases[0][0]


class Facts(NamedTuple):
    """What extractions say once every name stands for an entity.

    `mentions` are rows (document, entity) in the order of reading; `triples` distinct rows (head,
    tail) with `relations` beside them; `stated` rows (document, triple).
    """

    entities: tuple[Entity, ...]
    mentions: np.ndarray
    triples: np.ndarray
    relations: tuple[str, ...]
    stated: np.ndarray


def key_of(name: str) -> str:
    """Return what names of one entity share.

    >>> key_of("The ACME Corp."), key_of("Acme corp"), key_of("Zoe\\u0308") == key_of("ZO\\u00cb")
    ('acme corp', 'acme corp', True)
    """
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())
    key = _APART.sub(" ", folded).strip()
    return key.removeprefix("the ") or folded.strip()


def resolve(extractions: Sequence[Extraction], aliases: Mapping[str, str]) -> Facts:
    """Return the extractions' facts; `aliases` says what a form, written exactly, shall mean."""
    meant = {_exact(form): name for form, name in aliases.items()}
    uses = [list(_uses(extraction, meant)) for extraction in extractions]
    entities, number = _entities(uses, {key_of(name): name for name in aliases.values()})
    mentions: list[tuple[int, int]] = []
    numbers: dict[tuple[int, str, int], int] = {}
    stated: list[tuple[int, int]] = []
    for document, (extraction, used) in enumerate(zip(extractions, uses, strict=True)):
        kinds = {key: kind for key, kind, _ in used if kind}
        place = {form: number[key, kinds.get(key, "")] for key, _, form in used}
        mentions.extend((document, one) for one in dict.fromkeys(place[form] for *_, form in used))
        rows = [(place[t.head], t.relation, place[t.tail]) for t in extraction.triples]
        for row in dict.fromkeys(rows):
            stated.append((document, numbers.setdefault(row, len(numbers))))
    ends = [(head, tail) for head, _, tail in numbers]
    return Facts(
        entities,
        np.asarray(mentions, np.int32).reshape(-1, 2),
        np.asarray(ends, np.int32).reshape(-1, 2),
        tuple(relation for _, relation, _ in numbers),
        np.asarray(stated, np.int32).reshape(-1, 2),
    )


def homonyms(entities: Sequence[Entity]) -> list[list[Entity]]:
    """Return the entities of one name that were kept apart, since they are of different kinds."""
    groups: dict[str, list[Entity]] = defaultdict(list)
    for entity in entities:
        groups[key_of(entity.aliases[0][0])].append(entity)
    return [group for group in groups.values() if len({entity.kind for entity in group}) > 1]


def triples_of(facts: Facts, places: Sequence[int]) -> list[Triple]:
    """Return the triples at these places, in words."""
    ids = facts.entities
    return [
        Triple(ids[head].id, facts.relations[place], ids[tail].id)
        for place in places
        for head, tail in [facts.triples[place]]
    ]


def _uses(extraction: Extraction, meant: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    """Yield key, kind ("" if unknown) and form of every name of an extraction."""
    ends = [end for triple in extraction.triples for end in (triple.head, triple.tail)]
    for form in (*extraction.entities, *ends):
        yield key_of(meant.get(_exact(form), form)), extraction.kinds.get(form, ""), form


def _entities(
    uses: Sequence[Sequence[tuple[str, str, str]]], names: Mapping[str, str]
) -> tuple[tuple[Entity, ...], dict[tuple[str, str], int]]:
    """Return the entities, and their number by key and by the kind that a document knows."""
    known = [{key: kind for key, kind, _ in used if kind} for used in uses]
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for kinds in known:
        for key, kind in kinds.items():
            counts[key][kind] += 1
    # a document that does not know the kind means the commonest
    commonest = {key: min(found, key=lambda k: (-found[k], k)) for key, found in counts.items()}
    forms: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for used, kinds in zip(uses, known, strict=True):
        for key, _, form in used:
            forms[key, kinds.get(key) or commonest.get(key, "")][form] += 1
    order = {own: place for place, own in enumerate(forms)}
    untold = {(key, ""): order[key, commonest.get(key, "")] for key, _ in forms}
    return tuple(_named(forms, names)), {**untold, **order}


def _named(
    forms: Mapping[tuple[str, str], Counter[str]], names: Mapping[str, str]
) -> Iterator[Entity]:
    shared = Counter(key for key, _ in forms)
    taken: Counter[str] = Counter()
    for (key, kind), counts in forms.items():
        aliases = tuple(sorted(counts.items(), key=lambda one: (-one[1], one[0])))
        name = names.get(key, aliases[0][0])
        if shared[key] > 1:
            name = f"{name} ({kind})"
        taken[name] += 1
        yield Entity(f"{name} #{taken[name]}" if taken[name] > 1 else name, kind, aliases)


def _exact(form: str) -> str:
    return unicodedata.normalize("NFC", form)
