"""A small graph as text, and an endpoint that answers from memory."""

import re
from collections.abc import Callable
from pathlib import Path
from urllib.parse import parse_qs

import httpx
import pyoxigraph as ox
import pytest

from hopling.graphs import Connection, SparqlEndpoint

NS = "http://t.example/"
RDFS_LABEL = "http://www.w3.org/2000/01/rdf-schema#label"

FILMS = f"""\
# people and films; r1 and r2 are roles without a name
<{NS}ann> <{RDFS_LABEL}> "Ann Lee"@en .
<{NS}bo> <{RDFS_LABEL}> "Bo D\\u00E4le"@en-GB .
<{NS}bo> <{RDFS_LABEL}> "Bo auf Deutsch"@de .
<{NS}kismet> <{RDFS_LABEL}> "Kismet" .
<{NS}low> <{RDFS_LABEL}> "Low"@fr .
<{NS}directed_by> <{RDFS_LABEL}> "directed by"@en .
<{NS}kismet> <{NS}directed_by> <{NS}ann> .
<{NS}low> <{NS}directed_by> <{NS}ann> .
<{NS}low> <{NS}directed_by> <{NS}ann> .
<{NS}low> <{NS}follows> <{NS}low> .
<{NS}bo> <{NS}plays> <{NS}r1> .
<{NS}bo> <{NS}plays> _:r2 .
<{NS}r1> <{NS}film> <{NS}kismet> .
_:r2 <{NS}film> <{NS}low> .
<{NS}kismet> <{NS}title> "The \\"K\\"\\n\\\\"@en .
<{NS}kismet> <{NS}title> "Kismet"^^<http://www.w3.org/2001/XMLSchema#string> .
<{NS}kismet> <{NS}year> "1999"^^<http://www.w3.org/2001/XMLSchema#gYear> .
<{NS}kismet> <http://other.example/see> <http://other.example/k?a=(1)> .
"""


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str, str], Path]:
    """Return a function that writes a file and returns its path."""

    def written(name: str, text: str) -> Path:
        path = tmp_path / name
        path.write_bytes(text.encode())
        return path

    return written


@pytest.fixture
def films(write: Callable[[str, str], Path]) -> Path:
    """Return a file of N-Triples about films."""
    return write("films.nt", FILMS)


class Server:
    """Answers SPARQL over a fake transport; `cap` is where it cuts tables in silence."""

    def __init__(self, text: str, cap: int | None = None):
        self.store = ox.Store()
        skolemised = re.sub(r"_:(\w+)", r"<genid:0-\1>", text)
        self.store.load(skolemised.encode(), format=ox.RdfFormat.N_TRIPLES)
        self.cap = cap
        self.requests: list[httpx.Request] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        query = parse_qs(request.content.decode())["query"][0]
        body = self.store.query(query).serialize(format=ox.QueryResultsFormat.JSON)
        table = httpx.Response(200, content=body).json()
        if self.cap is not None and "results" in table:
            table["results"]["bindings"] = table["results"]["bindings"][: self.cap]
        return httpx.Response(200, json=table)


@pytest.fixture
def server() -> type[Server]:
    """Return the class of servers in memory."""
    return Server


@pytest.fixture
def endpoint() -> Callable[..., SparqlEndpoint]:
    """Return a function that makes an endpoint of a handler of requests."""

    def made(handler: Callable[[httpx.Request], httpx.Response], **settings) -> SparqlEndpoint:
        settings.setdefault("sleep", lambda seconds: None)
        connection = Connection(transport=httpx.MockTransport(handler), **settings)
        return SparqlEndpoint("http://u:pw@t.example:1/sparql", namespace=NS, connection=connection)

    return made
