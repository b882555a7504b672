"""Writes a graph like Freebase: power-law degrees, mediators, labels in several languages, hubs.

python benchmarks/freebase_like.py --triples 1000000 --out freebase_like.nt
"""

import argparse
from collections.abc import Iterator
from pathlib import Path

import numpy as np

NAMESPACE = "http://rdf.freebase.com/ns/"
NAME = "<http://www.w3.org/2000/01/rdf-schema#label>"
DATE = "<http://www.w3.org/2001/XMLSchema#date>"
NUM_RELATIONS = 2_000
NUM_TYPES = 500
CHUNK = 200_000
LANGUAGES = ("de", "fr", "es", "ja", "en-gb", "pt")
DOMAINS = ("film", "music", "people", "location", "sports", "book", "tv", "law", "food", "games")
SYLLABLES = (
    "ka", "lo", "mi", "ren", "sto", "ve", "ar", "to", "bel", "nu", "sha", "dor", "fin", "gra",
    "hul", "is", "jo", "quen",
)  # fmt: skip


def num_entities(num_triples: int) -> int:
    """Return how many nodes a graph has; every fifth is a mediator."""
    return max(10, num_triples // 10)


def entity(number: int) -> str:
    """Return an entity's id; the numbers of popular ones do not lie together."""
    return f"m.0{(number * 2654435761) % 4294967296:x}"


def hub_edges(num_triples: int) -> int:
    """Return the outgoing edges of the hub, which is entity 0."""
    return max(num_triples // 100, min(num_triples // 8, 120_000))


def relations() -> list[str]:
    """Return the ids of the relations."""
    return [
        f"{DOMAINS[i % 10]}.{word(i // 10)}.{word(7 * i + 3)}_{i:04}" for i in range(NUM_RELATIONS)
    ]


def word(number: int) -> str:
    """Return a made-up word."""
    size = len(SYLLABLES)
    return "".join(SYLLABLES[number // size**k % size] for k in range(3))


def label(number: int) -> str:
    """Return an entity's English label; one in twenty holds an accent."""
    accent = "\u00eb" if number % 20 == 1 else ""
    return f"{word(number).title()} {word(number // 5_000 + 11 * number)}{accent}"


def chunks(num_triples: int, seed: int = 0) -> Iterator[str]:
    """Yield about `num_triples` lines of N-Triples, labels included, in pieces of text."""
    rng = np.random.default_rng(seed)
    count = num_entities(num_triples)
    yield "".join(
        f'<{NAMESPACE}{name}> {NAME} "{name.split(".")[-1].title()}"@en .\n' for name in relations()
    )
    yield from _labels(count, rng)
    names = [f"<{NAMESPACE}{name}>" for name in relations()]
    left = hub_edges(num_triples)
    yield from _edges(np.zeros(left, np.int64), rng.integers(0, count, left), names, rng)
    left = num_triples - left - int(0.9 * count)
    while left > 0:
        size = min(CHUNK, left)
        left -= size
        mediators = rng.integers(0, count // 5, size) * 5 + 4
        popular = (count * rng.random(size) ** 3).astype(np.int64)
        heads = (count * rng.random(size) ** 2).astype(np.int64)
        kind = rng.random(size)
        tails = np.where(kind < 0.25, mediators, popular)
        heads = np.where((kind >= 0.25) & (kind < 0.5), mediators, heads)
        typed, literal = int(0.1 * size), int(0.1 * size)
        yield from _types(heads[:typed], rng)
        yield from _literals(heads[typed : typed + literal], names, rng)
        yield from _edges(heads[typed + literal :], tails[typed + literal :], names, rng)


def _labels(count: int, rng: np.random.Generator) -> Iterator[str]:
    for start in range(0, count, CHUNK):
        ids = np.arange(start, min(count, start + CHUNK))
        ids = ids[(ids % 5 != 4) & (rng.random(len(ids)) < 0.93)].tolist()
        lines = [f'<{NAMESPACE}{entity(i)}> {NAME} "{label(i)}"@en .' for i in ids]
        lines += [
            f'<{NAMESPACE}{entity(i)}> {NAME} "{word(3 * i)} {i}"@{LANGUAGES[i % 6]} .'
            for i in ids[::5]
        ]
        yield "\n".join(lines) + "\n"


def _edges(
    heads: np.ndarray, tails: np.ndarray, names: list[str], rng: np.random.Generator
) -> Iterator[str]:
    which = (len(names) * rng.random(len(heads)) ** 4).astype(np.int64)
    rows = zip(heads.tolist(), which.tolist(), tails.tolist(), strict=True)
    yield "".join(
        f"<{NAMESPACE}{entity(h)}> {names[r]} <{NAMESPACE}{entity(t)}> .\n" for h, r, t in rows
    )


def _types(heads: np.ndarray, rng: np.random.Generator) -> Iterator[str]:
    which = (NUM_TYPES * rng.random(len(heads)) ** 4).astype(np.int64)
    relation = f"<{NAMESPACE}type.object.type>"
    yield "".join(
        f"<{NAMESPACE}{entity(h)}> {relation} <{NAMESPACE}{DOMAINS[t % 10]}.{word(t)}> .\n"
        for h, t in zip(heads.tolist(), which.tolist(), strict=True)
    )


def _literals(heads: np.ndarray, names: list[str], rng: np.random.Generator) -> Iterator[str]:
    days = rng.integers(0, 60_000, len(heads)).astype("datetime64[D]").astype(str)
    rows = zip(heads.tolist(), rng.integers(0, 60, len(heads)).tolist(), days, strict=True)
    yield "".join(
        f'<{NAMESPACE}{entity(h)}> {names[-1 - r]} "{day}"^^{DATE} .\n' for h, r, day in rows
    )


def write(num_triples: int, path: Path, seed: int = 0) -> None:
    """Write the graph to a file of N-Triples."""
    with path.open("w", encoding="utf-8", newline="\n") as stream:
        stream.writelines(chunks(num_triples, seed))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--triples", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    write(given.triples, given.out, given.seed)
