import pytest

from hopling.dialects import ToolCalls
from hopling.environment import Environment
from hopling.episode import Answer, Call, Completion, Episode, Task
from hopling.errors import SettingsError
from hopling.rewards.conduct import (
    all_calls_ran,
    gate,
    num_calls,
    num_repeats,
    sog_r1,
    thrift,
)
from hopling.tools import OneHopSearch
from small_graph import movies

GOOD = Call("Search", {"entities": ["m.1"], "direction": "outgoing"})
BAD = Call("Search", {"entities": ["m.99"], "direction": "outgoing"})
RIGHT = Answer("{Ann Lee}")


def _played(*turns: str, max_turns: int = 20) -> Episode:
    tools = (OneHopSearch(movies()),)
    world = Environment(lambda task: task.question, tools, ToolCalls(), max_turns)
    episode = world.begin(Task("t", "Who directed Kismet?", ("m.1",), ("Ann Lee",)))
    for text in turns:
        world.step(episode, Completion(text))
    return episode


def _text(*actions: Call | Answer) -> str:
    return ToolCalls().write(actions)


@pytest.mark.parametrize(
    ("calls", "value"),
    [(1, 1.0), (3, 1.0), (4, 0.95), (5, 0.9), (10, 0.65), (17, 0.3), (40, 0.3)],
)
def test_thrift_falls_by_a_twentieth_a_call_down_to_its_floor(calls: int, value: float):
    """SoG-R1 4.4 with T_d = 3: max(0.3, 1 - 0.05 max(0, n - 3)); worked by hand."""
    assert thrift(calls, 3) == pytest.approx(value)


def test_a_right_answer_by_one_call_earns_all():
    """SoG-R1 4.4: g = r_em = f = 1."""
    assert sog_r1(2)(_played(_text(GOOD), _text(RIGHT))) == 1.0


def test_a_right_answer_without_a_call_earns_nothing():
    """SoG-R1 4.4 (i): n >= 1."""
    episode = _played(_text(RIGHT))

    assert gate(episode) == 0.0
    assert sog_r1(2)(episode) == 0.0


@pytest.mark.parametrize(
    "ending",
    [
        "Final answer: {Ann Lee} I hope",
        "Final answer: Ann Lee",
        "Final answer: {Ann Lee}\nFinal answer: {Ann Lee}",
    ],
)
def test_an_answer_with_anything_around_it_earns_nothing(ending: str):
    """SoG-R1 4.4 (ii): terminates cleanly with a single "Final answer:"."""
    assert sog_r1(2)(_played(_text(GOOD), ending)) == 0.0


def test_an_answer_given_twice_in_an_episode_earns_nothing():
    """PAPERS 1.1: one marker in the policy's whole text."""
    assert sog_r1(2)(_played(_text(GOOD, RIGHT), _text(RIGHT))) == 0.0


def test_a_wrong_answer_earns_nothing_however_few_the_calls():
    """SoG-R1 4.4: no partial credit."""
    assert sog_r1(2)(_played(_text(GOOD), _text(Answer("{Bo Dale}")))) == 0.0
    assert sog_r1(2)(_played(_text(GOOD), _text(Answer("{Ann Lee}, {Bo Dale}")))) == 0.0


def test_each_call_of_a_turn_counts_failed_ones_too():
    """PAPERS 1.1 [ours]: a turn with k calls counts k."""
    episode = _played(_text(GOOD, GOOD, BAD), _text(GOOD), _text(RIGHT))

    assert num_calls(episode) == 4
    assert sog_r1(2)(episode) == pytest.approx(0.9)


def test_a_call_repeats_another_whatever_the_order_of_its_ids():
    """BUGS B24: the same call for ever, two in turn, and one in other words."""
    other = Call("Search", {"entities": ["m.1"], "direction": "incoming"})
    one, same = (
        Call("Search", {"entities": ids, "direction": "outgoing"})
        for ids in (["m.1", "m.2"], ["m.2", "m.1", "m.1"])
    )

    assert num_repeats(_played(*[_text(GOOD)] * 4)) == 3
    assert num_repeats(_played(*[_text(GOOD), _text(other)] * 2)) == 2
    assert num_repeats(_played(_text(one, GOOD), _text(same))) == 1
    assert num_repeats(_played(_text(GOOD), _text(RIGHT))) == 0


def test_a_spent_budget_earns_nothing():
    """SoG-R1 Alg. 1: the empty answer."""
    episode = _played(_text(GOOD), _text(GOOD), max_turns=2)

    assert (gate(episode), sog_r1(2)(episode)) == (0.0, 0.0)


def test_a_failed_malformed_or_cut_call_did_not_run():
    """SoG-R1 4.2: traces are kept if all Search calls ran without error."""
    cut = _played(_text(GOOD))
    tools = (OneHopSearch(movies()),)
    world = Environment(lambda task: "?", tools, ToolCalls(), max_turns=9)
    world.step(cut, Completion(_text(GOOD), cut=True))

    assert all_calls_ran(_played(_text(GOOD), _text(RIGHT))) == 1.0
    assert all_calls_ran(_played(_text(GOOD, BAD), _text(RIGHT))) == 0.0
    assert all_calls_ran(_played("Hm.", _text(GOOD), _text(RIGHT))) == 0.0
    assert all_calls_ran(cut) == 0.0


def test_settings_that_would_turn_the_reward_around_are_refused():
    """Ours: penalty and floor never change who is better, right or wrong."""
    for settings in ({"penalty": -0.1}, {"floor": 1.5}):
        with pytest.raises(SettingsError, match="expected free_calls >= 0"):
            sog_r1(2, **settings)
