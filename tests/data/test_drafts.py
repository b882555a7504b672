from dataclasses import replace
from typing import Any

import pytest

from hopling.data.drafts import Draft, broken_rule, holds
from small_corpus import corpus

GRAPH = corpus()
GOOD = Draft(
    "p1",
    "Where was the director of Kismet born?",
    ("Oslo",),
    ("Kismet", "Ann Lee"),
    ("director of Kismet", "Where was Ann Lee born"),
    ("I look for the director.", "The director is Ann Lee.", "Ann Lee was born in Oslo."),
)
LONG = " ".join(["Oslo"] * 11)


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({}, None),
        ({"thoughts": ()}, None),
        ({"answers": ("oslo.", "Christiania")}, None),
        ({"documents": ("Kismet",), "queries": ("Kismet",)}, "fewer than two documents"),
        ({"documents": ("Kismet", "Kismet")}, "a document comes twice"),
        ({"queries": ("director of Kismet",)}, "not one query for each document"),
        ({"queries": ("director of Kismet", "The ...")}, "the question or a query is empty"),
        ({"question": " "}, "the question or a query is empty"),
        ({"queries": ("director of Kismet", "Director of the Kismet!")}, "a query comes twice"),
        ({"answers": ("",)}, "the answer is empty"),
        ({"answers": ()}, "the answer is empty"),
        ({"answers": (LONG,)}, "the answer is long"),
        ({"question": "Is Kismet's director from Oslo?"}, "the answer is in the question"),
        ({"answers": ("Bergen",)}, "the last document does not tell the answer"),
        ({"answers": ("Ann Lee",)}, "an earlier document tells the answer"),
        ({"queries": ("director of Kismet", "Ann Lee Oslo")}, "the answer is in a query"),
        ({"question": "Where was Ann Lee of Kismet born?"}, "the question names a later document"),
        ({"queries": ("Kismet Ann Lee", "Ann Lee born")}, "a query names a later document"),
        ({"queries": ("Kismet Dana", "Ann Lee born")}, "a query names what was not found yet"),
        ({"queries": ("Kismet 1999", "Ann Lee born")}, "a query names what was not found yet"),
        ({"queries": ("Who directed Kismet?", "Ann Lee's birth")}, None),
        ({"thoughts": ("It is Ann Lee.", "", "")}, "a thought tells what was not found yet"),
        ({"thoughts": ("", "Surely Oslo.", "")}, "a thought tells what was not found yet"),
    ],
)
def test_a_draft_is_held_to_its_rules(changes: dict[str, Any], rule: str | None):
    """GTA-RAG 3.4, "rule-based validation"; the rules are PAPERS.md 3.2's, and ours."""
    assert broken_rule(replace(GOOD, **changes), GRAPH.document) == rule


@pytest.mark.parametrize(
    ("text", "name", "is_held"),
    [
        ("Born in Oslo.", "oslo", True),
        ("The Oslofjord", "Oslo", False),
        ("No. 12", "1", False),
        ("\u6771\u4eac\u306f\u9996\u90fd", "\u6771\u4eac", True),
        ("\u0420\u0438\u043c\u043c\u0430", "\u0420\u0438\u043c", False),
        ("a the an", "the", False),
        ("Annual Ann", "Ann", True),
    ],
)
def test_names_are_found_as_whole_words_in_any_script(text: str, name: str, is_held: bool):
    """Issue 5, "Bad input": non-Latin text."""
    assert holds(text, name) == is_held


def test_a_drafts_way_is_a_hint_that_no_policy_sees():
    """DESIGN law 3."""
    assert GOOD.task.evidence == ("Kismet", "Ann Lee")
    assert GOOD.task.hints["hops"] == 2
    assert "Ann Lee" not in GOOD.task.question
