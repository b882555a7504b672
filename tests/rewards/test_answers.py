import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopling.episode import Answer, Ending, Episode, Observation, Prompt, Task, Turn
from hopling.errors import SettingsError
from hopling.rewards.answers import (
    exact_match,
    f1,
    grounded,
    hits_any,
    hits_first,
    key,
    normalized,
    observed,
    predicted,
    ungrounded,
)

SCORERS = (exact_match, f1, hits_any, hits_first)
NAMES = st.text(st.characters(categories=["L", "N"]), min_size=1, max_size=8)
XSD = "http://www.w3.org/2001/XMLSchema#"


def _played(answer: str, gold: tuple[str, ...] = ("?",), seen: tuple[str, ...] = ()) -> Episode:
    episode = Episode(Task("t", "?", answers=gold), Prompt("?"), ending=Ending.ANSWERED)
    episode.turns.append(Turn("", (), (Observation("rows", seen, seen),)))
    episode.turns.append(Turn(answer, (Answer(answer),)))
    return episode


def test_names_are_compared_without_case_forms_and_spaces():
    """BUGS B19: NFD, upper case and the exact label are one name."""
    label = "Zo\u00eb / S\u00e3o-Lu\u00eds (v2)"

    spellings = [unicodedata.normalize("NFD", label), label.upper(), label, f"  {label}\n"]

    assert {normalized(spelling) for spelling in spellings} == {label.casefold()}


@given(st.text())
def test_normalizing_twice_changes_nothing(text: str):
    """Ours: the normalized form is a fixed point."""
    assert normalized(normalized(text)) == normalized(text)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("(3.14)", "3.14"),
        ("\u22125", "-5"),
        ("\u20135", "-5"),
        ("1,000", "1000"),
        ("1.50", f'"1.5"^^<{XSD}decimal>'),
        ("5", f'"05"^^<{XSD}integer>'),
        ("true", "True"),
        ("true", f'"1"^^<{XSD}boolean>'),
        ("4 August 1961", "1961-08-04"),
        ("August 4, 1961", "1961-08-04Z"),
        ("1961-08-04T00:00:00", f'"1961-08-04"^^<{XSD}date>'),
        ("Rome", f'"Rome"^^<{XSD}string>'),
    ],
)
def test_values_are_equal_in_any_of_the_listed_spellings(one: str, other: str):
    """BUGS B04, B33."""
    assert key(one) == key(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("007", "7"),
        ("(3.14)", "314"),
        ("1,00", "100"),
        ("5", f'"5"^^<{XSD}string>'),
        ("true", "1"),
        ("31 February 1961", "1961-02-31"),
        ("1961-08-04", "1961-08-05"),
    ],
)
def test_other_spellings_are_text(one: str, other: str):
    """BUGS B04: strings are not coerced; B33: "(3.14)" is not 314."""
    assert key(one) != key(other)


@pytest.mark.parametrize(
    ("answer", "seen", "names"),
    [
        ("{A}, {B}", (), ("A", "B")),
        ("{A, B}", (), ("A", "B")),
        ("{Washington, D.C.}", ("Washington, D.C.",), ("Washington, D.C.",)),
        ("{Ohio, Washington, D.C.}", ("Washington, D.C.",), ("Ohio", "Washington, D.C.")),
        ("{washington,  d.c., Ohio}", ("Washington, D.C.",), ("washington,  d.c.", "Ohio")),
        ("{A, B, C}", ("A, B", "B, C", "A, B, C"), ("A, B, C",)),
        ("{A, B, C}", ("A, B", "B, C"), ("A, B", "C")),
        ("{1,000}", (), ("1,000",)),
        ("{August 4, 1961}", (), ("August 4, 1961",)),
        ("{Low \\| High}", ("Low | High",), ("Low | High",)),
        ("Washington, D.C.", ("Washington, D.C.",), ("Washington, D.C.",)),
        ("{}, { }, {,}", (), ()),
        ("", (), ()),
    ],
)
def test_brace_groups_are_split_into_the_names_that_were_seen(
    answer: str, seen: tuple[str, ...], names: tuple[str, ...]
):
    """PAPERS 1.1: names contain commas."""
    assert predicted(_played(answer, seen=seen)) == names


@pytest.mark.parametrize(
    ("answer", "em", "f", "any_hit", "first"),
    [
        ("{A}, {A}", 0.0, 2 / 3, 1.0, 1.0),
        ("{B}, {A}", 1.0, 1.0, 1.0, 1.0),
        ("{A}, {C}", 0.0, 0.5, 1.0, 1.0),
        ("{C}, {A}", 0.0, 0.5, 1.0, 0.0),
        ("{C}", 0.0, 0.0, 0.0, 0.0),
    ],
)
def test_answers_are_compared_as_sets(
    answer: str, em: float, f: float, any_hit: float, first: float
):
    """BUGS B33: gold {A, B}; Hits@1 looks at the first answer only, or says any."""
    episode = _played(answer, ("A", "B"))

    scores = [score(episode) for score in SCORERS]

    assert scores == pytest.approx([em, f, any_hit, first])


@given(gold=st.sets(NAMES, min_size=1, max_size=4), rest=st.sets(NAMES, max_size=4))
def test_exact_match_is_one_iff_f1_is(gold: set[str], rest: set[str]):
    """Ours: both compare the same two sets."""
    answer = ", ".join(f"{{{name}}}" for name in gold | rest)
    episode = _played(answer, tuple(gold))

    assert (exact_match(episode) == 1.0) == (f1(episode) == 1.0)
    assert hits_any(episode) == 1.0


@pytest.mark.parametrize("answer", ["", "{}", "{ , }", "Final"])
def test_an_empty_prediction_earns_nothing(answer: str):
    """BUGS B32: ("", gold "Rome")."""
    assert [score(_played(answer, ("Rome",))) for score in SCORERS] == [0.0] * 4


def test_a_hedged_answer_is_no_match():
    """BUGS B32: "Oslo or Rome or Bern" against Rome; never containment."""
    assert exact_match(_played("{Oslo or Rome or Bern}", ("Rome",))) == 0.0
    assert exact_match(_played("{Oslo}, {Rome}, {Bern}", ("Rome",))) == 0.0


@pytest.mark.parametrize("gold", [(), ("",), (" ",)])
@pytest.mark.parametrize("score", [*SCORERS, observed])
def test_an_empty_gold_set_cannot_be_scored(score: object, gold: tuple[str, ...]):
    """BUGS B32: ("Rome", gold []) and ("", gold [])."""
    for answer in ("{Rome}", ""):
        with pytest.raises(SettingsError, match="'t' has no answers"):
            score(_played(answer, gold))


def test_an_episode_without_an_answer_earns_nothing():
    """SoG-R1 Alg. 1: a spent budget gives the empty answer."""
    episode = _played("{Rome}", ("Rome",))
    episode.ending = Ending.OUT_OF_TURNS

    assert [score(episode) for score in SCORERS] == [0.0] * 4


def test_what_was_observed_and_what_was_recalled_are_told_apart():
    """BUGS B26: a correct name that was never looked up."""
    recalled = _played("{Rome}", ("Rome", "Oslo"), seen=("Oslo", "Bern"))
    found = _played("{oslo}", ("Oslo",), seen=("Oslo", "Bern"))

    assert (observed(recalled), grounded(recalled)) == (0.5, 0.0)
    assert (observed(found), grounded(found)) == (1.0, 1.0)
    assert (ungrounded(recalled), ungrounded(found)) == (("Rome",), ())
