"""Tests of builds that are killed, run out of disk or memory, or meet equal hashes."""

import errno
import os
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import zstandard

from hopling.errors import DataError, SettingsError
from hopling.graphs import BuildSettings, HopIndex, build_index, collect, dictionary, edge_arrays
from hopling.graphs.formats import Source
from hopling.graphs.layout import ArrayFile, check_arrays
from hopling.graphs.profiles import profile_named
from hopling.graphs.spill import NumberRuns, TextRuns, Texts

Write = Callable[[str, str], Path]
NS = "http://t.example/"
LINE = "<http://t.example/a> <http://t.example/p> <http://t.example/b> .\n"
ODD_LINES = (
    f"\ufeff{LINE}# comment\n\n  \t\n"
    f'<{NS}a>\t<{NS}p>  "x"@en-GB\t.  \r\n<{NS}a> <{NS}p> "x"@EN-gb .\n_:b <{NS}p> _:c . # why\n'
    f'<{NS}a> <{NS}p> "1"^^<http://www.w3.org/2001/XMLSchema#string> .\n<{NS}p> <{NS}p> <{NS}a>.\n'
    f'<{NS}a> <{NS}name> "A \\u00e4"@de .\n<{NS}a> <{NS}name> "  "@de .\n'
    f'<{NS}a> <{NS}name> "T"^^<x:t> .\n'
    f'<{NS}a:b> <{NS}p> "a" .\n<{NS}> <{NS}p> "a\0" .\n<{NS}a> <{NS}name> <{NS}zz> .\n'
    f'<{NS}a> <{NS}p> "{"long " * 9}1" .\n<{NS}a> <{NS}p> "{"long " * 9}0" .\n'
    f'<a> <{NS}p> "no scheme" .\n<{NS}a> <{NS}p> "open .\n<{NS}a> <{NS}p> "x"@ .\n'
    f"<{NS}a> <{NS}p> <{NS}b c> .\n<{NS}a> <{NS}p> <{NS}b>\n<{NS}a> <{NS}p> <{NS}b> . <\n"
    f'<{NS}a> <{NS}p> "caf\u00e9"@fr .\n<{NS}a> <{NS}p> "no end of line" .'
)
ODD_ROWS = f"\ufeffa\tp\tb\r\n\n \n{NS}a\tp\t{NS}c\na\t\tc\na\tb\na\tb\tc\td\na\tp\tb\r\r\nx\ty\tz"


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize(("name", "text"), [("a.nt", ODD_LINES), ("a.tsv", ODD_ROWS)])
@pytest.mark.parametrize("ending", [b"", b"\na\tp\t\xff\n"])
def test_the_compiled_scan_gives_the_same_bytes_as_python(
    name: str, text: str, ending: bytes, tmp_path: Path
) -> None:
    """Ours: what is a triple, a label or a bad line does not depend on numba."""
    source = tmp_path / name
    source.write_bytes(text.encode() + ending)
    for scanner in ("none", "numba"):
        settings = BuildSettings(strict=False, scanner=scanner)
        build_index(source, tmp_path / scanner, namespace=NS, labels=["name"], settings=settings)
    assert contents(tmp_path / "none") == contents(tmp_path / "numba")
    report = HopIndex.open(tmp_path / "none").info()
    assert report.triples > 2
    assert report.bad_lines


FB, WD = "http://rdf.freebase.com/ns/", "http://www.wikidata.org/"
DUMPS = {
    "freebase": f'ns:m.1\tns:p.q\tns:m.2.\nns:m.1\tns:type.object.name\t"see ns:m.2 ."@en.\n'
    f'<{FB}m.2>\t<{FB}p.q>\tns:m.1\t.\n<{FB}m.2>\t<{FB}common.x>\t"n"@de\t.\nbad line\n',
    "wikidata": f"<{WD}entity/Q1> <{WD}prop/direct/P31> <{WD}entity/Q2> .\n"
    f'<{WD}entity/Q1> <http://www.w3.org/2000/01/rdf-schema#label> "One"@mul .\nbad line\n',
}


@pytest.mark.parametrize("name", DUMPS)
def test_a_profile_gives_the_same_bytes_compiled_or_not(name: str, tmp_path: Path) -> None:
    """Issue 3, item 2: the profiles work on lines, before either scan."""
    (tmp_path / "dump").write_text(DUMPS[name])
    for scanner in ("none", "numba"):
        profile = profile_named(name)
        assert profile is not None
        settings = BuildSettings(strict=False, scanner=scanner)
        source = Source(tmp_path / "dump", "nt", profile=profile)
        build_index(source, tmp_path / scanner, namespace=profile.namespace, settings=settings)
    assert contents(tmp_path / "none") == contents(tmp_path / "numba")
    report = HopIndex.open(tmp_path / "none").info()
    assert (report.triples, report.labelled) == (2 if name == "freebase" else 1, 1)
    assert sum(report.bad_lines.values()) == 1


def test_little_memory_gives_the_same_bytes(
    films: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ours: partitions and runs on disk, and edges of more than 64 bits."""
    build_index(films, tmp_path / "much", namespace=NS)
    monkeypatch.setattr(BuildSettings, "__post_init__", lambda self: None)
    monkeypatch.setattr(edge_arrays._Packing, "is_wide", True)
    settings = BuildSettings(memory_mib=0.001)  # type: ignore[arg-type]
    build_index(films, tmp_path / "little", namespace=NS, settings=settings)
    assert contents(tmp_path / "much") == contents(tmp_path / "little")


def test_terms_that_share_a_hash_stay_apart(
    films: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ours: the build begins again with another seed."""
    build_index(films, tmp_path / "plain", namespace=NS)
    seeds = []

    def weak(seed: int) -> collect.Hash:
        seeds.append(seed)
        strong = collect.blake(seed)
        return (lambda text: (strong(text)[0] % 4, strong(text)[1])) if seed < 2 else strong

    monkeypatch.setattr("hopling.graphs.build.blake", weak)
    build_index(films, tmp_path / "index", namespace=NS)
    assert seeds == [0, 1, 2]
    assert contents(tmp_path / "plain") == contents(tmp_path / "index")


def test_numbers_are_sorted_outside_memory(tmp_path: Path) -> None:
    """Ours: every number once, in order, from several runs."""
    numbers = np.random.default_rng(0).integers(0, 9_000, 20_000).astype(np.uint64)
    runs = NumberRuns(tmp_path, "numbers", np.dtype("u8"), max_rows=1024)
    for piece in np.array_split(numbers, 50):
        runs.append(piece)
    blocks = list(runs.merged())
    assert len(blocks) > 5
    np.testing.assert_array_equal(np.concatenate(blocks), np.unique(numbers))
    assert not list(tmp_path.iterdir())


def test_texts_are_sorted_outside_memory(tmp_path: Path) -> None:
    """Ours: by bytes, then by number; a NUL and a long common beginning make no difference."""
    rng = random.Random(0)
    texts = [bytes(rng.choices(b"\0ab", k=rng.randrange(5))) for _ in range(500)]
    texts += [b"a common beginning " + text for text in texts]
    ties = list(range(len(texts)))
    rng.shuffle(ties)
    runs = TextRuns(tmp_path, "texts", max_bytes=0)
    for first in range(0, len(texts), 50):
        piece = texts[first : first + 50]
        runs.append(
            Texts(
                np.frombuffer(b"".join(piece), np.uint8),
                np.array([len(text) for text in piece], np.int32),
                np.array(ties[first : first + 50]),
                np.zeros(len(piece), np.uint64),
            )
        )
    blocks = list(runs.merged())
    assert len(blocks) > 3
    found = np.concatenate([block.ties for block in blocks]).tolist()
    assert found == [tie for _, tie in sorted(zip(texts, ties, strict=True))]


POINTS = ["collect.Collector.finish", "build.write_edges", "layout.IndexWriter.finish"]


@pytest.mark.parametrize("point", POINTS)
def test_a_kill_at_any_point_leaves_the_old_index_whole(
    point: str, write: Write, tmp_path: Path
) -> None:
    """Issue 3: and the next build removes what the killed one left."""
    build_index(write("one.nt", LINE), tmp_path / "index")
    source = write("two.nt", LINE + LINE.replace("/b", "/c"))
    script = (
        "import os, sys\nfrom hopling.graphs import build, build_index, collect, layout\n"
        f"{point} = lambda *given, **named: os._exit(9)\n"
        "build_index(sys.argv[1], sys.argv[2])"
    )
    command = [sys.executable, "-c", script, str(source), str(tmp_path / "index")]
    assert subprocess.run(command, check=False).returncode == 9
    assert HopIndex.open(tmp_path / "index").info().triples == 1
    assert len(list(tmp_path.glob(".index.*"))) == 1
    assert build_index(source, tmp_path / "index").triples == 2
    assert not list(tmp_path.glob(".index.*"))


def test_an_index_moved_away_by_a_killed_build_is_put_back(write: Write, tmp_path: Path) -> None:
    """Ours: a kill between the two renames."""
    build_index(write("one.nt", LINE), tmp_path / "index")
    (tmp_path / "index").rename(tmp_path / ".index.old-1")
    with pytest.raises(SettingsError, match="There is no file"):
        build_index(tmp_path / "none.nt", tmp_path / "index")
    assert HopIndex.open(tmp_path / "index").info().triples == 1


@pytest.mark.parametrize("after", [0, 5, 20])
def test_a_full_disk_leaves_the_old_index_whole(
    after: int, write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Issue 3."""
    build_index(write("one.nt", LINE), tmp_path / "index")
    left = [after]

    def full(self: ArrayFile, values: np.ndarray) -> None:
        left[0] -= 1
        if left[0] < 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        append(self, values)

    append = ArrayFile.append
    monkeypatch.setattr(ArrayFile, "append", full)
    with pytest.raises(SettingsError, match=r"disk of .* is full.*Free some space"):
        build_index(write("two.nt", LINE * 2), tmp_path / "index")
    assert HopIndex.open(tmp_path / "index").info().triples == 1
    assert not list(tmp_path.glob(".index.*"))


def test_a_changed_byte_is_found(films: Path, tmp_path: Path) -> None:
    """Ours: sizes are checked on opening, contents on demand."""
    folder = tmp_path / "index"
    build_index(films, folder, namespace=NS)
    assert check_arrays(folder) == []
    path = folder / "outgoing_value.npy"
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    assert check_arrays(folder) == ["outgoing_value"]


def mediators(folder: Path) -> list[str]:
    index = HopIndex.open(folder)
    marks = np.load(folder / "term_mediator.npy")
    return [node for node in index.nodes() if marks[index._place(node)]]


def test_mediators_are_told_by_rule_relation_or_type(films: Path, tmp_path: Path) -> None:
    """Issue 3: no label and n-ary, a list of relations, or types."""
    build_index(films, tmp_path / "rule", namespace=NS)
    assert mediators(tmp_path / "rule") == ["genid:0-r2", "r1"]
    for name, expected in [("plays", ["genid:0-r2", "r1"]), ("ann", ["kismet", "low"])]:
        settings = BuildSettings(mediators=[name])
        build_index(films, tmp_path / name, namespace=NS, settings=settings)
        assert mediators(tmp_path / name) == expected
    settings = BuildSettings(mediators=["nobody"])
    with pytest.raises(SettingsError, match="'nobody', which is no id"):
        build_index(films, tmp_path / "none", namespace=NS, settings=settings)


def test_settings_that_cannot_be_say_what_to_write() -> None:
    """Ours."""
    with pytest.raises(SettingsError, match="memory_mib is 1; a build needs at least 64"):
        BuildSettings(memory_mib=1)
    with pytest.raises(SettingsError, match="scanner is 'c'; write"):
        BuildSettings(scanner="c")  # type: ignore[arg-type]
    assert dictionary.buckets_for(5) == 8


def test_zstandard_is_read_and_a_cut_file_refused(films: Path, tmp_path: Path) -> None:
    """Ours: several frames one after the other are one file."""
    expected = build_index(films, tmp_path / "plain", namespace=NS).graph_hash
    lines = films.read_bytes().splitlines(keepends=True)
    frames = [zstandard.compress(b"".join(piece)) for piece in (lines[:5], lines[5:])]
    source = tmp_path / "films.nt.zst"
    source.write_bytes(b"".join(frames))
    assert build_index(source, tmp_path / "index", namespace=NS).graph_hash == expected
    source.write_bytes(b"".join(frames)[:-9])
    with pytest.raises(DataError, match="not a whole zstandard file"):
        build_index(source, tmp_path / "index", namespace=NS)
