"""Tests of hopling.graphs.hop_index."""

import json
import pickle
import unicodedata
from collections.abc import Callable
from pathlib import Path

import pytest

from hopling.errors import SettingsError
from hopling.graphs import Edge, HopIndex, build_index
from hopling.testing import check_graph

Write = Callable[[str, str], Path]
NS = "http://t.example/"
NAME = "<http://www.w3.org/2000/01/rdf-schema#label>"


@pytest.fixture
def index(films: Path, tmp_path: Path) -> HopIndex:
    """Return the index of the films."""
    build_index(films, tmp_path / "index", namespace=NS)
    return HopIndex.open(tmp_path / "index")


def test_it_is_a_graph(index: HopIndex) -> None:
    """Ours: hopling.testing.check_graph."""
    nodes = list(index.nodes())
    assert nodes == [
        "ann", "bo", "genid:0-r2", "http://other.example/k?a=(1)", "kismet", "low", "r1",
    ]  # fmt: skip
    check_graph(index, nodes)


def test_rows_are_edges_and_literals_in_the_form_of_the_file(index: HopIndex) -> None:
    """BUGS.md B04; labels are no rows."""
    assert index.neighbors(["kismet"], "outgoing") == [
        [
            Edge("directed_by", "ann"),
            Edge("http://other.example/see", "http://other.example/k?a=(1)"),
            Edge("title", "Kismet", True),
            Edge("title", 'The "K"\n\\', True),
            Edge("year", "1999", True),
        ]
    ]
    suffixes = {t.tail: t.suffix for t in index.triples() if t.head == "kismet"}
    assert suffixes["1999"] == "^^http://www.w3.org/2001/XMLSchema#gYear"
    assert suffixes["Kismet"] == ""
    assert suffixes["ann"] is None


def test_literals_that_differ_in_type_only_are_two_rows(write: Write, tmp_path: Path) -> None:
    """RDF 1.1 Concepts, 3.3: the datatype is part of a literal."""
    start = f"<{NS}a> <{NS}p>"
    lines = [f'{start} "5" .', f'{start} "5"@en .', f'{start} "05"^^<{NS}int> .']
    build_index(write("t.nt", "\n".join(lines)), tmp_path / "index", namespace=NS)
    index = HopIndex.open(tmp_path / "index")
    assert index.counts(["a"], "outgoing") == [{"p": 3}]
    (edges,) = index.neighbors(["a"], "outgoing")
    assert [edge.value for edge in edges] == ["05", "5", "5"]


@pytest.mark.parametrize("name", ["ann", "/ann", "ns:ann", "fb:ann", f"{NS}ann", f"<{NS}ann>"])
def test_every_spelling_of_an_id_resolves(name: str, index: HopIndex) -> None:
    """MEASURED.md, pitfall 6."""
    assert index.resolve([name, "nobody"]) == ["ann", None]


def test_an_id_with_query_text_is_an_unknown_node(index: HopIndex) -> None:
    """BUGS.md B01."""
    hostile = "http://t.example/none> ?p ?o } #"
    assert index.resolve([hostile]) == [None]
    assert index.neighbors([hostile], "outgoing") == [[]]


def test_a_name_with_quotes_is_found(write: Write, tmp_path: Path) -> None:
    """BUGS.md B01."""
    build_index(
        write("t.nt", f'<{NS}o> {NAME} "O\'Neil \\"the \\\\ cat\\"" .\n'), tmp_path / "index"
    )
    assert HopIndex.open(tmp_path / "index").find('O\'Neil "the \\ cat"') == [f"{NS}o"]


def test_the_label_chain(index: HopIndex, films: Path, tmp_path: Path) -> None:
    """BUGS.md B03: en-GB before de, untagged before fr; relations have labels too."""
    nodes = ["ann", "bo", "kismet", "low", "r1", "directed_by", "plays"]
    expected = ["Ann Lee", "Bo D\u00e4le", "Kismet", "Low", None, "directed by", None]
    assert index.labels(nodes) == expected
    german = HopIndex.open(tmp_path / "index", languages=["de", "fr"])
    assert german.labels(["bo", "low", "ann"]) == ["Bo auf Deutsch", "Low", "Ann Lee"]


def test_a_blank_node_works_in_the_next_call(index: HopIndex) -> None:
    """BUGS.md B05."""
    (edges,) = index.neighbors(["bo"], "outgoing")
    blank = edges[0].value
    assert index.neighbors([blank], "outgoing") == [[Edge("film", "low")]]


def test_mediators_have_no_name_and_tie_others_together(index: HopIndex, tmp_path: Path) -> None:
    """BUGS.md B05; ours: no label and two edges or more."""
    nodes = list(index.nodes())
    assert [node for node in nodes if index.is_mediator(node)] == ["genid:0-r2", "r1"]
    assert not index.is_mediator("nobody")


def test_no_node_of_a_graph_without_labels_is_a_mediator(write: Write, tmp_path: Path) -> None:
    """Ours."""
    build_index(write("t.tsv", "a\tr\tb\nb\tr\tc\n"), tmp_path / "index")
    index = HopIndex.open(tmp_path / "index")
    check_graph(index, ["a", "b", "c"])
    assert not index.is_mediator("b")
    assert index.find("a") == ["a"]


def test_every_spelling_of_a_name_finds_it(write: Write, tmp_path: Path) -> None:
    """BUGS.md B19."""
    name = "Zo\u00eb / S\u00e3o-Lu\u00eds (v2)"
    build_index(write("t.tsv", "z\tr\ty\n"), tmp_path / "i", labels=write("n.tsv", f"z\t{name}\n"))
    index = HopIndex.open(tmp_path / "i")
    for spelling in (name, unicodedata.normalize("NFD", name), name.upper()):
        assert index.find(spelling) == ["z"]
    assert index.labels(["z"]) == [name]


def test_names_are_found_by_id_label_case_beginning_and_likeness(
    write: Write, tmp_path: Path
) -> None:
    """Ours: the order that Graph.find promises."""
    names = write("n.tsv", "1\tANN LEE\n2\tAnn Lee\n3\tAnne Lee\n4\tBob\n5\t4\n6\tann leeds\n")
    build_index(write("t.tsv", "1\tr\t2\n"), tmp_path / "index", labels=names)
    index = HopIndex.open(tmp_path / "index")
    assert index.find("Ann Lee") == ["2", "1", "6", "3"]
    assert index.find("Ann Lee", 1) == ["2"]
    assert index.find("ann") == ["1", "2", "6", "3"]
    assert index.find("4") == ["4", "5"]
    assert index.find("Amn Lee") == ["1", "2", "3", "6"]
    assert index.find("zzz") == index.find("Ann Lee", 0) == []


def test_a_hub_is_counted_without_reading_its_rows(write: Write, tmp_path: Path) -> None:
    """BUGS.md B09: the values' file may be unreadable, and the counts are the same."""
    rows = "".join(f"hub\tr{i % 3}\tleaf{i}\n" for i in range(30_000))
    build_index(write("t.tsv", rows), tmp_path / "index")
    index = HopIndex.open(tmp_path / "index")
    place = index._arrays.pop("outgoing_value")
    index._runs["outgoing"] = (*index._runs["outgoing"][:3], memoryview(b""))
    assert len(place) == 30_000
    assert index.counts(["hub"], "outgoing") == [{"r0": 10_000, "r1": 10_000, "r2": 10_000}]


def test_an_empty_graph_answers(write: Write, tmp_path: Path) -> None:
    """BUGS.md B14."""
    build_index(write("t.nt", ""), tmp_path / "index")
    index = HopIndex.open(tmp_path / "index")
    assert list(index.nodes()) == list(index.triples()) == index.find("a") == []
    assert index.resolve(["a"]) == index.labels(["a"]) == [None]
    assert index.counts(["a"], "outgoing") == [{}]


def test_an_index_travels_to_another_process(index: HopIndex) -> None:
    """Ours: what is pickled is the folder's name."""
    again = pickle.loads(pickle.dumps(index))
    assert again.labels(["ann"]) == ["Ann Lee"]
    assert again.graph_hash == index.graph_hash


def test_a_wrong_direction_is_refused(index: HopIndex) -> None:
    """Ours."""
    for ask in (index.counts, index.neighbors):
        with pytest.raises(SettingsError, match="'outgoing' or 'incoming'"):
            ask([], "both")  # type: ignore[operator]


def test_a_folder_that_is_no_whole_index_is_refused(index: HopIndex, tmp_path: Path) -> None:
    """Ours: foreign, damaged, of another version, or cut short."""
    folder = index.folder
    with pytest.raises(SettingsError, match=r"no manifest\.json"):
        HopIndex.open(tmp_path)
    manifest = json.loads((folder / "manifest.json").read_text())
    for text, reason in [
        ("{", "damaged"),
        ("[]", "another's"),
        ('{"format": "mine"}', "another's"),
        (json.dumps({"format": manifest["format"]}), "has version None"),
        (json.dumps({**manifest, "version": 99}), "has version 99; this hopling reads 2"),
    ]:
        (folder / "manifest.json").write_text(text)
        with pytest.raises(SettingsError, match=reason):
            HopIndex.open(folder)
    (folder / "manifest.json").write_text(json.dumps(manifest))
    values = (folder / "outgoing_value.npy").read_bytes()
    (folder / "outgoing_value.npy").write_bytes(values[:-1])
    with pytest.raises(SettingsError, match=r"cut short.*hopling graph build"):
        HopIndex.open(folder)
