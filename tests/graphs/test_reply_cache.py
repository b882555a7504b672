"""Tests of the cache of an endpoint's replies, and of what an endpoint does beside asking."""

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest

from hopling.errors import SettingsError, WorldError
from hopling.graphs import Connection, SparqlEndpoint
from hopling.graphs.reply_cache import ReplyCache

NS = "http://t.example/"
Endpoint = Callable[..., SparqlEndpoint]
EMPTY = {"head": {"vars": []}, "results": {"bindings": []}}
ASK = "ASK { ?s ?p ?o }"


@pytest.mark.parametrize("is_kept", [False, True])
def test_an_endpoint_is_asked_again_unless_replies_are_kept(
    is_kept: bool, endpoint: Endpoint, server: Callable
) -> None:
    """Issue 3: a cache, off by default."""
    handler = server(f"<{NS}a> <{NS}p> <{NS}b> .\n")
    graph = endpoint(handler, cache=ReplyCache() if is_kept else None)
    assert graph.query(ASK) is graph.query(ASK) is True
    assert len(handler.requests) == (1 if is_kept else 2)


def test_a_failure_is_never_kept(endpoint: Endpoint) -> None:
    """BUGS.md B07, B17: a status, HTML and partial results; the fourth reply counts."""
    replies = [
        httpx.Response(403, text="no"),
        httpx.Response(200, html="<html></html>"),
        httpx.Response(200, json=EMPTY, headers={"X-SQL-State": "S1TAT"}),
        httpx.Response(200, json={"boolean": True}),
    ]
    graph = endpoint(lambda request: replies.pop(0), cache=ReplyCache())
    for _ in range(3):
        with pytest.raises(WorldError):
            graph.query(ASK)
    assert graph.query(ASK) is graph.query(ASK) is True
    assert replies == []


def test_a_damaged_reply_is_set_aside_and_asked_for_anew(
    endpoint: Endpoint, server: Callable, tmp_path: Path
) -> None:
    """BUGS.md B17: cut in half; a warning, a rebuilt entry, the same output."""
    handler = server(f"<{NS}a> <{NS}p> <{NS}b> .\n")
    first = endpoint(handler, cache=ReplyCache(tmp_path)).neighbors(["a"], "outgoing")
    kept = sorted(tmp_path.iterdir())
    whole = kept[0].read_bytes()
    kept[0].write_bytes(whole[: len(whole) // 2])
    num_asked = len(handler.requests)
    again = endpoint(handler, cache=ReplyCache(tmp_path))
    with pytest.warns(UserWarning, match="was damaged"):
        assert again.neighbors(["a"], "outgoing") == first
    assert len(handler.requests) == num_asked + 1
    assert kept[0].read_bytes() == whole
    assert kept[0].with_suffix(".damaged").exists()
    endpoint(handler, cache=ReplyCache(tmp_path)).neighbors(["a"], "outgoing")
    assert len(handler.requests) == num_asked + 1


def test_memory_holds_the_replies_used_last() -> None:
    """Ours."""
    cache = ReplyCache(max_replies=2)
    for name in "ab":
        cache.write(name.encode(), name)
    assert cache.read("a") == b"a"
    cache.write(b"c", "c")
    assert [cache.read(name) for name in "abc"] == [b"a", None, b"c"]


def test_another_graph_or_query_is_another_reply() -> None:
    """Ours: parts of a key do not run together."""
    cache = ReplyCache()
    cache.write(b"1", "u", "g", "q")
    assert cache.read("u", "gq", "") is None
    assert cache.read("u", "", "q") is None


def test_a_reply_that_trickles_ends_in_time(endpoint: Endpoint) -> None:
    """BUGS.md B08: each byte comes in time, and the whole does not."""
    now = iter(range(1000))
    num_read = 0

    def trickle() -> Iterator[bytes]:
        nonlocal num_read
        for _ in range(500):
            num_read += 1
            yield b" "

    graph = endpoint(
        lambda request: httpx.Response(200, content=trickle()),
        timeout_s=5,
        max_tries=2,
        clock=lambda: float(next(now)),
    )
    with pytest.raises(WorldError, match=r"did not answer within 5 s .2 tries"):
        graph.query(ASK)
    assert num_read < 20


def test_a_reply_that_was_packed_is_read(endpoint: Endpoint) -> None:
    """Ours: bytes are unpacked once."""
    import gzip

    packed = gzip.compress(b'{"boolean": true}')
    headers = {"Content-Encoding": "gzip"}
    reply = httpx.Response(200, headers=headers, content=packed)
    assert endpoint(lambda request: reply).query(ASK) is True


def test_no_more_queries_are_under_way_than_allowed(endpoint: Endpoint) -> None:
    """Issue 3: a limit on concurrency; six threads, two places."""
    inside, most = 0, 0
    lock, both_in = threading.Lock(), threading.Barrier(2)

    def handler(request: httpx.Request) -> httpx.Response:
        nonlocal inside, most
        with lock:
            inside += 1
            most = max(most, inside)
        both_in.wait(timeout=10)  # passes two at a time only
        with lock:
            inside -= 1
        return httpx.Response(200, json={"boolean": True})

    graph = endpoint(handler, max_concurrent=2)
    threads = [threading.Thread(target=graph.query, args=(ASK,)) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == 2


@pytest.mark.parametrize("name", ["max_tries", "max_concurrent", "page_rows"])
def test_a_limit_below_one_is_refused(name: str) -> None:
    """Ours: nothing would ever be asked."""
    with pytest.raises(SettingsError, match=f"{name} is 0"):
        Connection(**{name: 0})


def test_name_and_password_come_from_netrc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours: the docstring promises it; the URL's own win, and a broken file is named."""
    file = tmp_path / "netrc"
    file.write_text("machine t.example login ann password secret\n")
    file.chmod(0o600)
    monkeypatch.setenv("NETRC", str(file))
    seen: list[str] = []

    def handler(request: httpx.Request) -> httpx.Response:
        seen.append(request.headers.get("Authorization", ""))
        return httpx.Response(200, json={"boolean": True})

    connection = Connection(transport=httpx.MockTransport(handler))
    for url in ("http://t.example/q", "http://bo:pw@t.example/q", "http://other.example/q"):
        SparqlEndpoint(url, connection=connection).query(ASK)
    assert seen == [
        httpx.BasicAuth(*who)._auth_header for who in (("ann", "secret"), ("bo", "pw"))
    ] + [""]
    file.write_text("macinhe t.example\n")
    with pytest.raises(SettingsError, match="Mend it"):
        SparqlEndpoint("http://t.example/q", connection=connection)


def test_a_blank_node_is_no_id_for_an_endpoint(endpoint: Endpoint) -> None:
    """BUGS.md B05: `_:b` in a query is a variable; it is shown, and asking for it gives nothing."""
    seen: list[str] = []

    def handler(request: httpx.Request) -> httpx.Response:
        seen.append(request.content.decode())
        return httpx.Response(200, json=EMPTY)

    graph = endpoint(handler)
    assert graph.neighbors(["_:b1"], "outgoing") == [[]]
    assert graph.resolve(["_:b1"]) == [None]
    assert not any("_%3Ab1" in text and "%3C" not in text for text in seen)
    assert all("t.example%2F_%3Ab1%3E" in text for text in seen if "b1" in text)
