"""The hop index: a graph in memory-mapped arrays, opened without reading them.

Single calls read plain memoryviews: for one node that is faster than vectors. Any number of
processes share one index through the page cache. Literals keep the form their file had.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import chain, islice, takewhile
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args
from zlib import crc32

import numpy as np

from hopling.errors import SettingsError
from hopling.graphs.base import Direction, Edge, SearchTable, TableForm
from hopling.graphs.build import LITERAL, RELATION, trigram_bucket
from hopling.graphs.layout import LoadReport, map_arrays, read_manifest
from hopling.graphs.names import (
    MAX_CANDIDATES,
    MIN_LIKENESS,
    Label,
    chosen,
    distinct,
    folded,
    likeness,
    rank,
)
from hopling.graphs.terms import Namespace, Triple

if TYPE_CHECKING:
    from hopling.graphs.hop_tables import HopTables

KernelName = Literal["auto", "numba", "none"]

_PAYS_AFTER = 10_000  # tables, 2.5 s in Python; loading numba takes 0.7 s, compiling once 11 s
_MAX_POSTINGS = 20_000  # a piece in more labels than this says little about which is meant


class HopIndex:
    """A graph that `build_index` wrote, as `hopling.graphs.base.Graph` asks.

    `languages` are the preferred languages of labels, the first first. `kernel` says what writes
    the tables of `Search`: "numba", "none" (the tool, in Python), or "auto": numba where it is
    installed, once there were calls enough to pay for loading it. The tables are the same.
    """

    def __init__(
        self,
        folder: str | PathLike[str],
        *,
        languages: Sequence[str] = ("en",),
        kernel: KernelName = "auto",
    ):
        if kernel not in get_args(KernelName):
            raise SettingsError(f"kernel is {kernel!r}; write 'auto', 'numba' or 'none'.")
        self.folder, self.kernel = Path(folder), kernel
        self.languages = tuple(languages)
        manifest = read_manifest(self.folder)
        report = manifest["report"] | {"examples": tuple(manifest["report"]["examples"])}
        self._report = LoadReport(**report)
        self._namespace = Namespace(self._report.namespace)
        arrays = map_arrays(self.folder, manifest)
        self._arrays = arrays
        self._text, self._start = arrays["term_text"], arrays["term_start"]
        self._kind = arrays["term_kind"]
        self._bucket_start = arrays["term_bucket_start"]
        self._bucket_place = arrays["term_bucket_place"]
        self._mask = len(self._bucket_start) - 2
        self._node_label, self._label_text = arrays["node_label"], arrays["label_text"]
        self._label_start = arrays["label_start"]
        self._tables: HopTables | None = None
        self._num_asked = 0
        self._runs = {
            direction: tuple(
                arrays[f"{direction}_{part}"] for part in ("node", "relation", "run", "value")
            )
            for direction in ("outgoing", "incoming")
        }

    @classmethod
    def open(
        cls,
        folder: str | PathLike[str],
        *,
        languages: Sequence[str] = ("en",),
        kernel: KernelName = "auto",
    ) -> "HopIndex":
        """Open an index without reading it.

        Raises SettingsError when the folder holds no whole index of this version.
        """
        return cls(folder, languages=languages, kernel=kernel)

    def __reduce__(self) -> tuple[object, ...]:
        return _reopened, (self.folder, self.languages, self.kernel)

    def __repr__(self) -> str:
        return f"HopIndex({str(self.folder)!r})"

    @property
    def graph_hash(self) -> str:
        """A hash of the content, the same however the files were ordered."""
        return self._report.graph_hash

    @property
    def namespace(self) -> str:
        """What all short ids begin with when they are written as IRIs."""
        return self._report.namespace

    def relations(self) -> tuple[str, ...]:
        """Return the ids of all relations that have an edge."""
        return tuple(self._relations)

    def info(self) -> LoadReport:
        """Return what the index holds, as its building counted it."""
        return self._report

    def resolve(self, names: Sequence[str]) -> list[str | None]:
        """Return the id each name stands for (`ns:m.0abc`, `/m/0abc`, full IRI), None if absent.

        The ids of relations are found too.
        """
        return [self._resolved(name) for name in names]

    def counts(self, nodes: Sequence[str], direction: Direction) -> list[dict[str, int]]:
        """Return, for each node, its relations with the number of edges; no edge is read."""
        starts, relations, runs, _ = self._direction(direction)
        names = self._relations
        found: list[dict[str, int]] = []
        for node in nodes:
            place = self._place(node)
            if place < 0:
                found.append({})
                continue
            first, last = starts[place], starts[place + 1]
            bounds = runs[first : last + 1].tolist()
            found.append(
                {
                    names[relation]: bounds[i + 1] - bounds[i]
                    for i, relation in enumerate(relations[first:last].tolist())
                }
            )
        return found

    def neighbors(
        self,
        nodes: Sequence[str],
        direction: Direction,
        relations: Sequence[str] | None = None,
        limit: int | None = None,
    ) -> list[list[Edge]]:
        """Return, for each node, its edges sorted by (relation, value), at most `limit` of them."""
        wanted = None if relations is None else frozenset(relations)
        self._direction(direction)
        return [self._edges(self._place(node), direction, wanted, limit) for node in nodes]

    def labels(self, nodes: Sequence[str]) -> list[str | None]:
        """Return each node's or relation's label by the label chain, None where it has none."""
        return [self._label(self._place(node)) for node in nodes]

    def search_table(
        self,
        names: Sequence[str],
        direction: Direction,
        properties: Sequence[str],
        form: TableForm,
    ) -> SearchTable | None:
        """Return the first page of a table of `Search`, None where there is no kernel for it."""
        tables = self._tables
        if tables is None or tables.form is not form:
            tables = self._tables = self._opened_tables(form)
            if tables is None:
                return None
        return tables.table(names, direction, properties)

    def _opened_tables(self, form: TableForm) -> "HopTables | None":
        self._num_asked += 1
        if self.kernel == "none" or (self.kernel == "auto" and self._num_asked < _PAYS_AFTER):
            return None
        try:
            from hopling.graphs.hop_tables import HopTables
        except ImportError as error:
            if self.kernel == "auto":
                return None
            raise SettingsError(
                f"kernel is 'numba', which cannot be imported ({error}). "
                "Install it: pip install 'hopling[graphs]'; or write kernel='none'."
            ) from error
        ranks = [rank(language, self.languages) for language in self._languages]
        relations = list(zip(self._relations, self.labels(self._relations), strict=True))
        return HopTables(self._arrays, ranks, relations, form)

    def find(self, name: str, limit: int = 10) -> list[str]:
        """Return ids that a name may mean: the id itself, then those with such a label.

        Labels that are the same come first, then case-folded, ones that begin so, similar ones.
        """
        return distinct(self._meant(name), limit)

    def _meant(self, name: str) -> Iterator[str]:
        key = folded(name)
        if not key:
            return
        if own := self._resolved(name):
            yield own
        same = [row for row in self._label_bucket(key) if folded(self._label_at(row)) == key]
        exact = [row for row in same if self._label_at(row) == name]
        node_of = self._arrays["label_node"]
        for row in chain(exact, same, self._beginning(key), self._similar(key)):
            yield self._term(node_of[row])

    def is_mediator(self, node: str) -> bool:
        """Return whether the node only ties others together, by the rule of its building."""
        place = self._place(node)
        return place >= 0 and self._arrays["term_mediator"][place] == 1

    def nodes(self) -> Iterator[str]:
        """Yield every entity's id, sorted."""
        for place, kind in enumerate(self._kind):
            has_label = kind != RELATION and self._has_label(place)
            if kind != LITERAL and (has_label or self._has_edge(place)):
                yield self._term(place)

    def triples(self) -> Iterator[Triple]:
        """Yield every triple with short ids, sorted; literals with their datatype or language."""
        starts, relations, runs, values = self._runs["outgoing"]
        suffix = self._arrays["term_suffix"]
        for place in range(len(self._kind)):
            for run in range(starts[place], starts[place + 1]):
                for value in values[runs[run] : runs[run + 1]]:
                    is_literal = self._kind[value] == LITERAL
                    yield Triple(
                        self._term(place),
                        self._relations[relations[run]],
                        self._term(value),
                        self._suffixes[suffix[value]] if is_literal else None,
                    )

    @cached_property
    def _relations(self) -> list[str]:
        return [self._term(place) for place in self._arrays["relation_term"]]

    @cached_property
    def _languages(self) -> list[str]:
        return self._texts("language")

    @cached_property
    def _suffixes(self) -> list[str]:
        return self._texts("suffix")

    def _texts(self, name: str) -> list[str]:
        text, start = self._arrays[f"{name}_text"], self._arrays[f"{name}_start"]
        return [str(text[start[i] : start[i + 1]], "utf-8") for i in range(len(start) - 1)]

    def _term(self, place: int) -> str:
        return str(self._text[self._start[place] : self._start[place + 1]], "utf-8")

    def _label_at(self, row: int) -> str:
        start = self._label_start
        return str(self._label_text[start[row] : start[row + 1]], "utf-8")

    def _place(self, node: str) -> int:
        """Return the id's place in the dictionary, -1 if absent."""
        key = node.encode("utf-8", "surrogatepass")
        bucket = crc32(key) & self._mask
        start = self._start
        for place in self._bucket_place[
            self._bucket_start[bucket] : self._bucket_start[bucket + 1]
        ]:
            if self._text[start[place] : start[place + 1]] == key:
                return place
        return -1

    def _resolved(self, name: str) -> str | None:
        if self._place(name) >= 0:
            return name
        for reading in self._namespace.readings(name)[1:]:
            if self._place(reading) >= 0:
                return reading
        return None

    def _direction(self, direction: Direction) -> tuple[memoryview, ...]:
        if direction not in self._runs:
            raise SettingsError(f"direction is {direction!r}; write 'outgoing' or 'incoming'.")
        return self._runs[direction]

    def _edges(
        self, place: int, direction: Direction, wanted: frozenset[str] | None, limit: int | None
    ) -> list[Edge]:
        if place < 0:
            return []
        starts, relations, runs, values = self._runs[direction]
        names, kind = self._relations, self._kind
        edges: list[Edge] = []
        for run in range(starts[place], starts[place + 1]):
            relation = names[relations[run]]
            if wanted is not None and relation not in wanted:
                continue
            first, last = runs[run], runs[run + 1]
            if limit is not None:
                last = min(last, first + limit - len(edges))
            for value in values[first:last]:
                edges.append(Edge(relation, self._term(value), kind[value] == LITERAL))
            if len(edges) == limit:
                break
        return edges

    def _label(self, place: int) -> str | None:
        if place < 0:
            return None
        first, last = self._node_label[place], self._node_label[place + 1]
        if last - first == 1:
            return self._label_at(first)
        names, language = self._languages, self._arrays["label_language"]
        rows = [Label(names[language[row]], self._label_at(row)) for row in range(first, last)]
        label = chosen(rows, self.languages)
        return label.text if label else None

    def _label_bucket(self, key: str) -> memoryview:
        start, place = self._arrays["label_bucket_start"], self._arrays["label_bucket_place"]
        bucket = crc32(key.encode("utf-8", "surrogatepass")) & (len(start) - 2)
        return place[start[bucket] : start[bucket + 1]]

    def _beginning(self, key: str) -> Iterator[int]:
        """Yield rows of longer labels that begin with the folded name, sorted by folded text."""
        order = self._arrays["label_order"]

        def folded_at(row: int) -> str:
            return folded(self._label_at(row))

        longer = islice(order, bisect_right(order, key, key=folded_at), None)
        yield from takewhile(lambda row: folded_at(row).startswith(key), longer)

    def _similar(self, key: str) -> Iterator[int]:
        """Yield rows of labels like the folded name, the likest first."""
        start, place = self._arrays["trigram_start"], self._arrays["trigram_place"]
        points = np.array([ord(character) for character in f" {key} "], np.uint32)
        buckets = np.unique(trigram_bucket(points[:-2], points[1:-1], points[2:]))
        if len(start) == 2:
            return
        postings = [np.asarray(place[start[b] : start[b + 1]]) for b in buckets.tolist()]
        postings = [p for p in postings if len(p) <= _MAX_POSTINGS]
        if not postings:
            return
        rows, shared = np.unique(np.concatenate(postings), return_counts=True)
        starts = np.asarray(self._label_start)
        lengths = starts[rows + 1] - starts[rows]
        best = np.argsort(-2.0 * shared / (lengths + len(key)), kind="stable")[:MAX_CANDIDATES]
        scored = []
        for row in rows[best].tolist():
            text = folded(self._label_at(row))
            if text != key and (score := likeness(key, text)) >= MIN_LIKENESS:
                scored.append((-score, text, row))
        yield from (row for _, _, row in sorted(scored))

    def _degree(self, place: int, direction: str) -> int:
        starts, _, runs, _ = self._runs[direction]
        return runs[starts[place + 1]] - runs[starts[place]]

    def _has_edge(self, place: int) -> bool:
        return any(self._degree(place, direction) for direction in self._runs)

    def _has_label(self, place: int) -> bool:
        return self._node_label[place + 1] > self._node_label[place]


def _reopened(folder: Path, languages: tuple[str, ...], kernel: KernelName) -> HopIndex:
    return HopIndex.open(folder, languages=languages, kernel=kernel)
