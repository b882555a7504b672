"""A graph behind a SPARQL endpoint over HTTP (Virtuoso, QLever, Fuseki, Wikidata, Oxigraph).

Rows come in ordered pages until the server has no more, so that a server's silent cap cuts
nothing. A reply that is not a whole table of results is an error, never an empty table.
Virtuoso sorts no more than 10,000 rows for a page; beyond them it pages a query around the sorted.
"""

import netrc
import os
import threading
import time
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from itertools import chain
from pathlib import Path

import httpx

from hopling.errors import SettingsError, WorldError
from hopling.graphs import queries
from hopling.graphs.base import Direction, Edge
from hopling.graphs.names import Label, chosen, distinct, folded
from hopling.graphs.reply_cache import ReplyCache
from hopling.graphs.terms import (
    LABEL_PREDICATES,
    Namespace,
    Term,
    is_utf8,
    named_node,
    parse_results,
)
from hopling.waiting import asked_wait_s

_BATCH = 100  # ids a query, which keeps it far below what servers refuse
_MAX_WAIT_S = 60.0
_PAGE = "{query} LIMIT {rows:d} OFFSET {first:d}"
_NESTED_PAGE = "SELECT * WHERE {{ {{ {query} }} }} LIMIT {rows:d} OFFSET {first:d}"
# an exact literal has one tag; only a scan of all labels would find a name whatever its tag
_TAGS = [
    "ar", "bg", "bn", "ca", "cs", "da", "de", "el", "en", "en-ca", "en-gb", "en-us", "es", "et",
    "eu", "fa", "fi", "fr", "gl", "he", "hi", "hr", "hu", "id", "it", "ja", "ko", "lt", "lv", "ms",
    "mul", "nb", "nl", "no", "pl", "pt", "pt-br", "ro", "ru", "sk", "sl", "sr", "sv", "ta", "th",
    "tr", "uk", "ur", "vi", "zh", "zh-hans", "zh-hant",
]  # fmt: skip


@dataclass(frozen=True)
class Connection:
    """How an endpoint is spoken to; `transport`, `sleep` and `clock` are for tests.

    A try ends after `timeout_s`, also when bytes still trickle in. At most `max_concurrent` queries
    are under way at once, from all threads. `page_rows` are asked for at once, `default_graph`
    names the graph to read (Virtuoso reads all of its graphs without one). `cache` keeps whole
    replies; without one nothing is kept.
    """

    timeout_s: float = 30.0
    max_tries: int = 3
    max_concurrent: int = 4
    page_rows: int = 10_000
    default_graph: str = ""
    cache: ReplyCache | None = None
    transport: httpx.BaseTransport | None = None
    sleep: Callable[[float], None] = time.sleep
    clock: Callable[[], float] = time.monotonic

    def __post_init__(self) -> None:
        for name in ("max_tries", "max_concurrent", "page_rows"):
            if getattr(self, name) < 1:
                raise SettingsError(f"{name} is {getattr(self, name)}; expected at least 1.")


class _SortLimit(WorldError):
    """The server sorts fewer rows than a page far into a table needs."""


class SparqlEndpoint:
    """A graph as `hopling.graphs.base.Graph` asks, by SPARQL over HTTP.

    User and password belong in the URL or in ~/.netrc (NETRC names another file); no message
    repeats them.
    Raises WorldError when the endpoint has not answered after all tries.
    `row_cap` is the number of rows at which the server was seen to cut, None until then.
    """

    def __init__(
        self,
        url: str,
        *,
        namespace: str = "",
        labels: Sequence[str] = LABEL_PREDICATES,
        languages: Sequence[str] = ("en",),
        connection: Connection | None = None,
    ):
        try:
            self._url = httpx.URL(url)
        except httpx.InvalidURL as error:
            raise SettingsError(f"The endpoint's URL cannot be read: {error}.") from None
        if self._url.scheme not in ("http", "https") or not self._url.host:
            raise SettingsError(
                "The endpoint's URL must begin with http:// or https:// and a host."
            )
        self.languages = tuple(languages)
        self.row_cap: int | None = None
        self._largest_page = 0
        self._page = _PAGE
        self._connection = connection or Connection()
        self._namespace = Namespace(namespace)
        self._predicates = sorted(self._namespace.predicates(labels))
        self._places = threading.BoundedSemaphore(self._connection.max_concurrent)
        self._client = httpx.Client(
            auth=_netrc_auth(self._url),
            timeout=self._connection.timeout_s,
            transport=self._connection.transport,
            headers={
                "User-Agent": f"hopling/{version('hopling')} (httpx {httpx.__version__})",
                "Accept": "application/sparql-results+json",
            },
        )

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def __enter__(self) -> "SparqlEndpoint":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"SparqlEndpoint({self._name!r})"

    def resolve(self, names: Sequence[str]) -> list[str | None]:
        """Return the id each name stands for (`ns:m.0abc`, `/m/0abc`, full IRI), None if absent."""
        readings = [
            [r for r in self._namespace.readings(name) if self._namespace.is_id(r)]
            for name in names
        ]
        known: set[str] = set()
        for iris in self._batches([r for each in readings for r in each]):
            known |= {row["n"].value for row in self._rows(queries.present(iris))}
        return [next((r for r in each if r in known), None) for each in readings]

    def counts(self, nodes: Sequence[str], direction: Direction) -> list[dict[str, int]]:
        """Return, for each node, its relations with the number of edges."""
        _check(direction)
        found: dict[str, dict[str, int]] = defaultdict(dict)
        for iris in self._batches(nodes):
            query = queries.relation_counts(iris, direction, hidden=self._predicates)
            for row in self._rows(query):
                found[row["n"].value][row["p"].value] = int(row["c"].value)
        return [dict(sorted(found[node].items())) for node in nodes]

    def neighbors(
        self,
        nodes: Sequence[str],
        direction: Direction,
        relations: Sequence[str] | None = None,
        limit: int | None = None,
    ) -> list[list[Edge]]:
        """Return, for each node, its edges sorted by (relation, value), at most `limit` of them."""
        _check(direction)
        found: dict[str, list[Edge]] = defaultdict(list)
        wanted = None if relations is None else self._iris(relations)
        if limit == 0 or wanted == []:
            return [[] for _ in nodes]
        is_page = limit is not None and limit <= self._connection.page_rows
        for iris in self._batches(nodes):
            query = queries.edges(
                iris,
                direction,
                hidden=self._predicates,
                relations=wanted,
                limit=limit if is_page else None,  # of more rows, not all may be sorted
                namespace=self._namespace,
            )
            for row in self._rows(query):
                value = row["v"]
                # Virtuoso gives IRIs of VALUES as texts where it unites several tables
                node, relation = (self._namespace.shorten(row[name].value) for name in "np")
                found[node].append(Edge(relation, value.value, value.literal))
        return [sorted(found[node])[:limit] for node in nodes]

    def labels(self, nodes: Sequence[str]) -> list[str | None]:
        """Return each node's or relation's label by the label chain, None where it has none."""
        found: dict[str, list[Label]] = defaultdict(list)
        for iris in self._batches(nodes) if self._predicates else ():
            for row in self._rows(queries.label_rows(iris, self._predicates)):
                label = Label(row["l"].language, row["l"].value)
                found[row["n"].value].append(label)
        best = [chosen(found[node], self.languages) for node in nodes]
        return [label.text if label else None for label in best]

    def find(self, name: str, limit: int = 10) -> list[str]:
        """Return ids that a name may mean: the id itself, then those with such a label.

        Labels that are the same come first, then other cases: the usual ones (lower, upper, title).
        Tags are the preferred and common ones; an endpoint has no index for more.
        """
        key = folded(name)
        if not key or "\0" in name or not is_utf8(name):  # Virtuoso fails on a NUL
            return []
        return distinct(chain(filter(None, self.resolve([name])), self._named(name, key)), limit)

    def _named(self, name: str, key: str) -> Iterator[str]:
        if not self._predicates:
            return
        forms = [name, *(unicodedata.normalize(form, name) for form in ("NFC", "NFD"))]
        forms += [key, key.upper(), key.title(), key.capitalize()]
        languages = dict.fromkeys([*self.languages, *_TAGS])
        query = queries.named(dict.fromkeys(forms), languages, predicates=self._predicates)
        yield from (
            id for _, id in sorted((r["l"].value != name, r["n"].value) for r in self._rows(query))
        )

    def query(self, sparql: str, timeout_s: float | None = None) -> bool | list[dict[str, Term]]:
        """Return the rows of a SELECT, or the truth of an ASK, in one reply.

        Raises WorldError also when as many rows came as the server is known to cut at.
        """
        return self._ask(sparql, timeout_s, may_be_cut=False)

    def probe_row_cap(self, rows: int = 20_000) -> int | None:
        """Return at how many rows the server cuts, None if not below `rows`; sets `row_cap`."""
        pattern = "SELECT ?s ?p ?o WHERE { ?s ?p ?o }"
        found = self._table(f"{pattern} LIMIT {rows:d}")
        if len(found) < rows and self._table(f"{pattern} OFFSET {len(found):d} LIMIT 1"):
            self.row_cap = len(found)
        return self.row_cap

    @property
    def _name(self) -> str:
        """The URL without user, password and parameters."""
        return str(self._url.copy_with(userinfo=b"", query=None, fragment=None))

    def _iris(self, nodes: Sequence[str]) -> list[str]:
        """Return the IRIs of what may be ids; strict servers refuse a query with any other."""
        known = (node for node in dict.fromkeys(nodes) if self._namespace.is_id(node))
        return [iri for iri in map(self._namespace.expand, known) if named_node(iri)]

    def _batches(self, nodes: Sequence[str]) -> Iterator[list[str]]:
        iris = self._iris(nodes)
        for start in range(0, len(iris), _BATCH):
            yield iris[start : start + _BATCH]

    def _rows(self, query: str) -> list[dict[str, Term]]:
        """Return all rows of a sorted query, page by page.

        A short page is the last one if the server has given a longer one before; else one more
        is asked for, since the server may cut at fewer rows than a page has.
        """
        size = self._connection.page_rows
        rows: list[dict[str, Term]] = []
        while True:
            page = self._sorted_page(query, size, len(rows))
            if page and page == rows[-len(page) :]:
                raise WorldError(f"{self._name} gave the same page twice: it ignores OFFSET.")
            if page and rows and len(rows) < size:
                self.row_cap = len(rows) if self.row_cap is None else self.row_cap
            rows += page
            if len(page) < min(size, self._largest_page) or not page:
                return rows
            self._largest_page = max(self._largest_page, len(page))

    def _sorted_page(self, query: str, rows: int, first: int) -> list[dict[str, Term]]:
        try:
            return self._table(self._page.format(query=query, rows=rows, first=first))
        except _SortLimit:
            if self._page == _NESTED_PAGE:
                raise
        self._page = _NESTED_PAGE
        return self._sorted_page(query, rows, first)

    def _table(self, query: str) -> list[dict[str, Term]]:
        answer = self._ask(query)
        if isinstance(answer, bool):
            raise WorldError(f"{self._name} answered a SELECT with {answer}.")
        return answer

    def _ask(
        self, query: str, timeout_s: float | None = None, *, may_be_cut: bool = True
    ) -> bool | list[dict[str, Term]]:
        cache = self._connection.cache
        key = str(self._url), self._connection.default_graph, query
        kept = cache.read(*key) if cache is not None else None
        body = kept if kept is not None else self._whole(query, timeout_s)
        try:
            answer = parse_results(body, self._namespace)
        except ValueError as error:
            start = body[:80].decode("utf-8", "replace")
            raise WorldError(
                f"{self._name} answered with something that is not SPARQL results in JSON "
                f"({error}): {start!r}. Is this the address of the endpoint itself?"
            ) from error
        is_cut = isinstance(answer, list) and self.row_cap and len(answer) >= self.row_cap
        if is_cut and not may_be_cut:
            raise WorldError(
                f"{self._name} gave {self.row_cap} rows, where it cuts without a word. Raise the "
                "server's limit (Virtuoso: ResultSetMaxRows), or add LIMIT and OFFSET."
            )
        if cache is not None and kept is None:
            cache.write(body, *key)
        return answer

    def _whole(self, query: str, timeout_s: float | None) -> bytes:
        """Return a reply's body; sets `row_cap` where Virtuoso says that it cut."""
        response = self._post(query, timeout_s or self._connection.timeout_s)
        if "X-SQL-State" in response.headers:
            state = response.headers["X-SQL-State"]
            raise WorldError(f"{self._name} gave part of the rows only (SQL state {state}).")
        cap = response.headers.get("X-SPARQL-MaxRows", "")
        self.row_cap = int(cap) if cap.isdecimal() else self.row_cap
        return response.content

    def _post(self, query: str, timeout_s: float) -> httpx.Response:
        """Return the first reply with status 200; tries again what may pass, waiting as told."""
        form = {"query": query}
        if self._connection.default_graph:
            form["default-graph-uri"] = self._connection.default_graph
        problem = ""
        for attempt in range(self._connection.max_tries):
            wait_s = 2.0**attempt
            try:
                with self._places:
                    response = self._sent(form, timeout_s)
            except httpx.TimeoutException:
                problem = f"did not answer within {timeout_s:g} s"
            except httpx.TransportError as error:
                problem = f"could not be read ({type(error).__name__})"
            else:
                if response.status_code == 200:
                    return response
                problem = f"answered with status {response.status_code}"
                if b"SR353" in response.content:
                    raise _SortLimit(f"{self._name} {problem}: {response.text[:200]!r}.")
                if response.status_code != 429 and response.status_code < 500:
                    start = response.text[:200]
                    raise WorldError(f"{self._name} {problem}: {start!r}.")
                wait_s = asked_wait_s(response.headers, wait_s)
            if wait_s > _MAX_WAIT_S:
                raise WorldError(f"{self._name} {problem} and asks to wait {wait_s:g} s.")
            if attempt + 1 < self._connection.max_tries:
                self._connection.sleep(wait_s)
        tries = self._connection.max_tries
        raise WorldError(f"{self._name} {problem} ({tries} tries). Is the server up?")

    def _sent(self, form: dict[str, str], timeout_s: float) -> httpx.Response:
        """Return a reply read to its end; httpx limits each read, this limits their sum."""
        clock = self._connection.clock
        late = clock() + timeout_s
        body = bytearray()
        with self._client.stream("POST", self._url, data=form, timeout=timeout_s) as response:
            for piece in response.iter_bytes():
                body += piece
                if clock() > late:
                    raise httpx.ReadTimeout("the reply is not whole in time")
        headers = [
            (name, value)
            for name, value in response.headers.multi_items()
            if name.lower() not in ("content-encoding", "content-length", "transfer-encoding")
        ]
        return httpx.Response(response.status_code, headers=headers, content=bytes(body))


def _netrc_auth(url: httpx.URL) -> httpx.Auth | None:
    """Return the name and password of the user's netrc file, None where the URL has its own."""
    file = Path(os.environ.get("NETRC") or Path.home() / ".netrc")
    if url.userinfo or not file.is_file():
        return None
    try:
        return httpx.NetRCAuth(str(file))
    except (netrc.NetrcParseError, OSError) as error:
        raise SettingsError(
            f"{file} cannot be read ({error}). Mend it, or set NETRC to another."
        ) from None


def _check(direction: Direction) -> None:
    if direction not in ("outgoing", "incoming"):
        raise SettingsError(f"direction is {direction!r}; write 'outgoing' or 'incoming'.")
