"""Tests of hopling.environment: one environment without state, and three fates of failure."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from threading import Barrier
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopling.dialects import ToolCalls, braced
from hopling.environment import Environment
from hopling.episode import Answer, Call, Completion, Ending, Episode, Observation, Prompt, Task
from hopling.errors import ToolError, WorldError
from hopling.testing import SealedTask

DIALECT = ToolCalls()
SCHEMA = {"name": "look", "description": "Look.", "parameters": {"type": "object"}}


@dataclass(frozen=True)
class Look:
    """Says what was looked at and how often before; some words make it fail."""

    long: int = 0
    meet: Barrier | None = None
    name: str = "look"
    schema: dict[str, Any] = field(default_factory=lambda: SCHEMA)

    def __call__(self, episode: Episode, /, word: str, twice: bool = False) -> Observation:
        if self.meet:
            self.meet.wait(timeout=30)
        if word == "nowhere":
            raise ToolError("There is no 'nowhere'. Look at 'here'.")
        if word == "down":
            raise WorldError("http://t.example did not answer within 30 s (3 tries).")
        if word == "bug":
            raise ZeroDivisionError("ours")
        before = sum(call.arguments.get("word") == word for t in episode.turns for call in t.calls)
        text = f"{word} {before}".ljust(self.long, ".")
        return Observation(text, (f"m.{word}",), (word.title(),))


class Letters:
    """One token a character."""

    def encode(self, pieces: Sequence[str]) -> list[int]:
        return [ord(letter) for piece in pieces for letter in piece]

    def decode(self, tokens: Sequence[int]) -> str:
        return "".join(map(chr, tokens))


def world(*, max_turns: int = 9, max_tokens: int | None = None, **look: Any) -> Environment:
    tools = (Look(**look),)
    return Environment(lambda task: Prompt(task.question), tools, DIALECT, max_turns, max_tokens)


def calls(*words: str) -> str:
    return DIALECT.write([Call("look", {"word": word}) for word in words])


def answer(name: str = "Ann") -> str:
    return DIALECT.write([Answer(braced([name]))])


def write(text: str, encoder: Letters) -> Completion:
    return Completion(text, tuple(encoder.encode([text])))


def played(*turns: str, on: Environment | None = None) -> Episode:
    on = on or world()
    episode = on.begin(Task("t", "Who?"))
    for text in turns:
        on.step(episode, Completion(text))
    return episode


SCRIPTS = [
    [calls("a"), calls("a", "b"), calls("a"), answer()],
    [calls("a"), calls("nowhere"), answer()],
    [calls("b"), calls("a"), calls("down")],
]


@given(st.permutations([n for n, script in enumerate(SCRIPTS) for _ in script]))
def test_interleaved_episodes_are_what_separate_ones_are(order: list[int]) -> None:
    """DESIGN law 1: the episode is the state; the tool counts what this episode asked before."""
    shared = world()
    tasks = [Task(f"t{n}", "Who?") for n in range(len(SCRIPTS))]
    mixed = [shared.begin(task) for task in tasks]
    left = [list(reversed(script)) for script in SCRIPTS]
    for n in order:
        shared.step(mixed[n], Completion(left[n].pop()))
    for task, script, episode in zip(tasks, SCRIPTS, mixed, strict=True):
        own = world()
        alone = own.begin(task)
        for text in script:
            own.step(alone, Completion(text))
        assert episode == alone


def test_one_environment_serves_threads_that_meet_inside_its_tool() -> None:
    """DESIGN law 1: four calls are under way at once, and none sees another's episode."""
    shared = world(meet=Barrier(4))

    def play(n: int) -> Episode:
        episode = shared.begin(Task(f"t{n}", "Who?"))
        for word in ("a", f"own{n}", "a"):
            shared.step(episode, Completion(calls(word)))
        return episode

    with ThreadPoolExecutor(4) as pool:
        episodes = list(pool.map(play, range(4)))
    texts = [[o.text for o in episode.observations] for episode in episodes]
    assert texts == [["a 0", f"own{n} 0", "a 1"] for n in range(4)]


def test_each_call_gets_its_reply_in_order_and_a_bad_one_voids_none() -> None:
    """BUGS B22: one result, one error, and the episode goes on."""
    text = DIALECT.write(
        [Call("look", {"word": "a"}), Call("lok", {}), Call("look", {"word": "b"})]
    )
    (turn,) = played(text).turns
    assert [o.error for o in turn.observations] == [False, True, False]
    assert [o.text for o in turn.observations][::2] == ["a 0", "b 0"]
    assert turn.observations[1].text == (
        "There is no tool 'lok'. Did you mean 'look'? Tools: look."
    )
    assert played(text).ending is None


def test_a_policy_that_errs_reads_why_and_plays_on() -> None:
    """DESIGN law 5, first fate: a refused call, a malformed one, and no action at all."""
    episode = played(calls("nowhere"), '<tool_call>{"name": "look"</tool_call>', "Hm.", answer())
    assert episode.ending is Ending.ANSWERED
    refused, malformed, nothing = episode.observations
    assert refused == Observation("There is no 'nowhere'. Look at 'here'.", error=True)
    assert malformed.error
    assert "lacks '}'" in malformed.text
    assert nothing.error
    assert "neither a call" in nothing.text
    read = [s.text for s in episode.segments if s.source == "environment"]
    assert all(o.text in text for o, text in zip(episode.observations, read, strict=True))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({}, "missing a required argument: 'word'"),
        ({"wrd": "a"}, "word, twice"),
        ({"word": "a", "more": 1}, "unexpected keyword argument 'more'"),
        ({"word": "a", "episode": 1}, "episode"),
    ],
)
def test_arguments_that_a_tool_does_not_take_are_the_policys_error(
    arguments: dict[str, Any], words: str
) -> None:
    """DESIGN law 5: a tool of a user's own need not guard against names that a model invents."""
    episode = played(DIALECT.write([Call("look", arguments)]), answer())
    (told,) = episode.observations
    assert told.error
    assert words in told.text
    assert episode.ending is Ending.ANSWERED


def test_a_world_that_fails_ends_the_episode_unscored() -> None:
    """DESIGN law 5, second fate: the reason is kept, and nothing more is read."""
    episode = played(calls("a"), calls("b", "down"))
    assert episode.ending is Ending.UNSCORED
    assert episode.reason == "http://t.example did not answer within 30 s (3 tries)."
    assert episode.segments[-1].source == "policy"
    assert len(episode.turns) == 2


def test_a_mistake_of_ours_passes_through() -> None:
    """DESIGN law 5, third fate: the run stops."""
    with pytest.raises(ZeroDivisionError):
        played(calls("bug"))


def test_an_answer_beside_a_call_ends_nothing_and_is_told() -> None:
    """Ours: one clean answer ends an episode."""
    text = DIALECT.write([Call("look", {"word": "a"}), Answer("{Ann}")])
    episode = played(text)
    assert episode.ending is None
    assert [o.error for o in episode.observations] == [False, True]
    assert "a turn of its own" in episode.observations[1].text


def test_observations_hold_nodes_and_names_beside_their_text() -> None:
    """DESIGN law 4: what rewards read is never parsed out of text."""
    (seen,) = played(calls("solaris")).observations
    assert (seen.nodes, seen.names) == (("m.solaris",), ("Solaris",))


def test_no_answer_evidence_or_hint_reaches_the_policy() -> None:
    """DESIGN law 3: sealed tasks play to their end, and a view has no place for secrets."""
    sealed = SealedTask("t", "Who?", ("m.1",))
    shared = world()
    episode = shared.begin(sealed)
    shared.step(episode, Completion(calls("a", "nowhere")))
    shared.view(episode)
    shared.step(episode, Completion(answer()))
    assert episode.ending is Ending.ANSWERED
    told = Task("t", "Who?", answers=("SECRET",), evidence=("SECRET",), hints={"path": "SECRET"})
    assert "SECRET" not in repr(shared.view(shared.begin(told)))


def test_a_call_for_ever_or_two_in_turn_end_with_the_turns() -> None:
    """BUGS B24: the turn budget always ends the episode."""
    for turns in ([calls("a")] * 4, [calls("a"), calls("b")] * 2):
        assert played(*turns[:3], on=world(max_turns=4)).ending is None
        assert played(*turns, on=world(max_turns=4)).ending is Ending.OUT_OF_TURNS


def test_an_observation_that_fills_the_context_ends_the_episode() -> None:
    """BUGS B25: 2,048 tokens and results of 900; the question stays, no room is negative."""
    encoder = Letters()
    small = world(max_tokens=2048, long=900)
    episode = small.begin(Task("t", "Who?"), encoder)
    opening = episode.segments[0]
    rooms = []
    while not episode.ending:
        rooms.append(small.view(episode).room)
        small.step(episode, write(calls("a"), encoder), encoder)
    assert episode.ending is Ending.CONTEXT_FULL
    assert len(episode.turns) == 2
    assert episode.segments[0] == opening
    assert "Who?" in opening.text
    assert rooms[0] == 2048 - len(opening.tokens)
    assert small.view(episode).room == 0


def test_an_answer_that_takes_the_last_token_is_still_one() -> None:
    """BUGS B25: a final answer that just fits while the transcript is full."""
    encoder = Letters()
    opening = len(world().begin(Task("t", "Who?"), encoder).tokens)
    small = world(max_tokens=opening + len(answer()))
    episode = small.begin(Task("t", "Who?"), encoder)
    small.step(episode, write(answer(), encoder), encoder)
    assert len(episode.tokens) == small.max_tokens
    assert episode.ending is Ending.ANSWERED


def test_an_opening_without_room_for_a_turn_is_over_at_once() -> None:
    """BUGS B25: room is looked at before the policy is asked."""
    episode = world(max_tokens=5).begin(Task("t", "Who?"), Letters())
    assert episode.ending is Ending.CONTEXT_FULL
    assert len(episode.tokens) > 5
    assert episode.turns == []


def test_a_turn_cut_by_its_limit_is_no_fault_of_format() -> None:
    """BUGS B23, B30: marked as cut, no call of it is carried out, and nothing is told."""
    episode = world().begin(Task("t", "Who?"))
    world().step(episode, Completion(calls("a", "down")[:-20], cut=True))
    assert episode.ending is Ending.CUT
    assert episode.observations == []
    assert all(isinstance(action, Call) for action in episode.turns[0].actions)


def test_a_prompt_may_be_text_alone() -> None:
    """Ours."""
    plain = Environment(lambda task: task.question, (), DIALECT, max_turns=1)
    assert plain.begin(Task("t", "Who?")).prompt == Prompt("Who?")
