from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from hopling.dialects import ToolCalls, chat
from hopling.episode import Action, Answer, Call, Episode, Malformed, Observation
from hopling.errors import ToolError
from hopling.testing import check_dialect, check_tool


@dataclass(frozen=True)
class _Tool:
    """Looks a word up; `flaw` names what is wrong with it."""

    flaw: str = ""
    name: str = "look"

    @property
    def schema(self) -> Mapping[str, Any]:
        properties = {} if self.flaw == "undescribed" else {"word": {"type": "string"}}
        parameters = {"type": "object", "properties": properties}
        return {"name": self.name, "description": "Look it up.", "parameters": parameters}

    def __call__(self, episode: Episode, /, word: object = None, **others: object) -> Observation:
        if self.flaw == "peeks":
            return Observation(", ".join(episode.task.answers))
        if self.flaw == "remembers":
            episode.looked = True
        if self.flaw == "crashes":
            word.strip()
        if others or not isinstance(word, str) or not word:
            if self.flaw == "silent":
                return Observation("")
            raise ToolError("Give one word.")
        return Observation(f"{word}: a word", (word,), () if self.flaw == "nameless" else (word,))


def test_a_sound_tool_passes():
    """Ours."""
    check_tool(_Tool(), {"word": "hop"})


@pytest.mark.parametrize(
    ("flaw", "error", "message"),
    [
        ("undescribed", AssertionError, "does not describe"),
        ("peeks", AssertionError, "Task.answers was read"),
        ("remembers", AssertionError, "keeps state on the episode"),
        ("crashes", AttributeError, "strip"),
        ("silent", AssertionError, "gave an empty text"),
        ("nameless", AssertionError, "nodes and names differ"),
    ],
)
def test_a_tool_with_a_flaw_is_found(flaw: str, error: type[Exception], message: str):
    """DESIGN 3, laws 1, 3 and 5: no state, no secrets, a helpful message."""
    with pytest.raises(error, match=message):
        check_tool(_Tool(flaw), {"word": "hop"})


class _Leaky(ToolCalls):
    def reply(self, observations: Any) -> list[str]:
        return [type(self.format.end)(piece) for piece in super().reply(observations)]


class _Strict(ToolCalls):
    def parse(self, text: str, *, cut: bool = False) -> tuple[Action, ...]:
        return super().parse(text) or (Malformed("nothing"),)


class _Forgetful(ToolCalls):
    def write(self, actions: Sequence[Action], thought: str = "") -> str:
        return ToolCalls().write(actions, thought)

    def parse(self, text: str, *, cut: bool = False) -> tuple[Action, ...]:
        return super().parse(text, cut=cut)[:1]


@pytest.mark.parametrize(
    ("dialect", "message"),
    [
        (_Leaky(chat.compact), "an observation's text became a control token"),
        (_Strict(chat.qwen), "was cut, but counts as a fault of format"),
    ],
)
def test_a_dialect_with_a_flaw_is_found(dialect: ToolCalls, message: str):
    """BUGS B20, B23."""
    call = Call("Search", {"entities": ["a"], "direction": "outgoing"})

    with pytest.raises(AssertionError, match=message):
        check_dialect(dialect, calls=[call], answers=[Answer("{A}")])


def test_a_dialect_that_reads_only_the_first_call_is_found():
    """BUGS B22."""
    call = Call("Search", {"entities": ["a"], "direction": "outgoing"})

    with pytest.raises(AssertionError, match="reads as"):
        check_dialect(_Forgetful(), calls=[call, call])
