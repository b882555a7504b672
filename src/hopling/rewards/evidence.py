"""Rewards for the documents that an episode found on the way to its answer.

All of it is read from the observations' nodes and the task's evidence, never from text. A search
is a call, failed ones included; a turn that holds no call is none.
"""

from collections.abc import Callable

from hopling.episode import Call, Episode
from hopling.errors import SettingsError
from hopling.rewards.squad import squad_em


def gained(episode: Episode) -> list[frozenset[str]]:
    """Return, for each search in order, the evidence that it found first. [GTA-RAG Eq. 15]

    A document that was found before pays no second time: what was found is a set.
    Raises SettingsError for a task without evidence, of which any episode would have found all.
    """
    wanted = set(episode.task.evidence)
    if not wanted:
        raise SettingsError(
            f"Task {episode.task.id!r} names no evidence, so what was found cannot be judged. "
            "Reward its answers only, or give it the ids of the documents that it needs."
        )
    gains: list[frozenset[str]] = []
    found: set[str] = set()
    for turn in episode.turns:
        # calls in a turn that was cut are never carried out
        for action, observation in zip(turn.actions, turn.observations, strict=False):
            if isinstance(action, Call):
                gain = (wanted & set(observation.nodes)) - found
                gains.append(frozenset(gain))
                found |= gain
    return gains


def found_evidence(episode: Episode) -> frozenset[str]:
    """Return the evidence that the episode found before its end, C_T. [GTA-RAG Eq. 17]"""
    return frozenset().union(*gained(episode))


def found_all(episode: Episode) -> float:
    """Return 1.0 iff every document of the evidence was found. [GTA-RAG Eq. 23]"""
    return float(found_evidence(episode) == set(episode.task.evidence))


def num_zero_target(episode: Episode) -> int:
    """Return how many searches found no evidence that was new. [GTA-RAG 4.4]"""
    return sum(not gain for gain in gained(episode))


def search_rewards(episode: Episode, *, gain: float = 0.25, miss: float = -0.10) -> list[float]:
    """Return what each search earns: `gain` for each new document, else `miss`. [GTA-RAG Eq. 16]"""
    return [gain * len(new) if new else miss for new in gained(episode)]


def answer_reward(
    episode: Episode, *, wrong: float = -1.0, right: float = 1.0, supported: float = 2.0
) -> float:
    """Return what the answer earns: wrong, right, or right with all evidence. [GTA-RAG Eq. 17]

    No answer is a wrong one, since refusing would otherwise beat trying. [ours]
    """
    if not squad_em(episode):
        return wrong
    return supported if found_all(episode) else right


def evidence_steps(
    *, gain: float = 0.25, miss: float = -0.10, invalid: float = 0.0
) -> Callable[[Episode], float]:
    """Return the reward R_traj: what all searches and the answer earn. [GTA-RAG Eq. 18]

    `invalid` is what a turn earns that is neither search nor answer. It costs a turn of the budget
    and, in the paper, nothing else; with `miss` it is no cheaper than a useless search. [ours]
    Raises SettingsError where finding evidence would earn no more than missing it.
    """
    if not gain > miss:
        raise SettingsError(
            f"gain is {gain} and miss {miss}; a search that finds evidence must earn more."
        )

    def reward(episode: Episode) -> float:
        strayed = sum(not turn.calls for turn in episode.turns) - (episode.answer is not None)
        searched = sum(search_rewards(episode, gain=gain, miss=miss))
        return searched + invalid * strayed + answer_reward(episode)

    return reward
