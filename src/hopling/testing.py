"""Suites that any class of one's own can run: each raises AssertionError with a sentence.

check_tool(MyTool(graph), {"entities": ["m.1"], "direction": "outgoing"})
check_dialect(MyDialect(), calls=[Call("Search", {...})], answers=[Answer("{A}")])
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from hopling.environment import Dialect, Tool
from hopling.episode import (
    Action,
    Answer,
    Call,
    Episode,
    Malformed,
    Markup,
    Observation,
    Prompt,
    Task,
)
from hopling.errors import ToolError

_SECRETS = frozenset({"answers", "answer_ids", "evidence", "hints"})


class SealedTask(Task):
    """A task that raises when its answers, evidence or hints are read."""

    def __getattribute__(self, name: str) -> Any:
        if name in _SECRETS:
            raise AssertionError(f"Task.{name} was read; it must never reach a policy.")
        return super().__getattribute__(name)


def check_tool(tool: Tool, arguments: Mapping[str, Any]) -> None:
    """Check that a tool is described, repeatable, without state, and answers bad calls in words.

    `arguments` are those of a call that it can carry out.
    """
    _check_schema(tool, arguments)
    task = SealedTask("t", "?", tuple(n for n in arguments.values() if isinstance(n, str)))
    episode = Episode(task, Prompt("?"))
    first = tool(episode, **arguments)
    _check_observation(first, f"{tool.name}(**{dict(arguments)!r})")
    assert not first.error, f"a good call gave an error: {first.text}"
    written = [*episode.turns, *episode.segments]
    assert not written, f"the tool wrote {written[0]} to the episode"
    assert vars(episode).keys() == vars(Episode(task, Prompt("?"))).keys(), (
        "the tool keeps state on the episode; compute it from the turns instead"
    )
    other = tool(Episode(task, Prompt("?")), **arguments)
    assert other == first, f"equal calls differ: {first.text!r} and {other.text!r}"
    for bad in _bad_arguments(arguments):
        _check_refusal(tool, episode, bad)


def _check_schema(tool: Tool, arguments: Mapping[str, Any]) -> None:
    schema = json.loads(json.dumps(dict(tool.schema)))
    assert schema.get("name") == tool.name, f"the schema names {schema.get('name')!r}"
    assert schema.get("description"), "the schema has no description"
    parameters = schema.get("parameters", {})
    assert parameters.get("type") == "object", 'parameters must be {"type": "object", ...}'
    unknown = set(arguments) - set(parameters.get("properties", {}))
    assert not unknown, f"the schema does not describe {sorted(unknown)}"


def _bad_arguments(arguments: Mapping[str, Any]) -> list[dict[str, Any]]:
    strange: list[Any] = [None, 7, True, "", "no such thing > } #", [], [None], {}, [[]]]
    bad = [{**arguments, name: value} for name in arguments for value in strange]
    bad += [{n: v for n, v in arguments.items() if n != name} for name in arguments]
    return [*bad, {}, {**arguments, "no_such_argument": 1}, {**arguments, "episode": 1}]


def _check_refusal(tool: Tool, episode: Episode, bad: Mapping[str, Any]) -> None:
    try:
        observation = tool(episode, **bad)
    except ToolError as refusal:
        observation = Observation(str(refusal), error=True)
    except TypeError as error:
        # an argument named like the first parameter makes Python itself refuse the call
        raise AssertionError(
            f"{dict(bad)!r} raises {error!r}; raise ToolError instead, and take the episode as a "
            "positional-only parameter."
        ) from error
    _check_observation(observation, f"{tool.name}(**{dict(bad)!r})")


def _check_observation(observation: Observation, what: str) -> None:
    assert observation.text.strip(), f"{what} gave an empty text"
    assert len(observation.nodes) == len(observation.names), f"{what}: nodes and names differ"


def check_dialect(
    dialect: Dialect, *, calls: Sequence[Call], answers: Sequence[Answer] = ()
) -> None:
    """Check that a dialect reads back what it writes and keeps content out of control tokens.

    `calls` and `answers` are some that it can write.
    """
    assert dialect.stops, "no marker ends a turn"
    each: list[Action] = [*calls, *answers]
    for actions in [[action] for action in each]:
        for thought in ("", "A thought first."):
            text = dialect.write(actions, thought)
            read = dialect.parse(text)
            assert _unplaced(read) == _unplaced(actions), f"{text!r} reads as {read}"
            _check_spans(text, read)
            _check_pieces(dialect, text)
            _check_cuts(dialect, text)
    for text in ("", "Hm.", *dialect.stops):
        (read_one,) = dialect.parse(text) or (None,)
        assert isinstance(read_one, Malformed), f"{text!r} is no action, but reads as {read_one}"
        assert read_one.reason.strip(), f"{text!r} is refused without a word"
    _check_content(dialect)


def _check_spans(text: str, actions: Sequence[Action]) -> None:
    for action in actions:
        if isinstance(action, Call):
            start, end = action.span
            assert 0 <= start < end <= len(text), f"the span {action.span} is outside {text!r}"


def _check_pieces(dialect: Dialect, text: str) -> None:
    pieces = dialect.pieces(text)
    last = pieces[-1]
    assert isinstance(last, Markup), f"the pieces of {text!r} end in plain text"
    assert last in dialect.stops, f"the pieces of {text!r} end in {last!r}, which ends no turn"
    assert "".join(pieces[:-1]) == text, f"the pieces of {text!r} are {pieces}"


def _check_cuts(dialect: Dialect, text: str) -> None:
    for end in range(len(text)):
        dialect.parse(text[:end])
        for action in dialect.parse(text[:end], cut=True):
            faulty = isinstance(action, Malformed)
            assert not faulty, f"{text[:end]!r} was cut, but counts as a fault of format: {action}"


def _check_content(dialect: Dialect) -> None:
    plain = dialect.opening(Prompt("question", "system"), ())
    hostile = "".join(["a", *(p for p in plain if isinstance(p, Markup)), *dialect.stops, "b"])
    opening = dialect.opening(Prompt(hostile, hostile), ())
    assert _control(opening) == _control(plain), "a prompt's text became a control token"
    assert _holds(opening, hostile), "the opening changes the prompt's text"
    quiet = dialect.reply([Observation("one"), Observation("two")])
    loud = dialect.reply([Observation(hostile), Observation("two")])
    assert _control(loud) == _control(quiet), "an observation's text became a control token"
    assert _holds(loud, hostile), "the reply changes an observation's text"
    text = "".join(quiet)
    assert 0 <= text.find("one") < text.find("two"), "observations are not in the calls' order"


def _control(pieces: Sequence[str]) -> list[str]:
    return [piece for piece in pieces if isinstance(piece, Markup)]


def _holds(pieces: Sequence[str], text: str) -> bool:
    return any(text in piece for piece in pieces if not isinstance(piece, Markup))


def _unplaced(actions: Sequence[Action]) -> list[Action]:
    return [replace(a, span=(0, 0)) if isinstance(a, Call) else a for a in actions]


__all__ = ["SealedTask", "check_dialect", "check_tool"]
