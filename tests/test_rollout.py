"""Tests of hopling.rollout: one loop for every policy."""

from collections.abc import Callable, Sequence
from threading import Barrier
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chatter import chat, tiny_model, tiny_tokenizer
from hopling.dialects import ToolCalls, braced
from hopling.environment import Environment
from hopling.episode import Answer, Call, Completion, Ending, Episode, Observation, Task, View
from hopling.errors import WorldError
from hopling.policies.encoding import TokenizerEncoder
from hopling.policies.local import LocalModel
from hopling.policies.sampling import Sampling
from hopling.policies.scripted import Scripted
from hopling.policies.server import Server
from hopling.rollout import rollout, sampling_seed

DIALECT = ToolCalls()
CALL = DIALECT.write([Call("look", {"word": "a"})])
ANSWER = DIALECT.write([Answer(braced(["Ann"]))])


class Look:
    """Finds Ann, but the world is down for `down`, and `bug` is a mistake of ours."""

    name = "look"
    schema = {"name": "look", "description": "Look.", "parameters": {"type": "object"}}  # noqa: RUF012

    def __call__(self, episode: Episode, /, word: str) -> Observation:
        if episode.task.id == "down":
            raise WorldError("the graph did not answer.")
        if episode.task.id == "bug":
            raise ZeroDivisionError("ours")
        return Observation(f"Ann of {word}", ("m.1",), ("Ann",))


def world(max_turns: int = 9) -> Environment:
    return Environment(lambda task: task.question, (Look(),), DIALECT, max_turns)


def tasks(*ids: str) -> list[Task]:
    return [Task(name, "Who?", answers=("Ann",)) for name in ids]


class Watched(Scripted):
    """A script that notes which tasks were asked for together."""

    def __init__(self, turns: dict[str, list[str]], *, max_live: int, concurrent: bool = False):
        super().__init__(turns)
        self.max_live, self.concurrent = max_live, concurrent
        self.together: list[list[str]] = []

    def generate(self, views: Sequence[View], stops: Sequence[str]) -> list[Completion]:
        self.together.append([view.task_id for view in views])
        return super().generate(views, stops)


def test_a_slow_episode_idles_no_batch() -> None:
    """Issue 2, part 1: a place that falls free is filled at once."""
    quick = {name: [ANSWER] for name in "abcd"}
    policy = Watched({"slow": [CALL] * 4 + [ANSWER], **quick}, max_live=2)
    rollout(policy, world(), tasks("slow", "a", "b", "c", "d"))
    assert policy.together == [["slow", name] for name in "abcd"] + [["slow"]]


def test_a_concurrent_policy_is_asked_from_as_many_threads_as_it_takes() -> None:
    """Issue 2, part 1: no request is answered before three are under way."""
    meeting = Barrier(3)

    def write(view: View) -> str:
        meeting.wait(timeout=30)
        return CALL if not view.turns else ANSWER

    policy = Scripted.from_function(write)
    policy.concurrent, policy.max_live = True, 3
    episodes = rollout(policy, world(), tasks("a", "b", "c"))
    assert [episode.ending for episode in episodes] == [Ending.ANSWERED] * 3


def _typed() -> Scripted:
    lines = iter([CALL, CALL, ANSWER, ANSWER])  # two episodes live, a line of each in turn
    return Scripted.from_function(lambda view: next(lines))


def _served() -> Server:
    def reply(request: httpx.Request) -> httpx.Response:
        text = ANSWER if b"Ann of a" in request.content else CALL
        return httpx.Response(200, json={"choices": [{"message": {"content": text}}]})

    return Server("http://t.example/v1", "big", transport=httpx.MockTransport(reply))


@pytest.mark.parametrize(
    "policy",
    [
        lambda: Scripted({"a": [CALL, ANSWER], "b": [CALL, ANSWER]}),
        lambda: Scripted(
            {"a": [CALL, ANSWER], "b": [CALL, ANSWER]}, TokenizerEncoder(tiny_tokenizer())
        ),
        _typed,
        _served,
    ],
    ids=["scripted", "scripted in tokens", "a person", "a server"],
)
def test_one_loop_serves_every_policy(policy: Callable[[], Any]) -> None:
    """DESIGN law 6: the same turns, whoever wrote them."""
    for episode in rollout(policy(), world(), tasks("a", "b")):
        assert [turn.text for turn in episode.turns] == [CALL, ANSWER]
        assert [o.names for o in episode.observations] == [("Ann",)]
        assert episode.answer == Answer("{Ann}")


def test_a_model_in_this_process_plays_in_the_same_loop() -> None:
    """DESIGN law 6; its tokens are those that it sampled."""
    tokenizer = tiny_tokenizer()
    model = LocalModel(tiny_model(len(tokenizer)), tokenizer, sampling=Sampling(max_turn_tokens=9))
    for episode in rollout(model, world(max_turns=2), tasks("a", "b")):
        assert episode.ending
        assert any(episode.sampled)


@pytest.mark.parametrize("concurrent", [False, True])
def test_a_world_that_fails_in_one_episode_lets_the_others_play(concurrent: bool) -> None:
    """DESIGN law 5, and the batch goes on [BUGS B08]."""
    script = {name: [CALL, ANSWER] for name in ("a", "down", "b")}
    policy = Watched(script, max_live=2, concurrent=concurrent)
    first, failed, last = rollout(policy, world(), tasks("a", "down", "b"))
    assert failed.ending is Ending.UNSCORED
    assert failed.reason == "the graph did not answer."
    assert first.ending is last.ending is Ending.ANSWERED


@pytest.mark.parametrize("concurrent", [False, True])
def test_a_policy_that_does_not_answer_leaves_its_episodes_unscored(concurrent: bool) -> None:
    """DESIGN law 5: the policy's server is the world too."""

    def write(view: View) -> str:
        if view.task_id == "a":
            raise WorldError("the server did not answer.")
        return ANSWER

    policy = Scripted.from_function(write)
    policy.concurrent, policy.max_live = concurrent, 1
    failed, played = rollout(policy, world(), tasks("a", "b"))
    assert (failed.ending, failed.reason) == (Ending.UNSCORED, "the server did not answer.")
    assert played.ending is Ending.ANSWERED


@pytest.mark.parametrize("concurrent", [False, True])
def test_a_mistake_of_ours_stops_the_run(concurrent: bool) -> None:
    """DESIGN law 5, third fate."""
    policy = Watched({"bug": [CALL], "a": [ANSWER]}, max_live=2, concurrent=concurrent)
    with pytest.raises(ZeroDivisionError):
        rollout(policy, world(), tasks("a", "bug"))


def test_a_policy_that_loses_a_turn_is_a_mistake_of_ours() -> None:
    """Ours: turns must not slip from one episode to the next."""

    class Forgetful(Scripted):
        def generate(self, views: Sequence[View], stops: Sequence[str]) -> list[Completion]:
            return super().generate(views, stops)[1:]

    with pytest.raises(ValueError, match="shorter"):
        rollout(Forgetful({"a": [ANSWER], "b": [ANSWER]}), world(), tasks("a", "b"))


@pytest.mark.parametrize("concurrent", [False, True])
def test_every_ending_is_told_once_and_episodes_keep_the_tasks_order(concurrent: bool) -> None:
    """Ours: a progress line and a file of episodes hang on it."""
    ended: list[str] = []
    script = {"a": [CALL, CALL, ANSWER], "b": [ANSWER], "down": [CALL], "c": [CALL, ANSWER]}
    policy = Watched(script, max_live=2, concurrent=concurrent)
    asked = tasks("a", "b", "down", "c")
    episodes = rollout(policy, world(), asked, on_end=lambda e: ended.append(e.task.id))
    assert sorted(ended) == ["a", "b", "c", "down"]
    assert [episode.task for episode in episodes] == asked


def test_no_tasks_give_no_episodes() -> None:
    """Issue 2, "Bad input": an empty list is no error of the loop."""
    assert rollout(Scripted({}), world(), []) == []


def test_a_replay_gives_the_same_episode() -> None:
    """CONVENTIONS: a replay by a scripted policy, tokens and observations included."""
    encoder = TokenizerEncoder(tiny_tokenizer())
    turns = [CALL, "Hm.", DIALECT.write([Call("lok", {})]), ANSWER]
    policy = Scripted.from_function(lambda view: turns[len(view.turns)], encoder)
    lived = rollout(policy, world(), tasks("a", "b"), seed=3)
    told = {episode.task.id: [turn.text for turn in episode.turns] for episode in lived}
    assert rollout(Scripted(told, encoder), world(), tasks("a", "b"), seed=3) == lived


def _drawn(order: Sequence[Task], *, max_live: int) -> dict[str, list[tuple[str, ...]]]:
    policy = Scripted.from_function(lambda view: f"{view.seed}/{len(view.turns)}")
    policy.max_live = max_live
    drawn: dict[str, list[tuple[str, ...]]] = {}
    for episode in rollout(policy, world(max_turns=2), order, seed=5):
        drawn.setdefault(episode.task.id, []).append(tuple(t.text for t in episode.turns))
    return drawn


@given(st.permutations(tasks("a", "b", "c") * 2), st.integers(1, 6))
def test_what_an_episode_samples_depends_on_no_batch(order: list[Task], max_live: int) -> None:
    """BUGS B36: seeds are fixed by the run's, the task and the copy; copies differ."""
    drawn = _drawn(order, max_live=max_live)
    assert drawn == _drawn(tasks("a", "b", "c") * 2, max_live=1)
    assert len({turns for copies in drawn.values() for turns in copies}) == 6


def test_a_model_samples_the_same_whatever_it_plays_beside() -> None:
    """DESIGN law 1, MEASURED "Trainer": the order of the tasks changes no token."""
    tokenizer = tiny_tokenizer()
    model = LocalModel(tiny_model(len(tokenizer)), tokenizer, sampling=Sampling(max_turn_tokens=9))
    asked = tasks("a", "b", "c", "d")
    straight = {e.task.id: e.tokens for e in rollout(model, chat(max_turns=2), asked, seed=1)}
    model.max_live = 3
    turned = rollout(model, chat(max_turns=2), asked[::-1], seed=1)
    assert {e.task.id: e.tokens for e in turned} == straight


def test_a_seed_is_the_same_in_every_process_and_version() -> None:
    """BUGS B36: a run that is resumed later samples what it would have sampled."""
    assert sampling_seed(0, "t1", 0) == 51949174
    assert len({sampling_seed(s, t, c) for s in (0, 1) for t in "ab" for c in (0, 1)}) == 8
