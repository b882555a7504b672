"""A graph in an embedded RDF store (pyoxigraph), which also answers SPARQL.

One-hop questions go to the store as terms, never as query text. Queries run in a child process
with a hard limit, since a query cannot be stopped from within and may abort its process.
Literals come in the store's canonical form ("05"^^xsd:integer as 5); `HopIndex` keeps the file's.
"""

import json
import shutil
import subprocess
import sys
import tempfile
import threading
import weakref
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import chain
from os import PathLike
from pathlib import Path

import pyoxigraph as ox

from hopling.errors import DataError, SettingsError, WorldError
from hopling.graphs.base import Direction, Edge
from hopling.graphs.layout import replaced
from hopling.graphs.names import Label, NameTable, chosen, distinct
from hopling.graphs.sources import Lines, kind_of
from hopling.graphs.terms import (
    LABEL_PREDICATES,
    Namespace,
    Term,
    Triple,
    named_node,
    parse_results,
    refuse_service,
)

MANIFEST = {"format": "hopling rdf store", "version": 1}
_START_LIMIT_S = 60.0

PathName = str | PathLike[str]


class RdfStore:
    """A graph of a folder that `load` wrote, as `hopling.graphs.base.Graph` asks.

    `labels` are the predicates whose literals are labels, `languages` the preferred ones.
    Close it, or use it in a `with` block, to end its child process.
    """

    def __init__(
        self,
        folder: PathName,
        *,
        namespace: str = "",
        labels: Sequence[str] = LABEL_PREDICATES,
        languages: Sequence[str] = ("en",),
    ):
        self.folder = Path(folder)
        if not (self.folder / "manifest.json").is_file():
            raise SettingsError(f"{folder} is not an RDF store of hopling. Load one: RdfStore.load")
        self.languages = tuple(languages)
        self._namespace = Namespace(namespace)
        predicates = sorted(self._namespace.predicates(labels))
        self._label_predicates = [ox.NamedNode(iri) for iri in predicates]
        self._store = ox.Store.read_only(str(self.folder / "store"))
        self._child = _Child(self.folder / "store")
        self._closing = weakref.finalize(self, _closed, self._child, None)

    @classmethod
    def load(
        cls,
        sources: PathName | Sequence[PathName],
        folder: PathName | None = None,
        *,
        namespace: str = "",
        labels: Sequence[str] = LABEL_PREDICATES,
        languages: Sequence[str] = ("en",),
    ) -> "RdfStore":
        """Load N-Triples files into a folder, by default one that goes when the store is closed.

        Raises DataError at the first bad line.
        """
        paths = [Path(sources)] if isinstance(sources, str | PathLike) else [*map(Path, sources)]
        for path in paths:
            if kind_of(path) != "nt":
                raise SettingsError(f"{path} is not N-Triples; an RDF store needs IRIs.")
        passing = Path(tempfile.mkdtemp(prefix="hopling-")) if folder is None else None
        target = passing or Path(str(folder)).absolute()
        try:
            with replaced(target) as fresh:
                store = ox.Store(str(fresh / "store"))
                store.bulk_extend(_quads(paths))
                store.flush()
                del store
                (fresh / "manifest.json").write_text(json.dumps(MANIFEST), encoding="utf-8")
            opened = cls(target, namespace=namespace, labels=labels, languages=languages)
        except BaseException:
            if passing:
                shutil.rmtree(passing, ignore_errors=True)
            raise
        if passing:
            opened._closing.detach()
            opened._closing = weakref.finalize(opened, _closed, opened._child, passing)
        return opened

    def close(self) -> None:
        """End the child process, and remove the folder if it was a passing one."""
        self._closing()

    def __enter__(self) -> "RdfStore":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __len__(self) -> int:
        return len(self._store)

    def resolve(self, names: Sequence[str]) -> list[str | None]:
        """Return the id each name stands for (`ns:m.0abc`, `/m/0abc`, full IRI), None if absent."""
        return [
            next((r for r in self._namespace.readings(name) if self._holds(r)), None)
            for name in names
        ]

    def counts(self, nodes: Sequence[str], direction: Direction) -> list[dict[str, int]]:
        """Return, for each node, its relations with the number of edges."""
        found = []
        for node in nodes:
            edges = self._edges(node, direction, None)
            found.append(dict(sorted(Counter(edge.relation for edge in edges).items())))
        return found

    def neighbors(
        self,
        nodes: Sequence[str],
        direction: Direction,
        relations: Sequence[str] | None = None,
        limit: int | None = None,
    ) -> list[list[Edge]]:
        """Return, for each node, its edges sorted by (relation, value), at most `limit` of them."""
        return [sorted(self._edges(node, direction, relations))[:limit] for node in nodes]

    def labels(self, nodes: Sequence[str]) -> list[str | None]:
        """Return each node's or relation's label by the label chain, None where it has none."""
        return [self._label(node) for node in nodes]

    def find(self, name: str, limit: int = 10) -> list[str]:
        """Return ids that a name may mean: the id itself, then those with such a label.

        Labels that are the same come first, then case-folded, ones that begin so, similar ones.
        """
        own = filter(None, self.resolve([name]))
        return distinct(chain(own, self._names.meant(name)), limit)

    def query(self, sparql: str, timeout_s: float = 30.0) -> bool | list[dict[str, Term]]:
        """Return the rows of a SELECT, or the truth of an ASK.

        Raises SettingsError for a query that is not SPARQL, gives triples or holds SERVICE;
        WorldError when it took longer than `timeout_s`, or ended its process.
        """
        refuse_service(sparql)
        reply = self._child.ask(sparql, timeout_s)
        if "refused" in reply:
            raise SettingsError(f"The store cannot run this query: {reply['refused']}.")
        if "failed" in reply:
            raise WorldError(f"The store failed on this query: {reply['failed']}.")
        return parse_results(reply["results"], self._namespace)

    @cached_property
    def _names(self) -> NameTable:
        return NameTable(
            (quad.object.value, self._namespace.shorten(quad.subject.value))
            for predicate in self._label_predicates
            for quad in self._store.quads_for_pattern(None, predicate, None)
            if isinstance(quad.object, ox.Literal) and isinstance(quad.subject, ox.NamedNode)
        )

    def _node(self, node: str) -> ox.NamedNode | None:
        return named_node(self._namespace.expand(node)) if self._namespace.is_id(node) else None

    def _holds(self, node: str) -> bool:
        term = self._node(node)
        if term is None:
            return False
        patterns = [(term, None, None), (None, term, None), (None, None, term)]
        return any(
            next(self._store.quads_for_pattern(*pattern), None) is not None for pattern in patterns
        )

    def _edges(
        self, node: str, direction: Direction, relations: Sequence[str] | None
    ) -> Iterator[Edge]:
        term = self._node(node)
        if direction not in ("outgoing", "incoming"):
            raise SettingsError(f"direction is {direction!r}; write 'outgoing' or 'incoming'.")
        if term is None:
            return
        wanted = [None] if relations is None else [self._node(r) for r in sorted(set(relations))]
        for predicate in wanted:
            if predicate is None and relations is not None:
                continue
            ends = (term, predicate, None) if direction == "outgoing" else (None, predicate, term)
            for quad in self._store.quads_for_pattern(*ends):
                value = quad.object if direction == "outgoing" else quad.subject
                assert not isinstance(value, ox.Triple)  # `load` reads none
                literal = isinstance(value, ox.Literal)
                if literal and quad.predicate in self._label_predicates:
                    continue
                shorten = self._namespace.shorten
                text = value.value if literal else shorten(value.value)
                yield Edge(shorten(quad.predicate.value), text, literal)

    def _label(self, node: str) -> str | None:
        term = self._node(node)
        if term is None:
            return None
        rows = [
            Label((quad.object.language or "").lower(), quad.object.value)
            for predicate in self._label_predicates
            for quad in self._store.quads_for_pattern(term, predicate, None)
            if isinstance(quad.object, ox.Literal)
        ]
        label = chosen(rows, self.languages)
        return label.text if label else None


class _Child:
    """The process that runs queries; started when needed, killed when late."""

    def __init__(self, store: Path):
        self._store = store
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None

    def ask(self, query: str, limit_s: float) -> dict[str, str]:
        request = json.dumps({"query": query, "limit_s": limit_s}).encode() + b"\n"
        with self._lock:
            if self._process is None or self._process.poll() is not None:
                self._start()
            return self._exchange(request, limit_s)

    def stop(self) -> None:
        if self._process is not None:
            process, self._process = self._process, None
            process.kill()
            process.communicate()

    def _start(self) -> None:
        self.stop()
        script = str(Path(__file__).with_name("rdf_worker.py"))
        # -P keeps the script's own folder, whose names shadow others, off the path
        self._process = subprocess.Popen(
            [sys.executable, "-P", script, str(self._store)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        self._exchange(b"", _START_LIMIT_S)

    def _exchange(self, request: bytes, limit_s: float) -> dict[str, str]:
        process = self._process
        assert process is not None
        assert process.stdin is not None
        assert process.stdout is not None
        late = threading.Event()

        def kill() -> None:
            late.set()
            process.kill()

        timer = threading.Timer(limit_s, kill)
        timer.start()
        try:
            process.stdin.write(request)
            process.stdin.flush()
            reply = process.stdout.readline()
        except BrokenPipeError:
            reply = b""
        finally:
            timer.cancel()
            timer.join()
        if reply.endswith(b"\n") and not late.is_set():
            return json.loads(reply)
        self.stop()
        if late.is_set():
            raise WorldError(f"The query took longer than {limit_s:g} s and was stopped.")
        raise WorldError(f"The query ended its process (exit status {process.returncode}).")


def _quads(paths: Sequence[Path]) -> Iterator[ox.Quad]:
    lines = Lines()
    for scope, path in enumerate(paths):
        for triple in lines.triples(path, str(scope)):
            try:
                yield _quad(triple)
            except ValueError as error:
                raise DataError(f"{lines.place}: {error}. Mend the line.") from error


def _quad(triple: Triple) -> ox.Quad:
    head, relation, tail, suffix = triple
    value: ox.NamedNode | ox.Literal
    if suffix is None:
        value = ox.NamedNode(tail)
    elif suffix.startswith("@"):
        value = ox.Literal(tail, language=suffix[1:])
    else:
        value = ox.Literal(tail, datatype=ox.NamedNode(suffix[2:])) if suffix else ox.Literal(tail)
    return ox.Quad(ox.NamedNode(head), ox.NamedNode(relation), value)


def _closed(child: _Child, passing: Path | None) -> None:
    child.stop()
    if passing:
        shutil.rmtree(passing, ignore_errors=True)
