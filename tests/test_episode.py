"""Tests of hopling.episode: tokens with their sources, and a record that comes back whole."""

import json
from dataclasses import fields
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from hopling.episode import (
    Answer,
    Call,
    Completion,
    Ending,
    Episode,
    Malformed,
    Observation,
    Prompt,
    Segment,
    Task,
    Turn,
    View,
)

TEXT = st.text(max_size=8)
TEXTS = st.lists(TEXT, max_size=3).map(tuple)
FLOATS = st.floats(allow_nan=False)
JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | FLOATS | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=5,
)
OBJECTS = st.dictionaries(TEXT, JSON, max_size=3)
TASKS = st.builds(Task, TEXT, TEXT, TEXTS, TEXTS, TEXTS, TEXTS, OBJECTS)
ACTIONS = st.one_of(
    st.builds(Call, TEXT, OBJECTS, st.tuples(st.integers(0, 9), st.integers(0, 9))),
    st.builds(Answer, TEXT, st.booleans()),
    st.builds(Malformed, TEXT),
)
OBSERVATIONS = st.builds(Observation, TEXT, TEXTS, TEXTS, st.booleans())
TURNS = st.builds(
    Turn, TEXT, st.lists(ACTIONS, max_size=2).map(tuple), st.lists(OBSERVATIONS).map(tuple)
)
SAMPLED = st.lists(st.tuples(st.integers(0, 99), FLOATS), max_size=4)
READ = st.lists(st.integers(0, 99), max_size=4).map(tuple)
SEGMENTS = st.one_of(
    st.builds(Segment, st.sampled_from(["prompt", "environment"]), TEXT, READ),
    st.builds(
        lambda text, pairs: Segment(
            "policy", text, tuple(t for t, _ in pairs), tuple(p for _, p in pairs)
        ),
        TEXT,
        SAMPLED,
    ),
)
EPISODES = st.builds(
    Episode,
    TASKS,
    st.builds(Prompt, TEXT, TEXT),
    st.lists(OBJECTS, max_size=2).map(tuple),
    st.integers(0, 2**32),
    st.lists(SEGMENTS, max_size=4),
    st.lists(TURNS, max_size=3),
    st.none() | st.sampled_from(Ending),
    TEXT,
)


@given(EPISODES)
def test_an_episode_comes_back_whole_from_its_json(episode: Episode) -> None:
    """DESIGN 5: a line of episodes.jsonl holds all of it, the sampled tokens included."""
    line = json.dumps(episode.to_json())
    assert Episode.from_json(json.loads(line)) == episode


@given(EPISODES)
def test_tokens_masks_and_logprobs_have_one_place_a_token(episode: Episode) -> None:
    """DESIGN law 2: they come from each segment's source, never from tags found in text."""
    tokens, sampled, logprobs = episode.tokens, episode.sampled, episode.logprobs
    assert len(tokens) == len(sampled) == len(logprobs)
    written = [s for s in episode.segments if s.source == "policy"]
    own = [t for t, is_sampled in zip(tokens, sampled, strict=True) if is_sampled]
    assert own == [t for s in written for t in s.tokens]
    kept = [p for p, is_sampled in zip(logprobs, sampled, strict=True) if is_sampled]
    assert kept == [p for s in written for p in s.logprobs]


def test_sampled_ids_are_kept_whatever_the_text_says() -> None:
    """DESIGN law 2, BUGS B27: 7 8 is how it was sampled, though "hi" might encode to one token."""
    episode = Episode(Task("t", "?"), Prompt("?"))
    episode.read("prompt", " ?", [1])
    episode.write(Completion("hi", (7, 8), (-0.5, -0.25)))
    episode.read("environment", "\u0301ok", [2, 3])
    assert episode.tokens == [1, 7, 8, 2, 3]
    assert episode.sampled == [False, True, True, False, False]
    assert episode.logprobs == [0.0, -0.5, -0.25, 0.0, 0.0]


def test_the_answer_is_the_action_that_ended_the_episode() -> None:
    """BUGS B21: neither a prompt nor an observation nor an earlier turn is read for one."""
    paris = "<answer>Paris</answer> Final answer: {Paris}"
    episode = Episode(Task("t", paris), Prompt(paris))
    episode.read("prompt", paris)
    episode.turns.append(Turn(paris, (Call("look", {}), Answer("{Oslo}")), (Observation(paris),)))
    episode.turns.append(Turn("Final answer: {Lyon} Bye.", (Answer("{Lyon}", clean=False),)))
    assert episode.answer is None
    episode.ending = Ending.ANSWERED
    assert episode.answer == Answer("{Lyon}", clean=False)


def test_a_view_has_no_place_for_what_a_policy_may_not_know() -> None:
    """DESIGN law 3."""
    assert {field.name for field in fields(View)} == {
        *("key", "task_id", "seed", "prompt", "tools", "turns", "tokens", "room"),
    }


def test_a_view_does_not_change_when_its_episode_goes_on() -> None:
    """Ours: a policy in another thread may still read it."""
    episode = Episode(Task("t", "?"), Prompt("?"))
    before = episode.view()
    episode.write(Completion("hi", (7,)))
    episode.turns.append(Turn("hi"))
    assert (before.tokens, before.turns) == ((), ())
    assert episode.view().tokens == (7,)


def test_equal_episodes_have_keys_of_their_own() -> None:
    """Ours: a key names one within a process; two that were played alike are equal."""
    one, other = (Episode(Task("t", "?"), Prompt("?")) for _ in range(2))
    assert one == other
    assert one.key != other.key
