"""Tests of hopling.graphs.names."""

import unicodedata
from itertools import permutations

import pytest

from hopling.graphs.names import Label, NameTable, chosen, folded


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


def test_names_are_found_exact_then_folded_then_similar() -> None:
    """Ours: the order that Graph.find promises."""
    table = NameTable([("Ann Lee", "2"), ("ANN LEE", "1"), ("Anne Lee", "3"), ("Bob", "4")])
    assert table.find("Ann Lee", 10) == ["2", "1", "3"]
    assert table.find("Ann Lee", 1) == ["2"]
    assert table.find("Amn Lee", 10) == ["1", "2", "3"]
    assert table.find("zzz", 10) == table.find("", 10) == NameTable([]).find("a", 10) == []
