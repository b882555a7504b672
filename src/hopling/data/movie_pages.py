"""A corpus of pages about films and people, written from the movie graph that ships.

A person's page tells the film that they directed or acted in, a film's page its writer, year, genre
and language, so no page tells what another one does, and an answer takes several pages. Only what
has one end is told. [ours]
"""

import gzip
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from random import Random

from hopling.data.tasks import movie_files
from hopling.graphs.base import Document
from hopling.graphs.documents import Extraction, Triple

_OF_FILMS = {
    "written_by": "was written by",
    "release_year": "was released in",
    "has_genre": "has the genre",
    "in_language": "is in",
}
_OF_PEOPLE = {"directed_by": "directed", "starred_actors": "acted in"}
_SHORTEST = 4  # characters of a title; shorter ones are part of too many other names

Facts = Mapping[str, Mapping[str, str]]  # a name's relations, in words, and the one end of each


def movie_pages(*, num_films: int, seed: int) -> tuple[list[Document], list[Extraction]]:
    """Return the pages of some films, of their people, and of one more film for each writer.

    Equal arguments give equal pages, sorted by title. The ids are the titles.
    """
    facts = _facts()
    led = defaultdict(list)  # the people whose page tells a film
    for name, told in facts.items():
        for film in _films(told):
            led[film].append(name)
    films = set(Random(seed).sample(sorted(led), min(num_films, len(led))))
    writers = {told[_WRITER] for told in map(facts.get, films) if told and _WRITER in told}
    films |= {film for writer in writers for film in _films(facts.get(writer, {}))}
    titles = sorted(films.union(*(led[film] for film in films)) & facts.keys())
    documents = [Document(title, title, _text(title, facts[title])) for title in titles]
    extractions = [
        Extraction(title, triples=tuple(Triple(title, *fact) for fact in facts[title].items()))
        for title in titles
    ]
    return documents, extractions


_WRITER = _OF_FILMS["written_by"]


def _films(told: Mapping[str, str]) -> Iterable[str]:
    return [told[relation] for relation in _OF_PEOPLE.values() if relation in told]


def _text(title: str, told: Mapping[str, str]) -> str:
    return " ".join(f"{title} {relation} {end}." for relation, end in told.items())


def _facts() -> Facts:
    triples, names = movie_files()
    label = dict(_rows(names))
    ends: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for head, relation, tail in _rows(triples):
        film, other = label[head], label[tail]
        if relation in _OF_FILMS:
            ends[film][_OF_FILMS[relation]].add(other)
        if relation in _OF_PEOPLE:
            ends[other][_OF_PEOPLE[relation]].add(film)
    return {
        name: {relation: min(found) for relation, found in told.items() if len(found) == 1}
        for name, told in ends.items()
        if len(name) >= _SHORTEST and not name.isdigit()
    }


def _rows(path: Path) -> list[list[str]]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return [line.rstrip("\n").split("\t") for line in file]
