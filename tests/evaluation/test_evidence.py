import pytest

from hopling.episode import Answer, Call, Ending, Episode, Observation, Prompt, Task, Turn
from hopling.errors import SettingsError
from hopling.evaluation.evidence import coverage


def _played(id: str, evidence: tuple[str, ...], *found: tuple[str, ...]) -> Episode:
    episode = Episode(Task(id, "Q?", answers=("A",), evidence=evidence), Prompt("Q?"))
    for nodes in found:
        call = Call("search", {"query": "q"})
        episode.turns.append(Turn("", (call,), (Observation("text", nodes),)))
    episode.turns.append(Turn("A", (Answer("A"),)))
    episode.ending = Ending.ANSWERED
    return episode


def test_coverage_is_over_all_documents_and_over_all_chains():
    """GTA-RAG Eq. 22-23 by hand: (2 + 1 + 0) / (2 + 3 + 2) documents, 1 of 3 chains."""
    episodes = [
        _played("a", ("d1", "d2"), ("d1",), ("d2", "d9")),
        _played("b", ("d1", "d2", "d3"), ("d3",), ("d3",), ("d8",)),
        _played("c", ("d4", "d5")),
    ]
    found = coverage(episodes, seed=0)
    assert found.documents.value == pytest.approx(3 / 7)
    assert found.chains.value == pytest.approx(1 / 3)
    assert found.zero_target_turns == 2
    assert found.searches.value == pytest.approx(5 / 3)
    assert found.documents.low <= found.documents.value <= found.documents.high
    assert found.num_episodes == found.chains.num == 3


def test_copies_of_a_task_are_one_question():
    """Ours: intervals are over questions, as everywhere."""
    episodes = [_played("a", ("d1",), ("d1",)), _played("a", ("d1",))]
    found = coverage(episodes, seed=0)
    assert (found.chains.value, found.chains.num, found.num_episodes) == (0.5, 1, 2)


def test_unscored_episodes_say_nothing():
    """DESIGN law 5."""
    failed = _played("b", ("d1",))
    failed.ending = Ending.UNSCORED
    assert coverage([_played("a", ("d1",), ("d1",)), failed], seed=0).chains.value == 1.0
    with pytest.raises(SettingsError, match="none of 1 episodes"):
        coverage([failed], seed=0)
