"""Tests of the formats a graph is built from, and of the profiles of published dumps."""

import gzip
import re
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hopling.errors import DataError, SettingsError
from hopling.graphs import HopIndex, build_index
from hopling.graphs.build import BuildSettings
from hopling.graphs.formats import LABEL, Source
from hopling.graphs.profiles import profile_named
from hopling.graphs.readers import graphml
from hopling.graphs.terms import Triple

Write = Callable[[str, str], Path]
NS = "http://t.example/"


def built(source: Source, folder: Path, **settings: object) -> HopIndex:
    """Return the index of one source."""
    build_index(source, folder / "index", **settings)  # type: ignore[arg-type]
    return HopIndex.open(folder / "index")


@pytest.mark.parametrize(
    ("name", "text", "header"),
    [
        ("t.csv", 'a,knows,"b, c"\n', False),
        ("t.csv", 'relation,source,target\nknows,a,"b, c"\n', True),
        ("t.tsv", "head\trelation\ttail\na\tknows\tb, c\n", True),
        ("t.jsonl", '{"source": "a", "target": "b, c", "type": "knows"}\n', False),
        ("t.nq", f"<{NS}a> <{NS}knows> <{NS}b,%20c> <{NS}g> .\n", False),
        ("t.ttl", f"@prefix t: <{NS}> . t:a t:knows <{NS}b,%20c> .\n", False),
    ],
)
def test_an_edge_is_the_same_in_every_format(
    name: str, text: str, header: bool, write: Write, tmp_path: Path
) -> None:
    """Issue 3: build from any of them; BUGS.md B11 for quoting that CSV has and TSV has not."""
    index = built(Source(write(name, text), header=header), tmp_path, namespace=NS)
    (edges,) = index.neighbors(["a"], "outgoing")
    assert [(e.relation, e.value.replace("%20", " ")) for e in edges] == [("knows", "b, c")]


def test_a_header_is_never_an_edge(write: Write, tmp_path: Path) -> None:
    """BUGS.md B11: a wrong row would be added in silence."""
    with pytest.raises(SettingsError, match="Write --header"):
        built(Source(write("t.tsv", "head\trelation\ttail\na\tr\tb\n")), tmp_path)
    with pytest.raises(DataError, match="names columns"):
        built(Source(write("t.csv", "head,relation,tail\na,r,b\n")), tmp_path)


def test_a_table_of_nodes_gives_labels_and_literals(write: Write, tmp_path: Path) -> None:
    """Issue 3: edge lists plus node tables."""
    nodes = Source(write("nodes.csv", "id,name,year\nNA,Namibia,1990\nb,Bo,\n"), header=True)
    edges = Source(write("edges.csv", "NA,b\n"))
    index = built([nodes, edges], tmp_path)  # type: ignore[arg-type]
    assert index.labels(["NA", "b"]) == ["Namibia", "Bo"]
    assert index.neighbors(["NA"], "outgoing") == [
        [("linked_to", "b", False), ("year", "1990", True)]
    ]


def test_turtle_keeps_what_was_written_and_names_a_bad_statement(
    write: Write, tmp_path: Path
) -> None:
    """BUGS.md B04, B10: "05" stays, and the next statement is read."""
    text = f'@prefix t: <{NS}> .\nt:a t:p "05"^^t:i, 1.50 .\nt:a t:p <{NS}b c> .\nt:a t:q t:d .\n'
    source = Source(write("t.ttl", text))
    with pytest.raises(DataError, match=r"t\.ttl, line 3: a statement cannot be read"):
        built(source, tmp_path)
    index = built(source, tmp_path, namespace=NS, settings=BuildSettings(strict=False))
    (edges,) = index.neighbors(["a"], "outgoing")
    assert [edge.value for edge in edges] == ["05", "1.50", "d"]


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)


@given(TEXTS, TEXTS, TEXTS)
@example("a\x0bb", "", "\r\n\t<&\"'>")
def test_graphml_that_was_written_is_read_again(label: str, note: str, relation: str) -> None:
    """BUGS.md B12: a forbidden character is replaced, an empty text and parallel edges stay."""
    edges = [Triple("a", f"r{relation}", "b"), Triple("a", "r2", "b")]
    literals = [("note", note), ("label", "2"), ("note", "n")]
    nodes = [graphml.Node("a", label, literals), graphml.Node("b", "")]
    with TemporaryDirectory() as folder:
        path = Path(folder, "g.graphml")
        changed = graphml.write(path, ["note", "label"], nodes, edges)
        found = list(graphml.read(Source(path), "0"))

    def safe(text: str) -> str:
        return re.sub("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", "\ufffd", text)

    assert found == [
        Triple("a", LABEL, safe(label), ""),
        Triple("a", "note", safe(note), ""),
        Triple("a", "label", "2", ""),
        Triple("a", "note", "n", ""),
        Triple("b", LABEL, "", ""),
        Triple("a", f"r{safe(relation)}", "b"),
        edges[1],
    ]
    assert changed == sum(safe(text) != text for text in (label, note, relation))


def test_a_pyg_graph_and_an_ogb_folder_have_numbers_for_ids(tmp_path: Path) -> None:
    """Issue 3; the loader of `.pt` is tested where torch lives."""
    arrays = {"edge_index": [[0, 1], [1, 2]], "edge_type": [1, 0], "node_names": ["x", "y", "z"]}
    source = Source(tmp_path / "g.pt", arrays=lambda path: arrays)
    source.path.write_bytes(b"")
    index = built(source, tmp_path)
    assert index.neighbors(["0", "1"], "outgoing") == [[("1", "1", False)], [("0", "2", False)]]
    assert index.labels(["2"]) == ["z"]
    for part in ("raw", "mapping"):
        (tmp_path / "ogb" / part).mkdir(parents=True)
    (tmp_path / "ogb/raw/edge.csv.gz").write_bytes(gzip.compress(b"0,1\n"))
    mapped = gzip.compress(b"node idx,paper id\n0,p9\n")
    (tmp_path / "ogb/mapping/nodeidx2paperid.csv.gz").write_bytes(mapped)
    index = built(Source(tmp_path / "ogb"), tmp_path)
    assert index.neighbors(["0"], "outgoing") == [[("linked_to", "1", False)]]
    assert index.labels(["0"]) == ["p9"]


@pytest.mark.parametrize("is_prefixed", [False, True])
def test_freebase_keeps_facts_and_english_names(
    is_prefixed: bool, write: Write, tmp_path: Path
) -> None:
    """Issue 3: `--profile freebase`; the dump as published, and its older form with `ns:`."""
    rows = [
        ("m.1", "film.film.directed_by", "m.2"),
        ("m.1", "type.object.name", '"Kismet, see ns:m.2 ."@en'),
        ("m.1", "type.object.name", '"Kismet auf Deutsch"@de'),
        ("m.1", "common.topic.alias", '"K"@en'),
        ("m.1", "type.object.type", "film.film"),
    ]

    def term(text: str) -> str:
        if text.startswith('"'):
            return text
        return f"ns:{text}" if is_prefixed else f"<http://rdf.freebase.com/ns/{text}>"

    end = "." if is_prefixed else "\t."
    dump = write("freebase", "".join("\t".join(map(term, row)) + end + "\n" for row in rows))
    profile = profile_named("freebase")
    assert profile is not None
    index = built(Source(dump, "nt", profile=profile), tmp_path, namespace=profile.namespace)
    assert index.neighbors(["m.1"], "outgoing") == [[("film.film.directed_by", "m.2", False)]]
    assert index.labels(["m.1"]) == ["Kismet, see ns:m.2 ."]
    assert profile.dropped == {"a relation left out": 2, "another language": 1}


@pytest.mark.parametrize("statements", [False, True])
def test_wikidata_has_ids_and_labels_of_properties(
    statements: bool, write: Write, tmp_path: Path
) -> None:
    """Issue 3: truthy claims, labels en then mul, property labels joined; BUGS.md B03."""
    wd, wdt = "http://www.wikidata.org/entity/", "http://www.wikidata.org/prop/"
    label = "<http://www.w3.org/2000/01/rdf-schema#label>"
    dump = write(
        "truthy.nt",
        f'<{wd}Q1> <{wdt}direct/P31> <{wd}Q2> .\n<{wd}Q1> {label} "Dora"@mul .\n'
        f'<{wd}Q1> {label} "X"@fa .\n<{wd}P31> {label} "instance of"@en .\n'
        f"<{wd}Q1> <{wdt}P31> <{wd}statement/s1> .\n"
        f'<{wd}statement/s1> <{wdt}qualifier/P580> "1990" .\n'
        f'<{wd}Q1> <http://schema.org/version> "7" .\n',
    )
    profile = profile_named("wikidata", statements=statements)
    assert profile is not None
    index = built(Source(dump, profile=profile), tmp_path, namespace=profile.namespace)
    more = [("P31-statement", "statement/s1", False)] if statements else []
    assert index.neighbors(["Q1"], "outgoing") == [[("P31", "Q2", False), *more]]
    assert index.labels(["Q1", "P31"]) == ["Dora", "instance of"]
    expected = [[("P580", "1990", True)]] if statements else [[]]
    assert index.neighbors(["statement/s1"], "outgoing") == expected
    with pytest.raises(SettingsError, match="Did you mean 'wikidata'"):
        profile_named("wikidat")
