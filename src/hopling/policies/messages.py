"""Turns as an OpenAI-compatible server writes them, and back."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from hopling.episode import Call, Turn, View

Message = dict[str, Any]


def messages(view: View) -> list[Message]:
    """Return the conversation so far.

    A call's observation becomes a tool message with the call's id; the observation of what was no
    call (a turn that could not be read) becomes a message of the user.
    """
    told = [{"role": "user", "content": view.prompt.user}]
    if view.prompt.system:
        told.insert(0, {"role": "system", "content": view.prompt.system})
    for number, turn in enumerate(view.turns):
        told += _turn_messages(turn, number)
    return told


def functions(tools: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the tools' schemas as a request's `tools`."""
    return [
        dict(tool) if "function" in tool else {"type": "function", "function": dict(tool)}
        for tool in tools
    ]


def written(message: Mapping[str, Any]) -> str:
    """Return the turn's text: the content, then one line for each call.

    Arguments that are not JSON stay as the model wrote them, for the dialect to refuse. Half a
    character, which no later request could hold, becomes "?".

    >>> call = {"function": {"name": "search", "arguments": '{"entities": ["m.1"]}'}}
    >>> written({"content": None, "tool_calls": [call]})
    '<tool_call>{"name": "search", "arguments": {"entities": ["m.1"]}}</tool_call>'
    """
    lines = [message.get("content") or ""]
    for call in message.get("tool_calls") or ():
        function = call["function"]
        name = json.dumps(function["name"], ensure_ascii=False)
        arguments = function.get("arguments") or "{}"
        if not isinstance(arguments, str):
            arguments = json.dumps(arguments, ensure_ascii=False)
        lines.append(f'<tool_call>{{"name": {name}, "arguments": {arguments}}}</tool_call>')
    return "\n".join(filter(None, lines)).encode(errors="replace").decode()


def _turn_messages(turn: Turn, number: int) -> list[Message]:
    calls = [
        {
            "id": f"call_{number}_{place}",
            "type": "function",
            "function": {
                "name": action.tool,
                "arguments": json.dumps(dict(action.arguments), ensure_ascii=False),
            },
        }
        for place, action in enumerate(turn.actions)
        if isinstance(action, Call)
    ]
    said: Message = {"role": "assistant", "content": _said(turn)}
    if calls:
        said["tool_calls"] = calls
    replies: list[Message] = []
    remarks: list[Message] = []
    for place, (action, observation) in enumerate(
        zip(turn.actions, turn.observations, strict=False)
    ):
        if isinstance(action, Call):
            answered = f"call_{number}_{place}"
            replies.append({"role": "tool", "tool_call_id": answered, "content": observation.text})
        else:
            remarks.append({"role": "user", "content": observation.text})
    # every call's reply has to follow the calls before anyone else speaks
    return [said, *replies, *remarks]


def _said(turn: Turn) -> str:
    """Return the turn's text without its calls."""
    rest = turn.text
    for start, end in sorted({call.span for call in turn.calls}, reverse=True):
        rest = rest[:start] + rest[end:]
    return re.sub(r"\n{2,}$", "\n", rest).strip()
