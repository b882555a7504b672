import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopling.episode import (
    Action,
    Answer,
    Call,
    Ending,
    Episode,
    Malformed,
    Observation,
    Prompt,
    Task,
    Turn,
)
from hopling.errors import SettingsError
from hopling.rewards.evidence import (
    answer_reward,
    evidence_steps,
    found_all,
    found_evidence,
    gained,
    num_zero_target,
    search_rewards,
)

Step = tuple[str, ...] | str | None  # documents found, an answer, or a turn that is neither


def _played(*steps: Step, evidence: tuple[str, ...] = ("d1", "d2", "d3")) -> Episode:
    episode = Episode(Task("t", "Q?", answers=("Rome",), evidence=evidence), Prompt("Q?"))
    for step in steps:
        action: Action = Malformed("Search or answer.")
        seen: tuple[Observation, ...] = (Observation("Search or answer.", error=True),)
        if isinstance(step, tuple):
            action, seen = Call("search", {"query": "q"}), (Observation("text", step),)
        if isinstance(step, str):
            action, seen = Answer(step), ()
        episode.turns.append(Turn("", (action,), seen))
    answered = bool(steps) and isinstance(steps[-1], str)
    episode.ending = Ending.ANSWERED if answered else Ending.OUT_OF_TURNS
    return episode


CHAIN = (("d1", "x"), ("d1", "y"), ("d2", "d3", "x"), "Rome")


def test_what_was_found_before_is_not_found_again():
    """GTA-RAG Eq. 14-15 by hand: C = {}, {d1}, {d1}, all; Delta = {d1}, {}, {d2, d3}."""
    episode = _played(*CHAIN)
    assert gained(episode) == [{"d1"}, set(), {"d2", "d3"}]
    assert found_evidence(episode) == {"d1", "d2", "d3"}
    assert num_zero_target(episode) == 1


def test_searches_earn_by_new_documents_and_pay_for_none():
    """GTA-RAG Eq. 16 by hand: .25, -.10, .50."""
    assert search_rewards(_played(*CHAIN)) == [0.25, -0.10, 0.50]


@pytest.mark.parametrize(
    ("steps", "answer", "total"),
    [
        ((("d1",), ("d2",), ("d3",), "Rome"), 2.0, 2.75),
        (CHAIN, 2.0, 2.65),
        ((("d1",), "the Rome."), 1.0, 1.25),
        (("Rome",), 1.0, 1.0),
        ((("d1",), ("d2",), ("d3",), "Oslo"), -1.0, -0.25),
        ((("x",), ("x",), "Oslo"), -1.0, -1.2),
    ],
)
def test_the_reward_is_what_searches_and_answer_earn(
    steps: tuple[Step, ...], answer: float, total: float
):
    """GTA-RAG Eq. 17-18, worked by hand."""
    assert answer_reward(_played(*steps)) == answer
    assert evidence_steps()(_played(*steps)) == pytest.approx(total)


def test_a_perfect_chain_of_two_earns_two_and_a_half():
    """GTA-RAG Eq. 18; PAPERS.md 3.3."""
    episode = _played(("d1",), ("d2",), "Rome", evidence=("d1", "d2"))
    assert evidence_steps()(episode) == 2.5


@pytest.mark.parametrize("ending", [Ending.OUT_OF_TURNS, Ending.CUT, Ending.CONTEXT_FULL])
def test_no_answer_is_a_wrong_one(ending: Ending):
    """PAPERS.md 3.3 (a): else refusing (0) would beat trying (-1)."""
    episode = _played(("d1",), ("d2",))
    episode.ending = ending
    assert evidence_steps()(episode) == pytest.approx(0.5 - 1.0)


def test_a_turn_that_is_neither_costs_nothing_unless_told():
    """PAPERS.md 3.3 (b): the paper gives it no reward; it may cost what a useless search does."""
    episode = _played(None, ("d1",), None, "Oslo")
    assert evidence_steps()(episode) == pytest.approx(0.25 - 1.0)
    assert evidence_steps(invalid=-0.1)(episode) == pytest.approx(0.25 - 0.2 - 1.0)


def test_a_failed_search_is_a_search_that_found_nothing():
    """Ours: a call that its policy got wrong is no cheaper than one that finds nothing."""
    episode = _played(("d1",), "Rome")
    error = Observation("The query has no words.", error=True)
    episode.turns.insert(0, Turn("", (Call("search", {"query": "?"}),), (error,)))
    assert search_rewards(episode) == [-0.10, 0.25]


def test_documents_named_in_text_alone_earn_nothing():
    """DESIGN law 4: rewards read nodes, never text."""
    episode = _played(("x",), "Rome")
    call = Call("search", {"query": "d1 d2 d3"})
    episode.turns.insert(0, Turn("d1 d2", (call,), (Observation("Doc 1(Title: d1) d2 d3"),)))
    assert found_evidence(episode) == set()


def test_a_search_in_a_turn_that_was_cut_found_nothing():
    """Ours: such a call is never carried out."""
    episode = _played(("d1",))
    episode.turns.append(Turn("", (Call("search", {"query": "q"}),)))
    assert gained(episode) == [{"d1"}]


def test_a_task_without_evidence_is_refused():
    """Ours: every set holds the empty one, so any right answer would earn +2."""
    with pytest.raises(SettingsError, match="names no evidence"):
        evidence_steps()(_played("Rome", evidence=()))


def test_a_miss_that_earns_as_much_as_a_find_is_refused():
    """Ours."""
    with pytest.raises(SettingsError, match="must earn more"):
        evidence_steps(gain=0.1, miss=0.1)


DOCUMENTS = st.sampled_from(["d1", "d2", "d3", "x", "y"])


@given(st.lists(st.lists(DOCUMENTS, max_size=3).map(tuple), max_size=6), st.permutations(range(6)))
def test_gains_are_disjoint_and_their_union_is_what_was_found(
    found: list[tuple[str, ...]], order: list[int]
):
    """GTA-RAG Eq. 15: C_t is a set; in any order the searches find the same in all."""
    episode = _played(*found)
    gains = gained(episode)
    assert sum(map(len, gains)) == len(found_evidence(episode)) <= 3
    shuffled = _played(*[found[place] for place in order if place < len(found)])
    assert found_evidence(shuffled) == found_evidence(episode)
    assert found_all(episode) == float(found_evidence(episode) == {"d1", "d2", "d3"})
