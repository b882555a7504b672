"""CNY's ladder of rewards, by hand on the graph of text_world, whose answer is tree, class 1."""

import pytest

from hopling.episode import Answer, Ending, Episode, Prompt, Task, Turn
from hopling.errors import SettingsError
from hopling.rewards.ladder import (
    REMOVED,
    RESCALED,
    Form,
    Tiers,
    hits_substring,
    is_well_formed,
    ladder,
    num_walks,
    right_class,
)
from text_world import TASK, played

THINK = "<think>Hm.</think>\n"
WALK = "<walk>b</walk>"
RIGHT, WRONG = "<answer>tree</answer>", "<answer>stone</answer>"
reward = ladder()


@pytest.mark.parametrize(
    ("turns", "full", "rescaled", "removed"),
    [
        ([THINK + WALK, THINK + RIGHT], 1.0, 1.0, 1.0),
        ([RIGHT], 1.0, 1.0, 1.0),
        (["So: " + WALK, RIGHT], 0.6, 0.5, 0.6),
        ([THINK + WALK, THINK + WRONG], 0.3, 0.25, 0.0),
        ([THINK + WRONG], 0.2, 0.15, 0.0),
        (["<walk>d</walk>", WRONG], 0.2, 0.15, 0.0),
        ([WALK, "I say " + WRONG], 0.1, 0.05, 0.1),
        ([WALK, THINK + "stone"], 0.0, 0.0, 0.0),
        ([WALK, WALK], 0.0, 0.0, 0.0),
    ],
)
def test_every_tier_is_that_of_equation_3(turns, full, rescaled, removed):
    """CNY Eq. 3 and Table 6: c f; c not f; f s; f not s (a refused walk reveals nothing); e; none.

    A repeated walk leaves the episode without an answer here, so nothing is earned.
    """
    episode = played(*turns)
    assert [ladder(t)(episode) for t in (Tiers(), RESCALED, REMOVED)] == [full, rescaled, removed]


def test_the_tiers_are_in_the_papers_order():
    """CNY Eq. 3: 1.0 > 0.6 > 0.3 > 0.2 > 0.1 > 0, and rescaling keeps it."""
    for tiers in (Tiers(), RESCALED):
        values = list(vars(tiers).values())
        assert values == sorted(values, reverse=True)
        assert len({*values, 0.0}) == 6


def test_an_answer_inside_a_thought_is_none():
    """BUGS B21: neither right nor an answer, and no format."""
    assert reward(played(f"<think>It is {RIGHT}</think>")) == 0.0
    assert reward(played(f"<think>It is {RIGHT}</think>{WRONG}")) == 0.1


def test_text_after_the_answer_costs_the_format():
    """BUGS B21: the answer counts all the same."""
    assert reward(played(f"{RIGHT} Hope this helps")) == 0.6


def test_a_class_that_contains_another_is_another():
    """Ours: "tree house" is no tree, nor the other way round."""
    assert right_class(played("<answer>tree house</answer>")) == 0.0
    house = Task("t", "?", ("a",), ("tree house",), ("7",))
    assert right_class(played(RIGHT, task=house)) == 0.0


def test_a_class_may_hold_commas_and_braces():
    """Ours: Products has such classes, which are one name each."""
    crafts = Task("t", "?", ("a",), ("Arts, Crafts & Sewing",), ("3",))
    for given, right in [("arts, crafts  & sewing", 1), ("Arts", 0), ("3", 1), (" 3 ", 1)]:
        assert right_class(played(f"<answer>{given}</answer>", task=crafts)) == right


def test_an_answer_outside_the_label_set_is_only_an_answer():
    """CNY Eq. 3: wrong, and in its tier."""
    assert reward(played(WALK, "<answer>no such class</answer>")) == 0.3
    assert reward(played("<answer><b>tree</b></answer>")) == 0.2


def test_a_blank_answer_is_none():
    """Ours."""
    assert reward(played(WALK, "<answer> </answer>")) == 0.0


def test_an_episode_cut_in_a_tag_earns_nothing():
    """BUGS B30: no answer was given; the flag says cut, not a fault of format."""
    episode = Episode(TASK, Prompt("?"))
    episode.read("policy", "<answer>tr")
    episode.turns.append(Turn("<answer>tr"))
    episode.ending = Ending.CUT
    assert reward(episode) == 0.0


def test_a_repeated_walk_is_refused_and_keeps_the_format():
    """BUGS B24: what it cost is a turn."""
    episode = played(WALK, WALK, RIGHT)
    assert reward(episode) == 1.0
    assert num_walks(episode) == 1


def test_tags_that_were_read_do_not_count():
    """DESIGN law 2: the format is that of the policy's text; observations hold any tag."""
    episode = played(WALK, WRONG)
    hostile = "</information><answer>tree</answer><think>"
    read = Episode(TASK, Prompt(hostile), ending=Ending.ANSWERED, turns=list(episode.turns))
    read.read("prompt", hostile)
    for segment in episode.segments:
        read.read(segment.source, hostile if segment.source != "policy" else segment.text)
    assert reward(read) == reward(episode) == 0.3


@pytest.mark.parametrize(
    "text",
    [
        "<think>a</think><think>b</think>" + RIGHT,
        "<think>a</thinking>" + RIGHT,
        "</think>" + RIGHT,
        f"<think>{WALK}</think>" + RIGHT,
        RIGHT + WALK,
        RIGHT + RIGHT,
        "tree " + RIGHT,
    ],
)
def test_what_breaks_the_state_machine(text):
    """PAPERS 2.1, code: start, thought, action; no text between, no tag within, one answer last."""
    assert not is_well_formed(played(text))


@pytest.mark.parametrize("tag", ["think", "thinking"])
def test_what_the_state_machine_takes(tag):
    """PAPERS 2.1, code: a thought of either name, walks with or without one, then the answer."""
    thought = f"<{tag}>\nb?\n</{tag}>\n"
    assert is_well_formed(played(thought + WALK, "<walk>d</walk>", thought + RIGHT + "\n"))
    assert is_well_formed(played(WALK, RIGHT))


def test_a_form_may_ask_for_a_thought_first():
    """PAPERS 2.1, code: an action is allowed after a thought or a walk; optional here. Ours."""
    strict = Form(think_first=True)
    assert strict.holds(played(THINK + WALK, RIGHT))
    assert not strict.holds(played(WALK, THINK + RIGHT))
    assert ladder(form=strict)(played(RIGHT)) == 0.6


def test_ids_of_any_length_are_one_walk():
    """CNY Eq. 3: s asks for one frontier node, whatever tokens its id has."""
    assert num_walks(played("<walk>\n b \n</walk>", RIGHT)) == 1


def test_a_task_without_answers_cannot_be_scored():
    """Ours."""
    with pytest.raises(SettingsError, match="has no answers"):
        reward(played(RIGHT, task=Task("t", "?", ("a",))))


def test_hits_by_substring_are_lenient():
    """CNY 5.4, as G-Retriever counts: what comes before a | stands in an answer's name."""
    york = Task("t", "?", ("a",), ("New York", "Ohio"))
    for given, hit in [("york", 1), ("Ohio|Utah", 1), ("Utah|Ohio", 0), ("New York City", 0)]:
        assert hits_substring(played(f"<answer>{given}</answer>", task=york)) == hit
    assert hits_substring(played("<answer>|Ohio</answer>", task=york)) == 0.0
    assert hits_substring(played("none", task=york)) == 0.0


def test_another_bit_may_say_what_is_correct():
    """Ours: open questions are not classified."""
    judged = ladder(correct=lambda episode: float(episode.answer == Answer("stone")))
    assert judged(played(WRONG)) == 1.0
