"""Tests of hopling.graphs.sparql: a fake transport, and an Oxigraph server on loopback."""

import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import parse_qs

import httpx
import pytest

from hopling.errors import SettingsError, WorldError
from hopling.graphs import Connection, Edge, HopIndex, SparqlEndpoint, build_index
from hopling.testing import check_graph

NS = "http://t.example/"
NAME = "<http://www.w3.org/2000/01/rdf-schema#label>"
Endpoint = Callable[..., SparqlEndpoint]
EMPTY = {"head": {"vars": []}, "results": {"bindings": []}}


@pytest.mark.parametrize("cap", [None, 3, 1])
def test_it_is_a_graph_whatever_the_server_cuts(
    cap: int | None, films: Path, endpoint: Endpoint, server: Callable, tmp_path: Path
) -> None:
    """Ours: hopling.testing.check_graph; BUGS.md B02."""
    build_index(films, tmp_path / "index", namespace=NS)
    index = HopIndex.open(tmp_path / "index")
    nodes = list(index.nodes())
    graph = endpoint(server(films.read_text(), cap))
    check_graph(graph, nodes)
    _check_equal(graph, index, [*nodes, "directed_by", "nobody"])


def _check_equal(graph: SparqlEndpoint, index: HopIndex, nodes: list[str]) -> None:
    for direction in ("outgoing", "incoming"):
        assert graph.counts(nodes, direction) == index.counts(nodes, direction)
        assert graph.neighbors(nodes, direction) == index.neighbors(nodes, direction)
        cut = index.neighbors(nodes, direction, ["directed_by", "film", "title"], 1)
        assert graph.neighbors(nodes, direction, ["directed_by", "film", "title"], 1) == cut
    assert graph.labels(nodes) == index.labels(nodes)
    assert graph.resolve([f"ns:{node}" for node in nodes]) == index.resolve(
        [f"ns:{node}" for node in nodes]
    )
    for name in ("Ann Lee", "ann lee", "ANN LEE", "Kismet", "nobody at all"):
        assert graph.find(name) == index.find(name)


def test_a_silent_cap_hides_nothing(endpoint: Endpoint, server: Callable) -> None:
    """BUGS.md B02: at most 3 rows a reply, 7 neighbors."""
    text = "".join(f"<{NS}a> <{NS}p> <{NS}{i}> .\n" for i in range(7))
    capped = server(text, 3)
    graph = endpoint(capped)
    (edges,) = graph.neighbors(["a"], "outgoing")
    assert edges == [Edge("p", str(i)) for i in range(7)]
    assert graph.row_cap == 3
    with pytest.raises(WorldError, match="gave 3 rows, where it cuts"):
        graph.query("SELECT * { ?s ?p ?o }")
    assert graph.query("SELECT * { ?s ?p ?o } LIMIT 2") != []


def test_the_cap_can_be_probed(endpoint: Endpoint, server: Callable) -> None:
    """BUGS.md B02: a doctor's command detects the cap once."""
    text = "".join(f"<{NS}a> <{NS}p> <{NS}{i}> .\n" for i in range(7))
    assert endpoint(server(text, 3)).probe_row_cap(10) == 3
    assert endpoint(server(text)).probe_row_cap(10) is None
    assert endpoint(server(text, 5)).probe_row_cap(5) is None


def test_a_server_that_ignores_offset_is_noticed(endpoint: Endpoint, server: Callable) -> None:
    """Ours: or paging would never end."""
    handler = server("".join(f"<{NS}a> <{NS}p> <{NS}{i}> .\n" for i in range(7)))

    def deaf(request: httpx.Request) -> httpx.Response:
        query = parse_qs(request.content.decode())["query"][0].rsplit(" OFFSET ", 1)[0]
        return handler(httpx.Request("POST", request.url, data={"query": query}))

    with pytest.raises(WorldError, match="ignores OFFSET"):
        endpoint(deaf, page_rows=3).neighbors(["a"], "outgoing")


def test_many_ids_go_in_several_posts(endpoint: Endpoint) -> None:
    """BUGS.md B06: 400 ids of 90 characters; the URL stays short, the order is the caller's."""
    lengths: list[int] = []

    def handler(request: httpx.Request) -> httpx.Response:
        lengths.append(len(request.content))
        assert request.method == "POST"
        return httpx.Response(414 if len(str(request.url)) > 8000 else 200, json=EMPTY)

    ids = [f"{'x' * 85}{i:05d}" for i in range(400)]
    assert endpoint(handler).counts(ids, "outgoing") == [{}] * 400
    assert len(lengths) == 4


def test_a_throttled_call_waits_as_told_and_tries_again(endpoint: Endpoint) -> None:
    """BUGS.md B07: 429, an HTML body and Retry-After, then 200."""
    waits: list[float] = []
    replies = [
        httpx.Response(429, html="<html>slow down</html>", headers={"Retry-After": "7"}),
        httpx.Response(
            503,
            headers={
                "Retry-After": "Wed, 21 Oct 2026 07:28:05 GMT",
                "Date": "Wed, 21 Oct 2026 07:28:00 GMT",
            },
        ),
        httpx.Response(200, json=EMPTY),
    ]
    seen: list[httpx.Request] = []

    def handler(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        return replies.pop(0)

    assert endpoint(handler, sleep=waits.append).query("SELECT * {}") == []
    assert waits == [7.0, 5.0]
    assert len(seen) == 3
    assert seen[0].headers["User-Agent"].startswith("hopling/")
    assert seen[0].headers["Accept"] == "application/sparql-results+json"


@pytest.mark.parametrize("status", [429, 500, 503])
def test_three_tries_and_no_more(status: int, endpoint: Endpoint) -> None:
    """BUGS.md B07: a failed reply is no empty table; B35: the message keeps the password."""
    waits: list[float] = []
    graph = endpoint(lambda request: httpx.Response(status), sleep=waits.append)
    with pytest.raises(WorldError, match=f"status {status} .3 tries") as caught:
        graph.neighbors(["a"], "outgoing")
    assert waits == [1.0, 2.0]
    assert "http://t.example:1/sparql" in str(caught.value)
    assert "pw" not in str(caught.value) + repr(graph)


def test_a_permanent_refusal_is_not_tried_again(endpoint: Endpoint) -> None:
    """BUGS.md B36."""
    waits: list[float] = []
    graph = endpoint(lambda request: httpx.Response(403, text="no robots"), sleep=waits.append)
    with pytest.raises(WorldError, match=r"status 403: 'no robots'"):
        graph.labels(["a"])
    assert waits == []


def test_a_server_that_asks_for_an_hour_is_left_alone(endpoint: Endpoint) -> None:
    """Ours: a rollout cannot wait that long."""
    waits: list[float] = []
    reply = httpx.Response(429, headers={"Retry-After": "3600"})
    with pytest.raises(WorldError, match="asks to wait 3600 s"):
        endpoint(lambda request: reply, sleep=waits.append).labels(["a"])
    assert waits == []


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (httpx.ConnectError("refused"), "could not be read .ConnectError. .3 tries"),
        (httpx.ReadTimeout("late"), "did not answer within 2 s .3 tries"),
        (httpx.RemoteProtocolError("cut"), "could not be read"),
    ],
)
def test_a_server_that_is_down_is_a_world_error(
    error: Exception, words: str, endpoint: Endpoint
) -> None:
    """Issue 2, "Bad input": an endpoint that is down."""

    def handler(request: httpx.Request) -> httpx.Response:
        raise error

    with pytest.raises(WorldError, match=words):
        endpoint(handler, timeout_s=2).resolve(["a"])


@pytest.mark.parametrize(
    "reply",
    [
        httpx.Response(200, html="<html>Virtuoso</html>"),
        httpx.Response(200, text='{"head": {}, "results": {"bindings": [{"n": {"type": "ur'),
        httpx.Response(200, text=""),
        httpx.Response(200, json={"boolean": True}),
        httpx.Response(200, json=EMPTY, headers={"X-SQL-State": "S1TAT"}),
    ],
)
def test_a_reply_that_is_no_whole_table_is_an_error(
    reply: httpx.Response, endpoint: Endpoint
) -> None:
    """BUGS.md B07, B08: HTML, a cut body, an ASK's answer, Virtuoso's partial results."""
    with pytest.raises(WorldError, match=r"^http://t\.example:1/sparql (answered|gave)"):
        endpoint(lambda request: reply).neighbors(["a"], "outgoing")


def test_ids_and_names_cannot_become_query_text(endpoint: Endpoint, server: Callable) -> None:
    """BUGS.md B01."""
    text = f'<{NS}a> <{NS}p> <{NS}b> .\n<{NS}o> {NAME} "O\'Neil \\"the \\\\ cat\\"" .\n'
    handler = server(text)
    graph = endpoint(handler)
    hostile = "http://t.example/none> ?p ?o } #"
    assert graph.resolve([hostile]) == [None]
    assert graph.neighbors([hostile], "outgoing", [hostile]) == [[]]
    assert graph.neighbors(["a"], "outgoing", [hostile]) == [[]]
    assert handler.requests == []
    assert graph.find('O\'Neil "the \\ cat"') == ["o"]


def test_the_default_graph_is_named(endpoint: Endpoint) -> None:
    """MEASURED.md, pitfall 9: Virtuoso reads all graphs without one; SPARQL Protocol, 2.1.4."""
    forms: list[dict[str, list[str]]] = []

    def handler(request: httpx.Request) -> httpx.Response:
        forms.append(parse_qs(request.content.decode()))
        return httpx.Response(200, json={"boolean": False})

    assert endpoint(handler, default_graph="http://g.example").query("ASK {}") is False
    assert forms == [{"query": ["ASK {}"], "default-graph-uri": ["http://g.example"]}]


@pytest.mark.parametrize(
    "url", ["localhost:8890/sparql", "ftp://x/", "http://", "http://t.example:x/"]
)
def test_an_address_that_is_no_url_is_refused(url: str) -> None:
    """Ours."""
    with pytest.raises(SettingsError, match="endpoint's URL"):
        SparqlEndpoint(url)


@pytest.fixture
def oxigraph(films: Path, tmp_path: Path) -> Iterator[str]:
    """Return the address of an Oxigraph server of the films."""
    binary = str(Path(sys.executable).with_name("oxigraph"))
    location = ["--location", str(tmp_path / "oxigraph")]
    load = [binary, "load", *location, "--file", str(films)]
    subprocess.run(load, check=True, capture_output=True)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    serve = [binary, "serve-read-only", *location, "--bind", address]
    with subprocess.Popen(serve, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if b"Listening" in line:
                break
        yield f"http://{address}/query"
        process.kill()


def test_a_real_server_agrees_with_the_hop_index(
    oxigraph: str, films: Path, tmp_path: Path
) -> None:
    """Ours: an integration test over HTTP, on loopback."""
    build_index(films, tmp_path / "index", namespace=NS)
    index = HopIndex.open(tmp_path / "index")
    named = [node for node in index.nodes() if not node.startswith("genid:")]
    connection = Connection(page_rows=4, timeout_s=20, max_tries=1)
    with SparqlEndpoint(oxigraph, namespace=NS, connection=connection) as graph:
        nodes = ["ann", "kismet", "low", "r1"]
        check_graph(graph, nodes)
        _check_equal(graph, index, ["ann", "kismet", "r1", "directed_by"])
        assert graph.labels(named) == index.labels(named)
        (row,) = graph.query(f"SELECT ?p WHERE {{ ?f <{NS}directed_by> ?p }} LIMIT 1")
        assert row["p"].value == "ann"
