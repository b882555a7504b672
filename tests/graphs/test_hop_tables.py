"""Tests of hopling.graphs.hop_tables and its kernel: what they write, the tool would write too."""

import builtins
import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from hopling.episode import Episode, Observation, Prompt, Task
from hopling.errors import SettingsError
from hopling.graphs import HopIndex, build_index
from hopling.testing import check_graph, check_same_graph
from hopling.tools import OneHopSearch

Write = Callable[[str, str], Path]
NS = "http://t.example/"
NAME = "http://www.w3.org/2000/01/rdf-schema#label"

NODES = st.sampled_from(["a", "b", "c", "ab", "d\u00e9", "long/" + 70 * "id"])
RELATIONS = st.sampled_from(["p", "q.r.s_t", "u"])
SPACE = st.sampled_from([" ", "\t", "\n ", "\x1c", "\x85", "\u00a0", "\u2003", "\u3000", "|", "\\"])
PIECES = st.one_of(SPACE, st.text(st.characters(exclude_categories=["Cs"]), max_size=4))
TEXTS = st.builds(
    lambda pieces, times: times * "".join(pieces),
    st.lists(PIECES, max_size=4),
    st.sampled_from([1, 1, 1, 60, 150]),
)
TAGS = st.sampled_from(["", "@en", "@en-gb", "@mul", "@de", "@fr", f"^^<{NS}t>"])
LITERALS = st.builds(lambda text, tag: _written(text) + tag, TEXTS, TAGS)
EDGES = st.tuples(NODES, RELATIONS, st.one_of(NODES.map(lambda n: f"<{NS}{n}>"), LITERALS))
LABELS = st.tuples(st.one_of(NODES, RELATIONS), st.just(""), LITERALS)


def _written(text: str) -> str:
    return '"' + "".join(f"\\U{ord(character):08X}" for character in text) + '"'


def _lines(triples: list[tuple[str, str, str]]) -> str:
    return "".join(f"<{NS}{h}> <{NS + r if r else NAME}> {t} .\n" for h, r, t in triples)


def _both(source: Path, folder: Path) -> tuple[HopIndex, HopIndex]:
    build_index(source, folder, namespace=NS)
    return HopIndex.open(folder, kernel="numba"), HopIndex.open(folder, kernel="none")


@settings(max_examples=60, deadline=None)
@given(st.lists(EDGES, min_size=1, max_size=25), st.lists(LABELS, max_size=12))
@example([("a", "p", '"x"'), ("a", "p", '"x"@en'), ("a", "q.r.s_t", f"<{NS}x>")], [])
@example([("a", "p", '"\\u0000"'), ("b", "p", '"\\"q\\""')], [])
@example([("a", "p", f"<{NS}b>")], [("b", "", '"' + 396 * "x" + ' \u00e9 yz"')])
@example([("a", "p", '"' + 397 * "\u00e9" + 'abc"'), ("b", "p", '"' + 401 * "\u00e9" + '"')], [])
def test_the_kernel_writes_what_the_tool_would(
    edges: list[tuple[str, str, str]], labels: list[tuple[str, str, str]]
) -> None:
    """Ours: two implementations, one text."""
    with TemporaryDirectory() as folder:
        source = Path(folder, "t.nt")
        source.write_text(_lines([*edges, *labels]), encoding="utf-8")
        compiled, plain = _both(source, Path(folder, "index"))
        check_same_graph(compiled, plain, list(plain.nodes()))


def _table(index: HopIndex, *names: str) -> Observation:
    return OneHopSearch(index)(Episode(Task("t", ""), Prompt("")), list(names), "outgoing")


@pytest.fixture
def hub(write: Write, tmp_path: Path) -> HopIndex:
    """Return a graph of a hub with 70 relations and 7,000 edges, and 30 nodes of 3 edges."""
    rows = [f"hub\tt.r{i % 70:02}\tn{i}" for i in range(7_000)]
    rows += [f"n{i}\tt.r{k}\tn{i + k}" for i in range(30) for k in (1, 2, 3)]
    build_index(write("t.tsv", "\n".join(rows)), tmp_path / "index")
    return HopIndex.open(tmp_path / "index", kernel="numba")


def test_a_hub_is_summed_up_by_the_kernel(hub: HopIndex) -> None:
    """BUGS.md B09: counts of all properties, 50 of them shown, no row read."""
    tool = OneHopSearch(hub)
    table = hub.search_table(["hub"], "outgoing", [], tool._form)
    assert table is not None
    assert (table.total, table.num_shown, table.num_properties) == (7_000, 50, 70)
    assert table.lines.startswith("| t.r00 | r00 | 100 |\n| t.r01 | r01 | 100 |\n")
    assert table.nodes == ()
    check_graph(hub, ["hub", *(f"n{i}" for i in range(25))])


def test_rows_are_cut_by_the_kernel_where_the_tool_cuts_them(hub: HopIndex) -> None:
    """BUGS.md B09: what is left out is said, and how to go on."""
    names = [f"n{i}" for i in range(20)]
    table = hub.search_table(names, "outgoing", ["t.r1", "t.r2", "t.r3"], OneHopSearch(hub)._form)
    assert table is not None
    assert (table.total, table.num_shown, table.lines.count("\n")) == (60, 50, 49)
    assert table.lines.startswith("| n0 | - | t.r1 | r1 | n1 | - |\n")


def test_what_the_kernel_cannot_write_is_left_to_the_tool(hub: HopIndex) -> None:
    """Ours: unknown names and properties, half characters, more names than it has room for."""
    form = OneHopSearch(hub)._form
    many = [f"n{i}" for i in range(129)]
    for names, properties in [
        (["nobody"], []),
        (["hub"], ["none such"]),
        (["n1"], ["t.r69"]),
        (["\ud800"], []),
        (["n1\0n2"], []),
        (many, []),
        (["n9" * 20_000], []),
    ]:
        assert hub.search_table(names, "outgoing", properties, form) is None, names[:3]
    assert hub.search_table(["n1"], "outgoing", [], form) is not None


def test_threads_share_an_index(hub: HopIndex) -> None:
    """DESIGN law 1: each call works in a place of its own."""
    names = [[f"n{i}", f"n{i + 1}"] for i in range(25)]
    alone = [_table(hub, *pair) for pair in names]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(lambda pair: _table(hub, *pair), 40 * names)) == 40 * alone


def test_labels_do_not_depend_on_the_order_of_lines(tmp_path: Path) -> None:
    """BUGS.md B03: en, then mul, then any, the same after shuffling; no label shows the id."""
    lines = [f"<{NS}s> <{NS}p> <{NS}e{i}> ." for i in (1, 2, 3)]
    for node, label in [
        ("e1", '"\u062f\u0648\u063a"@fa'),
        ("e1", '"Dora Quill"@mul'),
        ("e3", '"Ana"@pt'),
        ("e3", '"Anna"@de'),
    ]:
        lines.append(f"<{NS}{node}> <{NAME}> {label} .")
    for seed in range(4):
        random.Random(seed).shuffle(lines)
        source = tmp_path / f"{seed}.nt"
        source.write_text("\n".join(lines), encoding="utf-8")
        for index in _both(source, tmp_path / f"index{seed}"):
            assert _table(index, "s").names == ("Dora Quill", "e2", "Anna")


def test_numba_is_loaded_once_it_pays(hub: HopIndex, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours: a single call needs no compiler; both give one text."""
    monkeypatch.setattr("hopling.graphs.hop_index._PAYS_AFTER", 3)
    index = HopIndex.open(hub.folder)
    seen = [_table(index, "n1") for _ in range(4)]
    assert index._tables is not None
    assert seen == 4 * [_table(HopIndex.open(hub.folder, kernel="none"), "n1")]


def test_without_numba_python_writes_the_tables(
    hub: HopIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ours: auto falls back; who asks for numba is told what to install."""
    load = builtins.__import__

    def refuse(name: str, *rest: object, **more: object) -> ModuleType:
        if name == "hopling.graphs.hop_tables":
            raise ImportError("No module named 'numba'")
        return load(name, *rest, **more)  # type: ignore[arg-type]

    monkeypatch.setattr("hopling.graphs.hop_index._PAYS_AFTER", 0)
    monkeypatch.setattr(builtins, "__import__", refuse)
    assert _table(HopIndex.open(hub.folder), "n1").nodes == ("n2", "n3", "n4")
    with pytest.raises(SettingsError, match=r"pip install 'hopling\[graphs\]'"):
        _table(HopIndex.open(hub.folder, kernel="numba"), "n1")


def test_an_unknown_kernel_is_refused(hub: HopIndex) -> None:
    """CONVENTIONS: what was found, what was expected."""
    with pytest.raises(SettingsError, match="kernel is 'cuda'; write 'auto', 'numba' or 'none'"):
        HopIndex.open(hub.folder, kernel="cuda")  # type: ignore[arg-type]
