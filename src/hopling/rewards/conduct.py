"""Rewards for how an episode was played: calls made, calls that ran, a clean end.

Scorers are called on scored episodes only; one that ended UNSCORED says nothing of the policy.
"""

import json
from collections.abc import Callable

from hopling.episode import Answer, Call, Episode
from hopling.errors import SettingsError
from hopling.rewards.answers import exact_match


def num_calls(episode: Episode) -> int:
    """Return how many calls the policy made, failed ones included; k calls in a turn count k."""
    return sum(len(turn.calls) for turn in episode.turns)


def num_repeats(episode: Episode) -> int:
    """Return how many calls ask what the episode had asked before, in whatever order. [BUGS B24]"""
    calls = [call for turn in episode.turns for call in turn.calls]
    return len(calls) - len({(call.tool, _unordered(dict(call.arguments))) for call in calls})


def all_calls_ran(episode: Episode) -> float:
    """Return 1.0 iff every call was carried out without an error and no turn was malformed."""
    for turn in episode.turns:
        if any(observation.error for observation in turn.observations):
            return 0.0
        # calls in a turn that was cut are never carried out
        if turn.calls and not turn.observations:
            return 0.0
    return 1.0


def gate(episode: Episode) -> float:
    """Return 1.0 iff the policy called a tool and ended with one clean answer.

    An answer given before, beside a call, makes two. [SoG-R1 4.4]
    """
    actions = [action for turn in episode.turns for action in turn.actions]
    answers = [action for action in actions if isinstance(action, Answer)]
    called = any(isinstance(action, Call) for action in actions)
    ended = episode.answer is not None and len(answers) == 1 and answers[0].clean
    return float(called and ended)


def thrift(calls: int, free_calls: float, *, penalty: float = 0.05, floor: float = 0.3) -> float:
    """Return max(floor, 1 - penalty * max(0, calls - free_calls)). [SoG-R1 4.4]

    >>> [thrift(n, 3) for n in (1, 3, 5, 40)]
    [1.0, 1.0, 0.9, 0.3]
    """
    return max(floor, 1.0 - penalty * max(0.0, calls - free_calls))


def sog_r1(
    free_calls: float, *, penalty: float = 0.05, floor: float = 0.3
) -> Callable[[Episode], float]:
    """Return the reward gate x exact match x thrift. [SoG-R1 4.4]

    `free_calls` is T_d, the 75th percentile of the calls in the retained traces.
    Raises SettingsError for a negative number of calls or a floor outside 0 to 1.
    """
    if free_calls < 0 or penalty < 0 or not 0 <= floor <= 1:
        raise SettingsError(
            f"free_calls {free_calls}, penalty {penalty}, floor {floor}: expected free_calls >= 0, "
            "penalty >= 0 and floor between 0 and 1."
        )

    def reward(episode: Episode) -> float:
        if not gate(episode):
            return 0.0
        cost = thrift(num_calls(episode), free_calls, penalty=penalty, floor=floor)
        return exact_match(episode) * cost

    return reward


def _unordered(value: object) -> str:
    if isinstance(value, dict):
        return json.dumps({name: _unordered(value[name]) for name in sorted(value)})
    if isinstance(value, (list, tuple)):
        return json.dumps(sorted({_unordered(part) for part in value}))
    return json.dumps(value)
