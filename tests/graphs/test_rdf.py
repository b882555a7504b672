"""Tests of hopling.graphs.rdf and its child process."""

import gc
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hopling.errors import DataError, SettingsError, WorldError
from hopling.graphs import HopIndex, RdfStore, Term, build_index
from hopling.testing import check_graph

Write = Callable[[str, str], Path]
NS = "http://t.example/"
NAME = "http://www.w3.org/2000/01/rdf-schema#label"
XSD = "http://www.w3.org/2001/XMLSchema#"


@pytest.fixture
def store(films: Path) -> Iterator[RdfStore]:
    """Return a store of the films."""
    with RdfStore.load(films, namespace=NS) as loaded:
        yield loaded


def test_it_is_a_graph_and_agrees_with_the_hop_index(
    store: RdfStore, films: Path, tmp_path: Path
) -> None:
    """Ours: hopling.testing.check_graph."""
    build_index(films, tmp_path / "index", namespace=NS)
    index = HopIndex.open(tmp_path / "index")
    nodes = list(index.nodes())
    check_graph(store, nodes)
    _check_equal(store, index, [*nodes, "directed_by", "nobody"])
    names = ("Ann Lee", "ann lee", "An Lee", "Bo auf Deutsch", "low", "kismat", "nobody at all")
    assert [store.find(name) for name in names] == [index.find(name) for name in names]


def _check_equal(store: RdfStore, index: HopIndex, nodes: list[str]) -> None:
    for direction in ("outgoing", "incoming"):
        assert store.counts(nodes, direction) == index.counts(nodes, direction)
        assert store.neighbors(nodes, direction) == index.neighbors(nodes, direction)
    assert store.labels(nodes) == index.labels(nodes)
    assert store.resolve(nodes) == index.resolve(nodes)


TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=6)
IRIS = st.sampled_from([f"<{NS}{x}>" for x in ("a", "b", "B", "c/d", "x:y", "")] + ["<urn:z>"])
TAGS = st.sampled_from(["", "@en", "@EN-gb", "@mul", "@de", f"^^<{NS}type>", f"^^<{XSD}string>"])
LITERALS = st.tuples(TEXT, TAGS).map(lambda pair: _written(pair[0]) + pair[1])
TRIPLES = st.tuples(
    IRIS | st.just("_:k"), IRIS | st.just(f"<{NAME}>"), IRIS | st.just("_:k") | LITERALS
)


def _written(text: str) -> str:
    return '"' + "".join(f"\\U{ord(character):08X}" for character in text) + '"'


@settings(max_examples=10, deadline=None)  # each starts a child
@given(st.lists(TRIPLES, max_size=30))
def test_any_small_graph_gives_the_same_answers_from_both(
    triples: list[tuple[str, str, str]],
) -> None:
    """Ours: two implementations, one contract."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "t.nt")
        source.write_text("".join(f"{h} {r} {t} .\n" for h, r, t in triples), encoding="utf-8")
        build_index(source, Path(folder, "index"), namespace=NS)
        index = HopIndex.open(Path(folder, "index"))
        nodes = list(index.nodes())
        with RdfStore.load(source, Path(folder, "store"), namespace=NS) as store:
            _check_equal(store, index, [*nodes, "a", "p", "nobody"])
            if nodes:
                check_graph(store, nodes)
                check_graph(index, nodes)


def test_a_select_gives_terms_and_an_ask_gives_a_bool(store: RdfStore) -> None:
    """BUGS.md B04: ASK answers are booleans; the store's canonical forms are documented."""
    rows = store.query(f"SELECT ?v WHERE {{ <{NS}kismet> ?p ?v }} ORDER BY STR(?v)")
    assert rows == [
        {"v": Term("1999", True, f"{XSD}gYear")},
        {"v": Term("Kismet", True)},
        {"v": Term("Kismet", True)},
        {"v": Term('The "K"\n\\', True, "", "en")},
        {"v": Term("http://other.example/k?a=(1)")},
        {"v": Term("ann")},
    ]
    assert store.query("ASK { ?s ?p ?o }") is True
    assert store.query(f"ASK {{ ?s <{NS}none> ?o }}") is False
    assert store.query("SELECT ?s WHERE { ?s <urn:none> ?o }") == []


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("SELECT", "cannot run this query: error at 1:7"),
        ("CONSTRUCT WHERE { ?s ?p ?o }", "it gives triples; write SELECT or ASK"),
        ("SELECT * { SERVICE <http://127.0.0.1:1/> { ?s ?p ?o } }", "another server"),
        ("INSERT DATA { <urn:a> <urn:b> <urn:c> }", "cannot run this query"),
    ],
)
def test_what_the_store_will_not_run_is_the_writers_fault(
    query: str, reason: str, store: RdfStore
) -> None:
    """MEASURED.md, pitfall 12; ours."""
    with pytest.raises(SettingsError, match=reason):
        store.query(query)
    assert store.query("ASK {}") is True


def test_a_query_over_its_limit_is_stopped_and_nothing_is_left_over(write: Write) -> None:
    """BUGS.md B08: a three-way cross product over 300 nodes, again and again."""
    source = write("t.nt", "".join(f"<{NS}{i}> <{NS}p> <{NS}{i}> .\n" for i in range(300)))
    product = "SELECT (COUNT(*) AS ?c) { ?a ?p ?b . ?c1 ?q ?d . ?e ?r ?f FILTER(?a != ?d) }"
    threads = threading.active_count()
    with RdfStore.load(source, namespace=NS) as store:
        for _ in range(3):
            assert store.query("ASK {}", timeout_s=30) is True
            process = store._child._process
            assert process is not None
            begin = time.monotonic()
            with pytest.raises(WorldError, match=r"longer than 0\.1 s"):
                store.query(product, timeout_s=0.1)
            assert time.monotonic() - begin < 5
            assert process.poll() is not None
        assert threading.active_count() == threads


def test_a_child_that_aborts_is_a_world_error(store: RdfStore) -> None:
    """data/DATA.md, "Notes on pyoxigraph": some ORDER BY abort the whole process."""
    assert store.query("ASK {}") is True
    process = store._child._process
    assert process is not None
    process.kill()
    process.wait()
    assert store.query("ASK {}") is True
    process = store._child._process
    assert process is not None
    threading.Timer(0.1, process.kill).start()
    endless = "SELECT (COUNT(*) AS ?c) { " + "".join(f"?a{i} ?b{i} ?c{i} . " for i in range(9))
    with pytest.raises(WorldError, match="ended its process"):
        store.query(endless + "}", timeout_s=20)


def test_closing_ends_the_child_and_removes_a_passing_folder(films: Path) -> None:
    """BUGS.md B08: no process is left over, also when nobody closed the store."""
    for close in (RdfStore.close, None):
        store = RdfStore.load(films, namespace=NS)
        store.query("ASK {}")
        folder, process = store.folder, store._child._process
        assert isinstance(process, subprocess.Popen)
        if close:
            close(store)
        del store
        gc.collect()
        assert process.poll() is not None
        assert not folder.exists()


def test_a_store_is_opened_again_from_its_folder(films: Path, tmp_path: Path) -> None:
    """Ours."""
    RdfStore.load(films, tmp_path / "store", namespace=NS).close()
    with RdfStore(tmp_path / "store", namespace=NS, languages=["de"]) as store:
        assert len(store) == 17
        assert store.labels(["bo"]) == ["Bo auf Deutsch"]
    with pytest.raises(SettingsError, match="not an RDF store"):
        RdfStore(tmp_path)


def test_bad_sources_are_refused(write: Write, tmp_path: Path) -> None:
    """BUGS.md B10; what the store's own rules refuse is named by line too."""
    with pytest.raises(SettingsError, match="not N-Triples"):
        RdfStore.load(write("t.tsv", "a\tr\tb\n"))
    bad = write("t.nt", f"<{NS}a> <{NS}p> <{NS}b> .\n<http://[x> <{NS}p> <{NS}b> .\n")
    with pytest.raises(DataError, match=r"t\.nt, line 2: "):
        RdfStore.load(bad, tmp_path / "store")
    assert not (tmp_path / "store").exists()


def test_an_empty_store_answers(write: Write) -> None:
    """BUGS.md B14."""
    with RdfStore.load(write("t.nt", ""), namespace=NS) as store:
        assert store.resolve(["a"]) == store.labels(["a"]) == [None]
        assert store.find("a") == store.query("SELECT * { ?s ?p ?o }") == []
        assert store.counts(["a"], "incoming") == [{}]
