"""Actions between tags: `<walk>17</walk>`, `<search>words</search>`, `<answer>text</answer>`.

A turn is thoughts (`<think>` or `<thinking>`), then one action, at whose closing tag it ends. Only
what the policy wrote is read, so no tag in an observation can act, and none inside a thought does.
Of several actions in a turn the first complete one counts. [CNY 4.1; GTA-RAG 3.3]
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from hopling.dialects import chat
from hopling.episode import Action, Answer, Call, Malformed, Markup, Observation, Prompt
from hopling.errors import SettingsError

THOUGHTS = ("think", "thinking")


@dataclass(frozen=True)
class Tags:
    """Reads and writes turns of tags; `calls` gives each tool's tag the name of its argument.

    What is observed stands between tags named `observation`. With a chat format the prompt is that
    format's user message and all turns are one assistant message; without, all is plain text.
    An answer is clean iff nothing but thoughts stands around it. A thought that is not closed hides
    all that follows; `thinking` are the names of the tags around thoughts.
    """

    calls: Mapping[str, str]
    observation: str = "information"
    answer: str = "answer"
    form: chat.ChatFormat | None = None
    thinking: tuple[str, ...] = THOUGHTS

    def __post_init__(self) -> None:
        """Raise SettingsError for a name that two tags share or that is no tag's name."""
        if not self.calls or not self.thinking:
            raise SettingsError("Tags needs at least one tag for calls and one for thoughts.")
        names = [*self.calls, self.observation, self.answer, *self.thinking]
        for name in names:
            if not re.fullmatch(r"[A-Za-z][\w-]*", name) or names.count(name) > 1:
                raise SettingsError(
                    f"{name!r} cannot be a tag here; expected different names of letters, digits, "
                    f"_ and -, and found {', '.join(names)}."
                )

    @property
    def stops(self) -> tuple[str, ...]:
        """The closing tags of actions, which are part of the text, and the format's own ends."""
        closing = tuple(f"</{name}>" for name in (*self.calls, self.answer))
        return (*closing, *(self.form.stops if self.form else ()))

    def opening(self, prompt: Prompt, tools: Sequence[Mapping[str, Any]]) -> list[str]:
        """Return the pieces before the first turn; the prompt itself says how to act."""
        if self.form:
            return chat.opening(self.form, prompt, ())
        return chat.merged([prompt.system, "\n\n" if prompt.system else "", prompt.user, "\n"])

    def reply(self, observations: Sequence[Observation]) -> list[str]:
        """Return the pieces between a turn and the next."""
        head, tail = Markup(f"<{self.observation}>"), Markup(f"</{self.observation}>")
        pieces: list[str] = ["\n"]
        for one in observations:
            pieces += [head, one.text, tail, "\n"]
        return chat.merged(pieces)

    def parse(self, text: str, *, cut: bool = False) -> tuple[Action, ...]:
        """Return the turn's first complete action, or Malformed.

        A turn that was cut before one was complete gives nothing, and is no fault of format.
        """
        hidden = [match.span() for match in self._thoughts.finditer(text)]
        for match in self._actions.finditer(text):
            if any(start < match.end() and match.start() < end for start, end in hidden):
                continue
            name, inner = match["name"], match["inner"].strip()
            if name == self.answer:
                around = self._thoughts.sub("", text[: match.start()]) + text[match.end() :]
                return (Answer(inner, clean=not around.strip()),)
            return (Call(name, {self.calls[name]: inner}, match.span()),)
        return () if cut else (Malformed(self._reason()),)

    def write(self, actions: Sequence[Action], thought: str = "") -> str:
        """Return the text of a turn; `parse` gives the same action.

        Raises SettingsError for what a turn of tags cannot hold.
        """
        tag = self.thinking[0]
        parts = [f"<{tag}>{thought}</{tag}>"] if thought else []
        for action in actions:
            if isinstance(action, Answer):
                parts.append(f"<{self.answer}>{action.text}</{self.answer}>")
            elif isinstance(action, Call) and set(action.arguments) == {
                self.calls.get(action.tool)
            }:
                (value,) = action.arguments.values()
                parts.append(f"<{action.tool}>{value}</{action.tool}>")
        text = "".join(parts)
        if [_unplaced(a) for a in self.parse(text)] != [_unplaced(a) for a in actions]:
            raise SettingsError(
                f"{list(actions)} cannot be written as one turn of tags: {text!r} does not read "
                f"back. A turn has one action; known tags: {', '.join((*self.calls, self.answer))}."
            )
        return text

    def pieces(self, text: str) -> list[str]:
        """Return a whole turn as pieces to encode; its closing tag is the end marker, and text."""
        for name in (*self.calls, self.answer):
            if text.endswith(tag := f"</{name}>"):
                return [text.removesuffix(tag), Markup(tag)]
        return chat.merged([text, *([self.form.end] if self.form else [])])

    @property
    def _thoughts(self) -> re.Pattern[str]:
        names = "|".join(self.thinking)
        return re.compile(rf"<(?P<thought>{names})>.*?(?:</(?P=thought)>|\Z)", re.DOTALL)

    @property
    def _actions(self) -> re.Pattern[str]:
        names = "|".join(re.escape(name) for name in (*self.calls, self.answer))
        return re.compile(rf"<(?P<name>{names})>(?P<inner>.*?)</(?P=name)>", re.DOTALL)

    def _reason(self) -> str:
        forms = [f"<{tool}>{argument.upper()}</{tool}>" for tool, argument in self.calls.items()]
        return (
            f"The turn holds no action. Write {' or '.join(forms)}, "
            f"or end with <{self.answer}>ANSWER</{self.answer}>."
        )


def _unplaced(action: Action) -> Action:
    return replace(action, span=(0, 0)) if isinstance(action, Call) else action
