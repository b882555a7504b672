"""Tool calls in a chat format, and answers as `Final answer: {A}, {B}` [SoG-R1 App. A].

Text after a call stays in the turn and is ignored. Of several final answers the last one with
names in braces counts, and none of them is clean.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from hopling.dialects import chat
from hopling.dialects.calls import Found
from hopling.episode import Action, Answer, Call, Malformed, Markup, Observation, Prompt
from hopling.errors import SettingsError

MARKER = "Final answer:"
_GROUP = r"\{(?:[^{}]|\{[^{}]*\})*\}"
_GROUPS = re.compile(rf"{_GROUP}(?:(?:[,\s]|and)+{_GROUP})*")


def braced(names: Iterable[str]) -> str:
    """Return an answer's text.

    >>> braced(["Washington, D.C.", "Ohio"])
    '{Washington, D.C.}, {Ohio}'
    """
    return ", ".join(f"{{{name}}}" for name in names)


@dataclass(frozen=True)
class ToolCalls:
    """Reads and writes turns that call tools, in one chat format.

    An answer is clean iff the turn holds one `Final answer:`, then names in braces, separated by
    commas, spaces or "and", and at most a period after them. [SoG-R1 4.4, ours in detail]
    The answer of a turn that was cut is never clean, since its end was not seen.
    """

    format: chat.ChatFormat = chat.qwen

    @property
    def stops(self) -> tuple[str, ...]:
        """The markers that end a turn."""
        return self.format.stops

    def opening(self, prompt: Prompt, tools: Sequence[Mapping[str, Any]]) -> list[str]:
        """Return the pieces of text before the policy's first turn."""
        return chat.opening(self.format, prompt, tools)

    def reply(self, observations: Sequence[Observation]) -> list[str]:
        """Return the pieces between a turn's end marker and the next turn."""
        return chat.reply(self.format, [observation.text for observation in observations])

    def parse(self, text: str, *, cut: bool = False) -> tuple[Action, ...]:
        """Return the turn's calls and answer in the order written, or Malformed.

        A turn that was cut gives what was complete; nothing in it is a fault of format.
        """
        found = self.format.grammar.read(text, cut=cut)
        placed: list[tuple[int, Action]] = [(one.span[0], one.action) for one in found]
        placed += _answer(text, found, cut=cut)
        if not placed and not cut:
            reason = (
                f'The turn holds neither a call nor "{MARKER}". Write a call as '
                f'{self.format.grammar.example}, or end with "{MARKER} {{Name}}".'
            )
            return (Malformed(reason),)
        return tuple(action for _, action in sorted(placed, key=lambda pair: pair[0]))

    def write(self, actions: Sequence[Action], thought: str = "") -> str:
        """Return the text of a turn; `parse` gives the same actions.

        Raises SettingsError for actions that this format cannot write.
        """
        parts = [thought] if thought else []
        for action in actions:
            if isinstance(action, Malformed):
                raise SettingsError(f"A Malformed action cannot be written ({action.reason}).")
            if isinstance(action, Call):
                parts.append(self.format.grammar.write(action))
            else:
                parts.append(f"{MARKER} {action.text}")
        text = "\n".join(parts)
        if [_unplaced(a) for a in self.parse(text)] != [_unplaced(a) for a in actions]:
            raise SettingsError(
                f"The turn {text!r} does not read back as the actions that it was written from. An "
                f'answer\'s names stand in braces, and a thought holds no call and no "{MARKER}".'
            )
        return text

    def pieces(self, text: str) -> list[str]:
        """Return a whole turn as pieces to encode, its end marker last.

        The tags around its calls are Markup, since a model of this family has them as tokens.
        """
        result: list[str] = []
        position = 0
        for start, end in dict.fromkeys(call.span for call in self._calls(text)):
            result += [text[position:start], *_tagged(text[start:end], self.format.grammar.tags)]
            position = end
        return chat.merged([*result, text[position:], self.format.end])

    def _calls(self, text: str) -> list[Call]:
        found = self.format.grammar.read(text)
        return [one.action for one in found if isinstance(one.action, Call)]


def _answer(text: str, found: Sequence[Found], *, cut: bool) -> list[tuple[int, Action]]:
    spans = [one.span for one in found]
    starts = [
        match.start()
        for match in re.finditer(re.escape(MARKER), text)
        if not any(start <= match.start() < end for start, end in spans)
    ]
    borders = sorted([*starts, *(start for start, _ in spans), len(text)])
    for start in reversed(starts):
        end = next(border for border in borders if border > start)
        rest = text[start + len(MARKER) : end]
        groups = _GROUPS.search(rest)
        if groups:
            alone = not rest[: groups.start()].strip()
            last = rest[groups.end() :].strip() in ("", ".") and end == len(text)
            clean = alone and last and len(starts) == 1 and not cut
            return [(start, Answer(groups[0], clean))]
    if not starts or cut:
        return []
    return [(starts[-1], Answer(text[starts[-1] + len(MARKER) :].strip(), clean=False))]


def _tagged(call: str, tags: Sequence[str]) -> list[str]:
    if not tags:
        return [call]
    head, tail = tags
    return [Markup(head), call[len(head) : -len(tail)], Markup(tail)]


def _unplaced(action: Action) -> Action:
    return replace(action, span=(0, 0)) if isinstance(action, Call) else action
