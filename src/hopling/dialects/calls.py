"""How calls are written inside a turn: JSON between tags, bare JSON, or short lines.

A grammar reads every call of a turn, each with the part of the text that it takes up, and writes
one. It knows no chat format and no tool; answers are read in `tool_calls`.
"""

import json
import re
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from hopling.episode import Call, Malformed
from hopling.errors import SettingsError


class Found(NamedTuple):
    """A call, or what failed to be one, and where it stands in the turn's text."""

    span: tuple[int, int]
    action: Call | Malformed


class Grammar(Protocol):
    """Reads and writes calls.

    `tags` are the texts that may be control tokens of a model's own; `example` shows a policy how
    a call is written. With `cut`, a call that the length limit broke off is left out.
    """

    @property
    def tags(self) -> tuple[str, ...]: ...

    @property
    def example(self) -> str: ...

    def read(self, text: str, *, cut: bool = False) -> list[Found]: ...

    def write(self, call: Call) -> str: ...


@dataclass(frozen=True)
class TaggedJson:
    """`<tool_call>{"name": ..., "arguments": {...}}</tool_call>`, as Qwen writes it.

    A JSON list between the tags is several calls, as SmolLM2's model card has it.
    """

    open: str = "<tool_call>"
    close: str = "</tool_call>"
    key: str = "arguments"

    @property
    def tags(self) -> tuple[str, ...]:
        return self.open, self.close

    @property
    def example(self) -> str:
        return f'{self.open}{{"name": "TOOL", "{self.key}": {{...}}}}{self.close}'

    def read(self, text: str, *, cut: bool = False) -> list[Found]:
        found: list[Found] = []
        start = text.find(self.open)
        while start >= 0:
            value, end = _decode(text, start + len(self.open))
            closed = text.startswith(self.close, _skip(text, end))
            stop = self._end(text, end if closed else start + len(self.open))
            unfinished = self.close not in text[start:stop]
            if not (cut and unfinished and stop == len(text)):
                found += self._calls(value, (start, stop), closed=closed, unfinished=unfinished)
            start = text.find(self.open, stop)
        return found

    def write(self, call: Call) -> str:
        return f"{self.open}\n{_dumped(call, self.key)}\n{self.close}"

    def _end(self, text: str, start: int) -> int:
        close, following = text.find(self.close, start), text.find(self.open, start)
        if close >= 0 and (following < 0 or close < following):
            return close + len(self.close)
        return following if following >= 0 else len(text)

    def _calls(
        self, value: object, span: tuple[int, int], *, closed: bool, unfinished: bool
    ) -> list[Found]:
        if isinstance(value, Malformed):
            return [Found(span, value)]
        if unfinished:
            reason = f"The call is not finished: write {self.close} after its JSON."
            return [Found(span, Malformed(reason))]
        if not closed:
            reason = f"Text follows the call's JSON; {self.close} must come next."
            return [Found(span, Malformed(reason))]
        values = value if isinstance(value, list) and value else [value]
        return [Found(span, _call(one, self.key, span)) for one in values]


@dataclass(frozen=True)
class BareJson:
    """`{"name": ..., "parameters": {...}}` without tags, as Llama 3.1 writes it."""

    key: str = "parameters"
    tags: tuple[str, ...] = ()

    @property
    def example(self) -> str:
        return f'{{"name": "TOOL", "{self.key}": {{...}}}}'

    def read(self, text: str, *, cut: bool = False) -> list[Found]:
        found: list[Found] = []
        match = _OBJECT.search(text)
        while match:
            value, end = _decode(text, match.start())
            if isinstance(value, Malformed):
                following = _OBJECT.search(text, match.end())
                stop = following.start() if following else len(text)
                if not (cut and stop == len(text)):
                    found.append(Found((match.start(), stop), value))
            else:
                stop = end
                span = match.start(), stop
                found.append(Found(span, _call(value, self.key, span)))
            match = _OBJECT.search(text, stop)
        return found

    def write(self, call: Call) -> str:
        return _dumped(call, self.key)


@dataclass(frozen=True)
class Lines:
    """`out ID ID : PROPERTY, PROPERTY` and `in ID`, one call a line, for tiny models.

    A line that begins with the word `out` or `in` is a call. Ids hold no space, properties no
    comma.
    """

    tool: str = "Search"
    tags: tuple[str, ...] = ()
    example: str = "out ID, in ID, or out ID : PROPERTY"

    def read(self, text: str, *, cut: bool = False) -> list[Found]:
        found: list[Found] = []
        for match in _LINE.finditer(text):
            if not (cut and match.end() == len(text)):
                found.append(Found(match.span(), self._call(match)))
        return found

    def write(self, call: Call) -> str:
        arguments = dict(call.arguments)
        entities = list(arguments.pop("entities", ()))
        properties = list(arguments.pop("properties", ()))
        word = {way: short for short, way in _WAYS.items()}.get(arguments.pop("direction", ""))
        if call.tool != self.tool or arguments or not entities or word is None:
            raise SettingsError(
                f"The compact form writes {self.tool} with entities, direction and properties; "
                f"it cannot write {call.tool}({dict(call.arguments)!r})."
            )
        for name in entities:
            if re.search(r"\s", name) or name in ("", ":"):
                raise SettingsError(
                    f"The compact form cannot write the id {name!r}, since ids are separated by "
                    "spaces; give the graph short ids or use another chat format."
                )
        for name in properties:
            if re.search(r"[,\n]", name) or name != name.strip() or not name:
                raise SettingsError(
                    f"The compact form cannot write the property {name!r}, since properties are "
                    "separated by commas; use another chat format."
                )
        filtered = f" : {', '.join(properties)}" if properties else ""
        return f"{word} {' '.join(entities)}{filtered}"

    def _call(self, match: re.Match[str]) -> Call | Malformed:
        words = match["rest"].split()
        colon = words.index(":") if ":" in words else len(words)
        entities = words[:colon]
        if not entities:
            return Malformed(f"The call names no id. Write {self.example}.")
        arguments: dict[str, object] = {"entities": entities, "direction": _WAYS[match["way"]]}
        if colon < len(words):
            listed = re.split(r"(?:^|\s):(?=\s|$)", match["rest"], maxsplit=1)[1].split(",")
            properties = [" ".join(name.split()) for name in listed if name.strip()]
            if not properties:
                return Malformed(f"No property follows the colon. Write {self.example}.")
            arguments["properties"] = properties
        return Call(self.tool, arguments, match.span())


_OBJECT = re.compile(r'\{\s*"(?:type|name|parameters|arguments)"\s*:')
_LINE = re.compile(r"^[ \t]*(?P<way>out|in)(?=[ \t]|$)(?P<rest>.*)$", re.MULTILINE)
_WAYS = {"out": "outgoing", "in": "incoming"}


def _skip(text: str, start: int) -> int:
    return len(text) - len(text[start:].lstrip())


def _decode(text: str, start: int) -> tuple[object, int]:
    """Return the JSON value at `start` and where it ends, or Malformed and `start`."""
    start = _skip(text, start)
    try:
        value, end = json.JSONDecoder().raw_decode(text, start)
        json.dumps(value, ensure_ascii=False).encode()
        return value, end
    except RecursionError:
        return Malformed("The call's JSON is nested too deeply."), start
    except UnicodeEncodeError:
        return Malformed("The call's JSON escapes half a character; write it unescaped."), start
    except ValueError as error:
        return Malformed(_reason(text, start, error)), start


def _reason(text: str, start: int, error: ValueError) -> str:
    body = text[start:].split("</", 1)[0].rstrip()
    for missing in ("}", "}}"):
        try:
            json.loads(body + missing)
        except (ValueError, RecursionError):
            continue
        return f"The call's JSON lacks {missing!r} at its end."
    if isinstance(error, json.JSONDecodeError):
        before = text[max(start, error.pos - 20) : error.pos]
        return f"The call's JSON cannot be read: {error.msg} after {before!r}."
    return f"The call's JSON cannot be read: {error}."


def _call(value: object, key: str, span: tuple[int, int]) -> Call | Malformed:
    if not isinstance(value, dict) or not isinstance(value.get("name"), str):
        shape = f'{{"name": "TOOL", "{key}": {{...}}}}'
        return Malformed(f'A call is a JSON object with a "name", like {shape}.')
    given = next((k for k in (key, "arguments", "parameters") if k in value), None)
    if given is None:
        return Malformed(
            f'The call of {value["name"]} has no "{key}"; write "{key}": {{...}}, or {{}} for none.'
        )
    arguments = value[given]
    if isinstance(arguments, str):
        return Malformed(f'"{given}" is a string; write the JSON object itself, unquoted.')
    if not isinstance(arguments, dict):
        return Malformed(f'"{given}" must be a JSON object like {{"name": "value"}}.')
    return Call(value["name"], arguments, span)


def _dumped(call: Call, key: str) -> str:
    return json.dumps({"name": call.tool, key: dict(call.arguments)}, ensure_ascii=False)
