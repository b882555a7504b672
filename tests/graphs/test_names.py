"""Tests of hopling.graphs.names."""

import unicodedata
from collections.abc import Iterable
from itertools import permutations
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from hopling.graphs import HopIndex, RdfStore, build_index
from hopling.graphs.names import MIN_LIKENESS, Label, chosen, distinct, folded, likeness, trigrams

NS = "http://t.example/"
NAME = "http://www.w3.org/2000/01/rdf-schema#label"


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ([("fa", "dugh"), ("mul", "Dora Quill")], "Dora Quill"),
        ([("pt", "Ana"), ("de", "Anna")], "Anna"),
        ([("", "plain"), ("de", "Anna")], "plain"),
        ([("mul", "all"), ("", "plain")], "all"),
        ([("en-gb", "colour"), ("mul", "all")], "colour"),
        ([("en-gb", "colour"), ("en", "color")], "color"),
        ([("en", "b"), ("en", "a")], "a"),
        ([("eng", "x"), ("de", "y")], "y"),
    ],
)
def test_the_label_chain_does_not_depend_on_order(
    labels: list[tuple[str, str]], expected: str
) -> None:
    """BUGS.md B03: preferred, mul, untagged, any by tag."""
    for order in permutations(Label(*label) for label in labels):
        label = chosen(order, ["en"])
        assert label is not None
        assert label.text == expected


def test_no_label_is_none() -> None:
    """BUGS.md B03."""
    assert chosen([], ["en"]) is None


def test_spellings_of_one_name_have_one_key() -> None:
    """BUGS.md B19: NFC and case-folding on both sides."""
    name = "Zo\u00eb / S\u00e3o-Lu\u00eds (v2)"
    assert folded(unicodedata.normalize("NFD", name)) == folded(name)
    assert folded(name.upper()) == folded(name)


LETTERS = st.text(st.sampled_from("aAbc \u00e9e\u0301\u00df"), min_size=1, max_size=7)
IDS = st.sampled_from(["a", "ab", "B", "c.d"])


def _meant(labels: Iterable[tuple[str, str]], name: str) -> list[str]:
    """Return what a name means by looking at every label (id, text)."""
    key = folded(name)
    found = [((0, 0.0, ""), id) for id in {id for id, _ in labels} if id == name]
    for id, text in labels:
        other = folded(text)
        score = likeness(key, other)
        if other == key:
            found.append(((1 if text == name else 2, 0.0, ""), id))
        elif other.startswith(key):
            found.append(((3, 0.0, other), id))
        if trigrams(other) & trigrams(key) and score >= MIN_LIKENESS:
            found.append(((4, -score, other), id))
    return list(dict.fromkeys(id for _, id in sorted(found))) if key else []


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(IDS, LETTERS), max_size=9), LETTERS | IDS, st.integers(0, 5))
@example([("a", "John Low"), ("c.d", "JOHN LOWE"), ("ab", "John Low"), ("B", "Jon Low")], "john", 9)
def test_a_name_is_looked_up_as_a_look_at_every_label_would(
    labels: list[tuple[str, str]], name: str, limit: int
) -> None:
    """Ours: id, same label, case-folded, beginning, similar; ties by id; BUGS.md B15, B19."""
    named = [(id, text) for id, text in labels if text.strip()]
    rows = [f'<{NS}{id}> <{NAME}> "{text}"@en .\n' for id, text in named]
    expected = _meant(named, name)
    with TemporaryDirectory() as folder:
        source = Path(folder, "t.nt")
        source.write_text("".join(rows), encoding="utf-8")
        build_index(source, Path(folder, "index"), namespace=NS)
        index = HopIndex.open(Path(folder, "index"))
        with RdfStore.load(source, Path(folder, "store"), namespace=NS) as store:
            for graph in (index, store):
                assert graph.find(name, 100) == expected
                assert graph.find(name, limit) == expected[:limit]


def test_ids_are_taken_once_and_no_more_than_are_wanted() -> None:
    """Ours: the likeness of names is not computed where the first ids are enough."""
    asked = iter("aabc")
    assert distinct(asked, 2) == ["a", "b"]
    assert next(asked) == "c"
    assert distinct(iter("a"), 0) == []
