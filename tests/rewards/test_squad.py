import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopling.episode import Answer, Ending, Episode, Prompt, Task, Turn
from hopling.errors import SettingsError
from hopling.rewards.squad import squad_em, squad_f1, squad_normalized, word_f1


def _said(text: str | None, *gold: str) -> Episode:
    episode = Episode(Task("t", "Where?", answers=gold), Prompt("Where?"))
    if text is not None:
        episode.turns.append(Turn(text, (Answer(text),)))
        episode.ending = Ending.ANSWERED
    return episode


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("   Rock    n  Roll.", "rock n roll"),
        ("The Cat!", "cat"),
        ("a dog and an apple", "dog and apple"),
        ("Theatre, another", "theatre another"),
        ("e.g. the A-team", "eg ateam"),
        ("the-end", "theend"),
        ("U.S.\tan\nHour", "us hour"),
        ("The", ""),
        ("\u00c9tude \u2013 \u5317\u4eac\u5e02", "\u00e9tude \u2013 \u5317\u4eac\u5e02"),
        ("(3.14)", "314"),
    ],
)
def test_text_is_normalized_as_by_the_script_of_squad(text: str, normal: str):
    """SQuAD's evaluation script: lower, ASCII punctuation out, then articles, then spaces."""
    assert squad_normalized(text) == normal


@pytest.mark.parametrize(
    ("predicted", "gold", "f1"),
    [
        ("rock", "rock n roll", 0.5),
        ("rock n roll", "rock n roll", 1.0),
        ("bob dylan", "robert zimmerman", 0.0),
        ("new york city", "york", 0.5),
        ("paris paris", "paris", 2 / 3),
        ("yes", "yes it is", 0.0),
        ("no doubt", "no", 0.0),
        ("yes", "yes", 1.0),
        ("", "rock", 0.0),
    ],
)
def test_f1_counts_words_and_gives_yes_and_no_no_part(predicted: str, gold: str, f1: float):
    """HotpotQA's evaluation script, worked by hand: 2 x same / (words + words)."""
    assert word_f1(predicted, gold) == pytest.approx(f1)


def test_any_alias_counts_and_the_best_one_for_f1():
    """PAPERS.md 3.3 (e): SQuAD normalizer, aliases allowed; the maximum over answers."""
    aliases = ("politician", "The political leader")
    assert squad_em(_said("Political leader.", *aliases)) == 1.0
    assert squad_em(_said("leader", *aliases)) == 0.0
    assert squad_f1(_said("leader", *aliases)) == pytest.approx(2 / 3)


@pytest.mark.parametrize("text", [None, "", "the", "Oslo or Rome or Bern"])
def test_saying_nothing_or_everything_is_no_match(text: str | None):
    """BUGS B32."""
    assert squad_em(_said(text, "Rome")) == 0.0


@pytest.mark.parametrize("gold", [(), ("",), ("The", "...")])
def test_a_task_without_an_answer_cannot_be_scored(gold: tuple[str, ...]):
    """BUGS B32: an empty gold answer is reported, not matched by an empty prediction."""
    for scorer in (squad_em, squad_f1):
        with pytest.raises(SettingsError, match="cannot be scored"):
            scorer(_said("", *gold))


WORDS = st.text(st.sampled_from("ab the.,-!'"), max_size=12)


@given(WORDS, WORDS)
def test_a_match_is_what_has_f1_of_one_and_f1_knows_no_order(one: str, other: str):
    """Ours: properties that hold of the scripts too."""
    first, second = squad_normalized(one), squad_normalized(other)
    assert squad_normalized(first) == first or "the" in first.split() or "a" in first.split()
    assert word_f1(first, second) == word_f1(second, first)
    assert 0.0 <= word_f1(first, second) <= 1.0
    if first and second:
        assert word_f1(first, second) == 1.0 or first != second
        assert squad_em(_said(one, other)) == float(first == second)
