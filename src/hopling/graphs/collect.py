"""Turns triples into rows of hashes, and keeps each new term beside them on disk.

Two 64-bit hashes stand for a term: the first goes through the build, the second shows, when the
terms of a partition meet, that two share the first. `HashCollision` then makes the build begin
again with another seed.
"""

from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple, Protocol

import numpy as np

from hopling.graphs.spill import Partitions
from hopling.graphs.terms import Namespace, Triple

EDGE = np.dtype([("head", "u8"), ("relation", "i4"), ("tail", "u8")])
TERM = np.dtype([("hash", "u8"), ("check", "u8"), ("suffix", "i4"), ("size", "i4")])
LABEL = np.dtype([("node", "u8"), ("suffix", "i4"), ("size", "i4")])
NODE = -1  # the suffix of a term that is no literal

_MASK = (1 << 64) - 1
MIXERS = 0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F
_RECENT = 1 << 18
_BATCH = 1 << 16
_MAX_WRITES = 10  # those of two chunks


class HashCollision(Exception):
    """Two terms of the graph share a hash under this seed."""


class Hash(Protocol):
    """Gives the two hashes of a text."""

    def __call__(self, text: bytes) -> tuple[int, int]:
        """Return two numbers below 2**64."""


def blake(seed: int) -> Hash:
    """Return the hash that needs no compiled code."""
    salt = seed.to_bytes(16, "little")

    def hashed(text: bytes) -> tuple[int, int]:
        digest = blake2b(text, digest_size=16, salt=salt).digest()
        return int.from_bytes(digest[:8], "little"), int.from_bytes(digest[8:], "little")

    return hashed


class Relation(NamedTuple):
    """A relation as files write it: its id, and whether its literals are labels."""

    name: str
    is_label: bool


@dataclass
class _Batch:
    edges: list[tuple[int, int, int]] = field(default_factory=list)
    labels: list[tuple[int, int, int]] = field(default_factory=list)
    label_texts: list[bytes] = field(default_factory=list)
    terms: list[tuple[int, int, int, int]] = field(default_factory=list)
    term_texts: list[bytes] = field(default_factory=list)


class Collector:
    """Takes triples and puts edges, labels and terms into partitions on disk."""

    def __init__(
        self,
        folder: Path,
        namespace: Namespace,
        label_predicates: frozenset[str],
        *,
        bits: int,
        hashed: Hash,
    ):
        self.namespace, self._label_predicates, self._hashed = namespace, label_predicates, hashed
        bytes_, number = np.dtype("u1"), bits
        self.edges = Partitions(folder, "edges", EDGE, bits=number)
        self.labels = Partitions(folder, "labels", LABEL, bits=number)
        self.label_texts = Partitions(folder, "label-texts", bytes_, bits=number)
        self.terms = Partitions(folder, "terms", TERM, bits=number)
        self.term_texts = Partitions(folder, "term-texts", bytes_, bits=number)
        self.suffixes: dict[str, int] = {}
        self.relations: list[Relation] = []
        self.used: set[int] = set()
        self.num_edges = 0
        self._relation_numbers: dict[str, int] = {}
        self._recent: dict[str | tuple[str, int], int] = {}
        self._batch = _Batch()
        self._writer = ThreadPoolExecutor(1)
        self._writes: deque[Future[None]] = deque()

    def add(self, triple: Triple) -> None:
        """Take one triple."""
        head, relation, tail, suffix = triple
        number = self.relation_number(relation)
        batch = self._batch
        if suffix is not None and self.relations[number].is_label:
            language = suffix if suffix.startswith("@") else ""
            self.add_label(head, tail, language)
            return
        value = self._node(tail) if suffix is None else self._literal(tail, suffix)
        batch.edges.append((self._node(head), number, value))
        if len(batch.edges) >= _BATCH:
            self.flush()

    def add_label(self, node: str, text: str, suffix: str = "") -> None:
        """Take one label; `suffix` is "" or "@" with the language."""
        encoded = text.encode()
        row = (self._node(node), self.suffix_number(suffix), len(encoded))
        self._batch.labels.append(row)
        self._batch.label_texts.append(encoded)
        if len(self._batch.labels) >= _BATCH:
            self.flush()

    def relation_number(self, relation: str) -> int:
        """Return the number of a relation as files write it."""
        number = self._relation_numbers.get(relation)
        if number is None:
            number = self._relation_numbers[relation] = len(self.relations)
            name = self.namespace.shorten(relation)
            self.relations.append(Relation(name, relation in self._label_predicates))
        return number

    def suffix_number(self, suffix: str) -> int:
        """Return the number of a literal's suffix."""
        return self.suffixes.setdefault(suffix, len(self.suffixes))

    def flush(self) -> None:
        """Write what was taken."""
        batch, self._batch = self._batch, _Batch()
        self.put_edges(np.array(batch.edges, EDGE))
        self.put_labels(np.array(batch.labels, LABEL), _bytes(batch.label_texts))
        self.put_terms(np.array(batch.terms, TERM), _bytes(batch.term_texts))

    def put_edges(self, rows: np.ndarray) -> None:
        """Write rows of hashes."""
        self.num_edges += len(rows)
        self.used.update(np.flatnonzero(np.bincount(rows["relation"])).tolist())
        self._writing(self.edges.append, rows["head"], rows)

    def put_labels(self, rows: np.ndarray, text: np.ndarray) -> None:
        """Write labels, whose texts lie one after the other."""
        self._writing(self.labels.append, rows["node"], rows)
        sizes = rows["size"].astype(np.int64)
        self._writing(self.label_texts.append_texts, rows["node"], text, sizes)

    def put_terms(self, rows: np.ndarray, text: np.ndarray) -> None:
        """Write terms, whose texts lie one after the other; repeats are welcome."""
        self._writing(self.terms.append, rows["hash"], rows)
        sizes = rows["size"].astype(np.int64)
        self._writing(self.term_texts.append_texts, rows["hash"], text, sizes)

    def finish(self) -> list[int]:
        """End writing, and return the hash of each relation by its number, 0 if it has no edge."""
        self.flush()
        hashes = [0] * len(self.relations)
        for number in sorted(self.used):
            hashes[number] = self._node(self.relations[number].name)
        self.flush()
        while self._writes:
            self._writes.popleft().result()
        self.close()
        return hashes

    def _writing(self, put: Callable[..., None], *rows: np.ndarray) -> None:
        """Write in the background, in order; raise what an earlier write raised."""
        self._writes.append(self._writer.submit(put, *rows))
        while len(self._writes) > _MAX_WRITES:
            self._writes.popleft().result()

    def close(self) -> None:
        """End writing, and close the files."""
        self._writer.shutdown(cancel_futures=True)
        for part in (self.edges, self.labels, self.label_texts, self.terms, self.term_texts):
            part.close()

    def _node(self, name: str) -> int:
        found = self._recent.get(name)
        if found is None:
            found = self._recent[name] = self._term(self.namespace.shorten(name).encode(), NODE)
        return found

    def _literal(self, text: str, suffix: str) -> int:
        key = text, self.suffix_number(suffix)
        found = self._recent.get(key)
        if found is None:
            found = self._recent[key] = self._term(text.encode(), key[1])
        return found

    def _term(self, text: bytes, suffix: int) -> int:
        if len(self._recent) > _RECENT:
            self._recent.clear()
        first, second = self._hashed(text)
        first = (first + (suffix + 1) * MIXERS[0]) & _MASK
        second = (second + (suffix + 1) * MIXERS[1]) & _MASK
        self._batch.terms.append((first, second, suffix, len(text)))
        self._batch.term_texts.append(text)
        return first


def _bytes(texts: Sequence[bytes]) -> np.ndarray:
    return np.frombuffer(b"".join(texts), np.uint8)
