from pathlib import Path

import pytest

from apps.conftest import NAMES, TRIPLES, Hopling, write_rows, write_tasks
from hopling.episode import Episode, Prompt, Task
from hopling.graphs import HopIndex
from hopling.tools import OneHopSearch


def test_build_reports_what_was_loaded(hopling: Hopling, tmp_path: Path) -> None:
    """USERS.md need 3: one command, a load report, no code."""
    triples = write_rows(tmp_path / "t.tsv", [*TRIPLES, TRIPLES[0]])
    names = write_rows(tmp_path / "n.tsv", list(NAMES.items()))
    ran = hopling("graph", "build", triples, "--out", "g", "--labels", names)
    assert ran.code == 0
    assert "duplicates dropped  1" in ran.out
    assert "7 (100.0%)" in ran.out
    assert "Ann Lee" in ran.out


def test_info_gives_the_same_report_as_json(hopling: Hopling, films: Path) -> None:
    """USERS.md 3.2: --json on everything that prints a table."""
    report = hopling("graph", "info", films, "--json").json
    assert (report["triples"], report["entities"], report["labelled"]) == (5, 7, 7)
    assert report["graph_hash"] == HopIndex.open(films).graph_hash


def test_build_stops_at_a_bad_line_or_lists_it(hopling: Hopling, tmp_path: Path) -> None:
    """USERS.md 3.2, BUGS B10."""
    bad = write_rows(tmp_path / "bad.tsv", [*TRIPLES, ("alone",)])
    strict = hopling("graph", "build", bad, "--out", "g")
    assert (strict.code, (tmp_path / "g").exists()) == (2, False)
    assert "bad.tsv, line 6" in strict.err
    lenient = hopling("graph", "build", bad, "--out", "g", "--no-strict", "--json")
    assert lenient.json["bad_lines"] == {"needs 3 tab-separated fields": 1}


def test_a_property_can_be_the_label(hopling: Hopling, tmp_path: Path) -> None:
    """Ours: --labels takes a file or the IRI of a property."""
    source = tmp_path / "t.nt"
    source.write_text('<http://t.example/a> <http://t.example/called> "Anna" .\n')
    hopling("graph", "build", source, "--out", "g", "--labels", "http://t.example/called")
    assert HopIndex.open(tmp_path / "g").labels(["http://t.example/a"]) == ["Anna"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("build", "films.tsv"), "Write --out FOLDER"),
        (("build", "absent.tsv", "--out", "g"), "There is no file absent.tsv"),
        (("info", "absent"), "There is no graph 'absent'"),
        (("hop", "films", "m.99"), "There is no entity 'm.99'"),
        (("hop", "films", "m.1", "--direction", "outgo"), "Did you mean 'outgoing'?"),
    ],
)
def test_what_cannot_be_done_is_said_with_what_to_do(
    hopling: Hopling, films: Path, arguments: tuple[str, ...], said: str
) -> None:
    """CONVENTIONS, "Errors"."""
    ran = hopling("graph", *arguments)
    assert (ran.code, ran.out) == (2, "")
    assert said in ran.err


def test_search_finds_ids_by_label_with_their_edges(hopling: Hopling, films: Path) -> None:
    """Ours."""
    rows = hopling("graph", "search", films, "ann lee", "--json").json
    assert rows[0] == {"id": "m.3", "label": "Ann Lee", "outgoing": 0, "incoming": 2}


def test_search_takes_an_id_too(hopling: Hopling, films: Path) -> None:
    """Ours."""
    assert hopling("graph", "search", films, "m.7", "--json").json[0]["label"] == "Far Off"


def test_search_that_finds_nothing_exits_with_1(hopling: Hopling, films: Path) -> None:
    """USERS.md 3.2: stable exit codes."""
    ran = hopling("graph", "search", films, "zzzz")
    assert (ran.code, "Nothing" in ran.out) == (1, True)


def test_hop_prints_what_a_model_reads(hopling: Hopling, films: Path) -> None:
    """The issue: `graph hop` prints what Search prints."""
    call = {"entities": ["m.1", "m.2"], "direction": "outgoing", "properties": ["has_actor"]}
    seen = OneHopSearch(HopIndex.open(films))(Episode(Task("t", "?"), Prompt("")), **call)
    arguments = "m.1", "m.2", "--direction", "outgoing", "--properties", "has_actor"
    assert hopling("graph", "hop", films, *arguments).out == seen.text + "\n"
    assert hopling("graph", "hop", films, *arguments, "--json").json["nodes"] == ["m.4", "m.5"]


def test_movies_is_built_once_into_the_cache(
    hopling: Hopling, films: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The issue: `movies` means the shipped graph; here smaller files stand for it."""
    files = tmp_path / "films.tsv", tmp_path / "names.tsv"
    monkeypatch.setattr("hopling.data.tasks.movie_files", lambda: files)
    assert hopling("graph", "info", "movies", "--json").json["triples"] == 5
    (folder,) = (tmp_path / "cache").iterdir()
    built = (folder / "manifest.json").stat().st_mtime_ns
    assert hopling("graph", "hop", "movies", "m.1").code == 0
    assert (folder / "manifest.json").stat().st_mtime_ns == built


def test_hop_does_not_offer_an_unknown_id_as_its_own_example(hopling: Hopling, films: Path) -> None:
    """Ours: "like Q99" for Q99 helps nobody."""
    ran = hopling("graph", "hop", films, "Q99")
    assert ran.code != 0
    assert "no entity 'Q99'" in ran.out + ran.err
    assert "like Q99" not in ran.out + ran.err


def test_audit_says_what_a_graph_lacks_for_tasks(
    hopling: Hopling, films: Path, tmp_path: Path
) -> None:
    """Issue 3, item 5: shares by hand; of two starts one is found, of two answers one."""
    asked = {
        "a": {"question": "?", "start": ["m.1"], "answers": ["Ann Lee"]},
        "b": {"question": "?", "start": ["m.99"], "answers": ["Nobody"]},
    }
    path = write_tasks(tmp_path / "two.jsonl", asked)
    found = hopling("graph", "audit", films, "--tasks", path, "--hops", "2", "--json").json
    assert (found["starts_found"], found["answers_present"], found["answers_reachable"]) == (
        0.5,
        0.5,
        0.5,
    )
    assert found["missing_starts"] == ["m.99"]
    assert found["unreached"] == ["written_by"]
    assert len(found["suggestions"]) == 3
    assert "starts not found: m.99" in hopling("graph", "audit", films, "--tasks", path).out


def test_audit_says_when_it_did_not_look_at_all_nodes(
    hopling: Hopling, films: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ours: a list that may be too long says so; of m.1's ball, m.1 alone is looked at."""
    path = write_tasks(
        tmp_path / "one.jsonl", {"a": {"question": "?", "start": ["m.1"], "answers": ["Cy"]}}
    )
    arguments = "graph", "audit", films, "--tasks", path
    assert hopling(*arguments, "--json").json["looked_at"] is None
    monkeypatch.setattr("hopling.apps.audit._MAX_NODES", 1)
    found = hopling(*arguments, "--json").json
    assert (found["unreached"], found["looked_at"]) == (["written_by"], 1)
    told = hopling(*arguments).out
    assert "at most 1; 1 nodes were looked at" in told
    assert "lower --hops or --limit to be sure" in told


def test_audit_names_labels_of_several_nodes(hopling: Hopling, tmp_path: Path) -> None:
    """Issue 3, item 5: near-duplicates, by case, spaces and punctuation."""
    triples = write_rows(tmp_path / "t.tsv", [("a", "r", "b"), ("c", "r", "d")])
    names = write_rows(
        tmp_path / "n.tsv", [("a", "Low-Fi"), ("c", "low fi"), ("b", "Hi"), ("d", "X")]
    )
    hopling("graph", "build", triples, "--out", "g", "--labels", names)
    path = write_tasks(
        tmp_path / "one.jsonl", {"q": {"question": "?", "start": ["a"], "answers": ["Hi"]}}
    )
    found = hopling("graph", "audit", "g", "--tasks", path, "--json").json
    assert found["near_duplicates"] == {"Low-Fi": ["a", "c"]}
    assert any("stand for several nodes" in line for line in found["suggestions"])


def test_info_names_the_arrays_that_are_damaged(hopling: Hopling, films: Path) -> None:
    """Issue 3, item 1: a checksum; opening reads nothing, so only --check finds it."""
    arguments = "graph", "info", films, "--check"
    assert (hopling(*arguments).code, hopling(*arguments, "--json").json) == (0, {"damaged": []})
    values = films / "incoming_value.npy"
    content = bytearray(values.read_bytes())
    content[-1] ^= 1
    values.write_bytes(content)
    ran = hopling(*arguments)
    assert (ran.code, ran.err) == (1, "")
    assert ran.out.startswith("Damaged: incoming_value.\nBuild the graph again")
    assert hopling(*arguments, "--json").json == {"damaged": ["incoming_value"]}


def test_a_graph_exported_as_graphml_is_built_again(hopling: Hopling, tmp_path: Path) -> None:
    """BUGS.md B12: the same edges, literals and shown labels."""
    (tmp_path / "t.nt").write_text(
        "<http://t.example/a> <http://t.example/p> <http://t.example/b> .\n"
        '<http://t.example/a> <http://t.example/q> "x\\u000By" .\n'
        '<http://t.example/a> <http://t.example/q> "" .\n'
        '<http://t.example/b> <http://www.w3.org/2000/01/rdf-schema#label> "B\\r"@en .\n'
    )
    hopling("graph", "build", "t.nt", "--out", "g", "--namespace", "http://t.example/")
    told = hopling("graph", "export", "g", "--out", "g.graphml").out
    assert "2 nodes" in told
    assert "1 texts hold characters that XML has not" in told
    hopling("graph", "build", "g.graphml", "--out", "again")
    index = HopIndex.open(tmp_path / "again")
    assert index.labels(["a", "b"]) == [None, "B\r"]
    assert index.neighbors(["a"], "outgoing") == [
        [("p", "b", False), ("q", "", True), ("q", "x\ufffdy", True)]
    ]
    assert hopling("graph", "export", "g", "--out", "g.xml").code == 2


def test_search_takes_the_beginning_of_a_label(hopling: Hopling, films: Path) -> None:
    """Ours."""
    rows = hopling("graph", "search", films, "the l", "--json").json
    assert rows[0]["label"] == "The Long Night"


def test_a_bad_line_names_the_flag(hopling: Hopling, tmp_path: Path) -> None:
    """Issue 3, item 2: no Python keyword on a command line."""
    bad = write_rows(tmp_path / "bad.tsv", [("alone",)])
    ran = hopling("graph", "build", bad, "--out", "g")
    assert "--no-strict" in ran.err
    assert "strict=False" not in ran.err
