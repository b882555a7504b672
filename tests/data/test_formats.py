"""Exports keep what was said, in the form that each program documents."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hopling.data import formats
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
)
from hopling.errors import DataError

SEARCH = {"name": "Search", "parameters": {"type": "object", "properties": {}}}


def played(**changes: Any) -> Episode:
    """An episode with a thought, two calls at once, a slip and an answer."""
    text = 'First her films. <c>{"a"}</c><c>{"b"}</c>'
    calls = (
        Call("Search", {"entities": ["m.1"], "direction": "incoming"}, (17, 29)),
        Call("Serch", {}, (29, 41)),
    )
    turns = [
        Turn(text, calls, (Observation("| row |", ("m.2",)), Observation("No Serch.", error=True))),
        Turn("hm", (Malformed("no call"),), (Observation("Write a call.", error=True),)),
        Turn("Final answer: {Zo\u00eb}", (Answer("{Zo\u00eb}"),)),
    ]
    episode = Episode(
        Task("t1", "Who?", ("m.1",), ("Zo\u00eb",), hints={"path": ["^r"]}),
        Prompt("Who? m.1", "Search the graph."),
        (SEARCH,),
        turns=turns,
        ending=Ending.ANSWERED,
    )
    episode.read("prompt", "Who?", [1, 2])
    episode.write(Completion("Final", (3, 4), (-0.5, -0.25)))
    for name, value in changes.items():
        setattr(episode, name, value)
    return episode


def test_written_episodes_come_back_whole(tmp_path: Path) -> None:
    """DESIGN 5: episodes.jsonl is the one format that everything reads."""
    path = tmp_path / "episodes.jsonl"
    episodes = [played(), played(ending=Ending.UNSCORED, reason="down")]
    formats.write_episodes(path, episodes)
    assert formats.read_episodes(path) == episodes


@settings(deadline=None)
@given(text=st.text(st.characters(exclude_categories=["Cs"])), cut=st.booleans())
def test_any_text_survives_the_file(
    tmp_path_factory: pytest.TempPathFactory, text: str, cut: bool
) -> None:
    """Ours: line separators, quotes and control characters are text like any other."""
    path = tmp_path_factory.mktemp("episodes") / "episodes.jsonl"
    turn = Turn(text, (Malformed(text),), (Observation(text, (text,), (text,)),))
    episode = played(turns=[turn], segments=[Segment("policy", text)], reason=text)
    episode.ending = Ending.CUT if cut else None
    formats.write_episodes(path, [episode])
    assert formats.read_episodes(path) == [episode]


def test_a_row_that_is_no_episode_is_named(tmp_path: Path) -> None:
    """CONVENTIONS: file, place and what was expected."""
    path = tmp_path / "episodes.jsonl"
    path.write_text(json.dumps(played().to_json()) + '\n{"task": {}}\n')
    with pytest.raises(DataError, match=r"episodes\.jsonl, row 2 is no episode .*Task"):
        formats.read_episodes(path)
    with pytest.raises(DataError, match="is not there"):
        formats.read_episodes(tmp_path / "none.jsonl")


def test_messages_pair_each_call_with_its_reply() -> None:
    """USERS 4.3: OpenAI messages; one tool message per call, arguments as JSON text."""
    row = formats.messages(played())
    roles = [message["role"] for message in row["messages"]]
    assert roles == [
        "system",
        "user",
        "assistant",
        "tool",
        "tool",
        "assistant",
        "user",
        "assistant",
    ]
    first = row["messages"][2]
    assert first["content"] == "First her films."
    assert [call["id"] for call in first["tool_calls"]] == ["call_0_0", "call_0_1"]
    assert json.loads(first["tool_calls"][0]["function"]["arguments"])["entities"] == ["m.1"]
    replies = [(m["tool_call_id"], m["content"]) for m in row["messages"] if m["role"] == "tool"]
    assert replies == [("call_0_0", "| row |"), ("call_0_1", "No Serch.")]
    assert row["messages"][-1] == {"role": "assistant", "content": "Final answer: {Zo\u00eb}"}
    assert row["tools"] == [{"type": "function", "function": SEARCH}]


def test_messages_leave_out_replies_that_never_came() -> None:
    """Ours: a world that failed answered nothing."""
    episode = played(ending=Ending.UNSCORED, turns=[replace(played().turns[0], observations=())])
    assert [m["role"] for m in formats.messages(episode)["messages"]] == [
        "system",
        "user",
        "assistant",
    ]


def test_sharegpt_lets_the_policy_speak_at_every_second_place() -> None:
    """USERS 4.3: human and observation at odd places, gpt and function_call at even ones."""
    row = formats.sharegpt(played())
    said = row["conversations"]
    assert [part["from"] for part in said] == [
        "human",
        "function_call",
        "observation",
        "gpt",
        "human",
        "gpt",
    ]
    thought, calls = said[1]["value"].split("\n\n")
    assert thought == "<think>\nFirst her films.\n</think>"
    assert [call["name"] for call in json.loads(calls)] == ["Search", "Serch"]
    assert said[2]["value"] == "| row |\n\nNo Serch."
    assert row["system"] == "Search the graph."
    assert json.loads(row["tools"]) == [SEARCH]


def test_sharegpt_ends_with_the_policy_when_turns_ran_out() -> None:
    """USERS 4.3: the number of places is even."""
    episode = played(ending=Ending.OUT_OF_TURNS, turns=played().turns[:1])
    said = formats.sharegpt(episode)["conversations"]
    assert [part["from"] for part in said] == ["human", "function_call"]


def test_one_call_without_a_thought_stands_alone() -> None:
    """USERS 4.3: a function_call is one JSON object; a dialect without spans tells no thought."""
    turn = Turn('{"a"}', (Call("Search", {"direction": "incoming"}),), (Observation("x"),))
    said = formats.sharegpt(played(turns=[turn]))["conversations"]
    assert json.loads(said[1]["value"]) == {
        "name": "Search",
        "arguments": {"direction": "incoming"},
    }


def test_an_inspect_log_holds_what_its_viewer_reads(tmp_path: Path) -> None:
    """USERS 4.5: EvalLog, EvalSample and ToolCall as inspect_ai 0.3.285 validates them."""
    path = tmp_path / "log.json"
    episodes = [
        played(),
        played(ending=Ending.OUT_OF_TURNS),
        played(ending=Ending.UNSCORED, reason="endpoint down"),
    ]
    formats.write_inspect(
        path,
        episodes,
        task="movies",
        model="tiny",
        created="2026-01-02T03:04:05+00:00",
        scorers={"right": lambda episode: float(episode.answer is not None)},
    )
    log = json.loads(path.read_text())
    assert {"version", "status", "eval", "results", "stats", "samples"} == set(log)
    assert {"created", "task", "dataset", "model", "config"} <= set(log["eval"])
    right, short, down = log["samples"]
    assert [sample["epoch"] for sample in log["samples"]] == [1, 2, 3]
    assert right["scores"] == {"right": {"value": 1.0, "answer": "{Zo\u00eb}"}}
    call = right["messages"][2]["tool_calls"][0]
    assert call["function"] == "Search"
    assert call["arguments"] == {"entities": ["m.1"], "direction": "incoming"}
    assert right["messages"][4]["error"] == {"type": "unknown", "message": "No Serch."}
    assert "error" not in right["messages"][3]
    assert short["limit"] == {"type": "turn", "limit": 3}
    assert down["error"]["message"] == "endpoint down"
    assert "scores" not in down
    (mean,) = log["results"]["scores"]
    assert (mean["scored_samples"], mean["unscored_samples"]) == (2, 1)
    assert mean["metrics"]["mean"]["value"] == 0.5


def test_a_log_of_nothing_scored_claims_no_mean() -> None:
    """CONVENTIONS: 0.0 never stands for a failure."""
    log = formats.inspect_log(
        [played(ending=Ending.UNSCORED, reason="down")],
        task="movies",
        model="tiny",
        created="2026-01-02T03:04:05+00:00",
        scorers={"right": lambda episode: 1.0},
    )
    assert log["results"]["scores"][0]["metrics"] == {}


def test_an_inspect_log_with_another_ending_is_refused(tmp_path: Path) -> None:
    """Ours: inspect view lists .json and .eval files only."""
    with pytest.raises(DataError, match=r"does not end in \.json"):
        formats.write_inspect(
            tmp_path / "log.txt", [], task="t", model="m", created="2026-01-02", scorers={}
        )
