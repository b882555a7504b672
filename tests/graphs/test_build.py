"""Tests of hopling.graphs.build and the files it reads."""

import gzip
import os
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from hopling.errors import DataError, SettingsError
from hopling.graphs import BuildSettings, HopIndex, build_index

Write = Callable[[str, str], Path]
NS = "http://t.example/"
LINE = "<http://t.example/a> <http://t.example/p> <http://t.example/b> .\n"
BAD = "<http://t.example/a> <http://t.example/p> <http://t.example/b c> .\n"


def test_a_bad_line_is_named_by_file_line_and_rule(write: Write, tmp_path: Path) -> None:
    """BUGS.md B10."""
    source = write("dump.nt", LINE + BAD + LINE)
    with pytest.raises(DataError, match=r"dump\.nt, line 2: an IRI holds a character.*strict"):
        build_index(source, tmp_path / "index")
    assert not (tmp_path / "index").exists()
    assert [path.name for path in tmp_path.iterdir()] == ["dump.nt"]


def test_bad_lines_left_out_are_counted_and_kept(write: Write, tmp_path: Path) -> None:
    """BUGS.md B10: opt-in skip with a counted, saved list."""
    source = write("dump.nt", LINE + BAD + LINE)
    report = build_index(source, tmp_path / "index", settings=BuildSettings(strict=False))
    assert report.triples == 1
    assert report.bad_lines == {"an IRI holds a character that is not allowed": 1}
    saved = (tmp_path / "index" / "bad_lines.tsv").read_text()
    assert saved.split("\t")[1] == "2"
    assert saved.endswith(BAD)
    assert HopIndex.open(tmp_path / "index").info() == report


def test_bytes_that_are_not_utf8_are_a_bad_line(tmp_path: Path) -> None:
    """BUGS.md B11: UTF-8 always."""
    source = tmp_path / "t.tsv"
    source.write_bytes(b"a\tb\tc\na\tb\t\xff\n")
    with pytest.raises(DataError, match="line 2: not UTF-8"):
        build_index(source, tmp_path / "index")


def test_strings_of_tsv_stay_strings(write: Write, tmp_path: Path) -> None:
    """BUGS.md B11, with a byte order mark and Windows line ends."""
    city = "\u6771\u4eac"
    source = write(
        "t.tsv",
        "\ufeffNA\tcapital\tWindhoek\r\nnull\tis_a\tword\r\n"
        f'a\tsays\t"hi\r\n{city}\tin\t\u65e5\u672c\r\n',
    )
    report = build_index(source, tmp_path / "index")
    assert (report.triples, report.entities) == (4, 8)
    index = HopIndex.open(tmp_path / "index")
    assert index.neighbors(["NA", "null", "a", city], "outgoing") == [
        [("capital", "Windhoek", False)],
        [("is_a", "word", False)],
        [("says", '"hi', False)],
        [("in", "\u65e5\u672c", False)],
    ]


def test_the_locale_changes_nothing(write: Write, tmp_path: Path) -> None:
    """BUGS.md B11: run under LC_ALL=C without UTF-8 mode."""
    source = write("t.tsv", "\u6771\u4eac\tin\t\u65e5\u672c\n")
    names = write("names.tsv", "\u6771\u4eac\tT\u014dky\u014d\n")
    expected = build_index(source, tmp_path / "here", labels=names).graph_hash
    script = (
        "import sys; from hopling.graphs import build_index;"
        "print(build_index(sys.argv[1], sys.argv[2], labels=sys.argv[3]).graph_hash)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(source), str(tmp_path / "there"), str(names)],
        env={**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == expected


@pytest.mark.parametrize("line", ["a\tb", "a\tb\tc\td", "a\t\tc", "a b c"])
def test_a_tsv_line_has_three_fields(line: str, write: Write, tmp_path: Path) -> None:
    """Ours."""
    with pytest.raises(DataError, match=r"line 1: (needs 3 tab-separated fields|a field is empty)"):
        build_index(write("t.tsv", line + "\n"), tmp_path / "index")


def test_loops_and_duplicates_are_counted(write: Write, tmp_path: Path) -> None:
    """BUGS.md B13."""
    source = write("t.tsv", "a\tr\ta\na\tr\tb\na\tr\tb\nb\tr\ta\nc\tr\td\n")
    report = build_index(source, tmp_path / "index")
    assert (report.triples, report.duplicates, report.self_loops) == (4, 1, 1)
    (edges,) = HopIndex.open(tmp_path / "index").neighbors(["a"], "outgoing")
    assert [edge.value for edge in edges] == ["a", "b"]
    assert report.hubs == {"a": 3, "b": 2, "c": 1, "d": 1}


def test_the_order_of_lines_changes_nothing(films: Path, write: Write, tmp_path: Path) -> None:
    """BUGS.md B03; ours: the hash names the content."""
    lines = films.read_text().splitlines(keepends=True)
    random.Random(0).shuffle(lines)
    first = build_index(films, tmp_path / "1", namespace=NS)
    second = build_index(write("shuffled.nt", "".join(lines)), tmp_path / "2", namespace=NS)
    assert first == second
    one, two = HopIndex.open(tmp_path / "1"), HopIndex.open(tmp_path / "2")
    nodes = list(one.nodes())
    assert nodes == list(two.nodes())
    assert one.labels(nodes) == two.labels(nodes)
    other = build_index(write("more.nt", films.read_text() + LINE), tmp_path / "3", namespace=NS)
    assert other.graph_hash != first.graph_hash


def test_the_report_counts_what_is_in_the_graph(films: Path, tmp_path: Path) -> None:
    """Ours: a label is no edge, and the label of a relation makes it no entity."""
    report = build_index(films, tmp_path / "index", namespace=NS)
    assert (report.triples, report.entities, report.relations) == (11, 7, 7)
    assert (report.literals, report.duplicates, report.self_loops) == (3, 1, 1)
    assert report.labels == {"": 1, "de": 1, "en": 2, "en-gb": 1, "fr": 1}
    assert (report.labelled, report.isolated) == (4, 0)


def test_an_empty_file_is_an_empty_graph(write: Write, tmp_path: Path) -> None:
    """BUGS.md B14."""
    report = build_index(write("t.nt", "\n# nothing\n"), tmp_path / "index")
    assert (report.triples, report.entities, report.relations) == (0, 0, 0)


def test_labels_come_from_a_file_by_short_id(write: Write, tmp_path: Path) -> None:
    """Ours: an id of a label file is the id of the triples' IRI."""
    names = write("names.tsv", 'a\tThe "A"\nz\tAlone\n')
    report = build_index(write("t.nt", LINE), tmp_path / "index", namespace=NS, labels=names)
    assert (report.entities, report.isolated) == (3, 1)
    assert HopIndex.open(tmp_path / "index").labels(["a", "b", "z"]) == ['The "A"', None, "Alone"]


def test_label_predicates_may_be_short(write: Write, tmp_path: Path) -> None:
    """Ours."""
    source = write("t.nt", f'<{NS}a> <{NS}name> "A"@en .\n')
    report = build_index(source, tmp_path / "index", namespace=NS, labels=["name", "rdfs:label"])
    assert report.labels == {"en": 1}


def test_blank_nodes_of_two_files_stay_apart(write: Write, tmp_path: Path) -> None:
    """BUGS.md B05; RDF 1.1, 3.4: labels are local to a file."""
    paths = [write(f"{i}.nt", f'_:m <{NS}p> "{i}" .\n') for i in (1, 2)]
    build_index(paths, tmp_path / "index", namespace=NS)
    index = HopIndex.open(tmp_path / "index")
    assert list(index.nodes()) == ["genid:0-m", "genid:1-m"]
    assert index.neighbors(["genid:1-m"], "outgoing") == [[("p", "2", True)]]


def test_gzip_is_read_and_progress_reported(tmp_path: Path) -> None:
    """Ours: progress counts bytes of the files as they lie on disk."""
    source = tmp_path / "t.nt.gz"
    source.write_bytes(gzip.compress((LINE * 70_000).encode()))
    seen: list[tuple[int, int | None]] = []
    build_index(source, tmp_path / "index", on_progress=lambda *done: seen.append(done))
    size = source.stat().st_size
    assert len(seen) > 1
    assert seen[-1] == (size, size)


def test_a_cut_gzip_file_is_refused(tmp_path: Path) -> None:
    """Ours."""
    source = tmp_path / "t.nt.gz"
    source.write_bytes(gzip.compress((LINE * 100).encode())[:-9])
    with pytest.raises(DataError, match="not a whole gzip file"):
        build_index(source, tmp_path / "index")


def test_an_existing_index_survives_a_failed_build(write: Write, tmp_path: Path) -> None:
    """Ours: the new folder takes its place only when it is whole."""
    good, bad = write("good.nt", LINE), write("bad.nt", BAD)
    build_index(good, tmp_path / "index")
    with pytest.raises(DataError):
        build_index(bad, tmp_path / "index")
    assert HopIndex.open(tmp_path / "index").info().triples == 1
    build_index(write("two.nt", LINE + LINE.replace("/b", "/c")), tmp_path / "index")
    assert HopIndex.open(tmp_path / "index").info().triples == 2
    assert {path.name for path in tmp_path.iterdir()} == {"good.nt", "bad.nt", "two.nt", "index"}


def test_an_existing_index_survives_a_kill(write: Write, tmp_path: Path) -> None:
    """Ours: the process ends in the middle of reading, and a later build goes through."""
    build_index(write("good.nt", LINE), tmp_path / "index")
    source = write("two.nt", LINE + LINE.replace("/b", "/c"))
    script = (
        "import os, sys; from hopling.graphs import build_index;"
        "build_index(sys.argv[1], sys.argv[2], on_progress=lambda *done: os._exit(9))"
    )
    command = [sys.executable, "-c", script, str(source), str(tmp_path / "index")]
    assert subprocess.run(command, check=False).returncode == 9
    assert HopIndex.open(tmp_path / "index").info().triples == 1
    assert build_index(source, tmp_path / "index").triples == 2


def test_sources_that_cannot_be_read_say_what_to_do(write: Write, tmp_path: Path) -> None:
    """Ours."""
    with pytest.raises(SettingsError, match="No source"):
        build_index([], tmp_path / "index")
    with pytest.raises(SettingsError, match=r"t\.xyz ends in none of"):
        build_index(write("t.xyz", ""), tmp_path / "index")
    with pytest.raises(SettingsError, match="There is no file"):
        build_index(tmp_path / "none.nt", tmp_path / "index")
    write("note.txt", "mine")
    with pytest.raises(SettingsError, match="holds files that are not a graph's"):
        build_index(write("t.nt", LINE), tmp_path)
