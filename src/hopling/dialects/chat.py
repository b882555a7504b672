"""Chat formats as data: how each family of models marks who speaks, and where tools stand.

Rendering here only ever appends. Control tokens are `Markup`; everything else is plain text, so
that no content can become one.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hopling.dialects.calls import BareJson, Grammar, Lines, TaggedJson
from hopling.episode import Markup, Prompt

Pieces = tuple[str, ...]


@dataclass(frozen=True)
class ChatFormat:
    """How one family writes messages.

    `system`, `user` and `assistant` are what stands before a message of that role, `end` ends one,
    and `gap` comes between an end and the next message. The texts have the slots {system}, {user},
    {tools}, and {lead}: the system text with `system_gap` after it, or nothing where it is empty.
    An observation stands between `before` and `after`, several have `between` between them, and all
    of a turn's between `reply_start` and `reply_end`.
    """

    name: str
    user: Pieces
    assistant: Pieces
    end: Markup
    grammar: Grammar
    before: Pieces
    after: Pieces
    start: Pieces = ()
    system: Pieces = ()
    gap: str = ""
    other_ends: tuple[str, ...] = ()
    system_text: str = "{system}"
    system_text_with_tools: str = "{system}"
    system_gap: str = ""
    user_text: str = "{user}"
    user_text_with_tools: str = "{user}"
    tool_indent: int | None = None
    tool_gap: str = "\n"
    reply_start: Pieces = ()
    between: Pieces = ()
    reply_end: Pieces = ()

    @property
    def stops(self) -> tuple[str, ...]:
        """The markers that end a turn."""
        return (self.end, *self.other_ends)


def opening(form: ChatFormat, prompt: Prompt, tools: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the pieces of text before the policy's first turn."""
    slots = {
        "{system}": prompt.system,
        "{lead}": prompt.system and prompt.system + form.system_gap,
        "{user}": prompt.user,
        "{tools}": form.tool_gap.join(_schema(tool, form.tool_indent) for tool in tools),
    }
    system = _filled(form.system_text_with_tools if tools else form.system_text, slots)
    user = _filled(form.user_text_with_tools if tools else form.user_text, slots)
    pieces = list(form.start)
    if form.system and system:
        pieces += [*form.system, system, form.end, form.gap]
    return merged([*pieces, *form.user, user, form.end, form.gap, *form.assistant])


def reply(form: ChatFormat, texts: Sequence[str]) -> list[str]:
    """Return the pieces between a turn's end marker and the policy's next turn."""
    pieces = [form.gap, *form.reply_start]
    for k, text in enumerate(texts):
        pieces += [*(form.between if k else ()), *form.before, text, *form.after]
    return merged([*pieces, *form.reply_end, *form.assistant])


def merged(pieces: Sequence[str]) -> list[str]:
    """Return the pieces with neighboring plain texts joined and empty ones left out.

    >>> merged(["", "a", "b", Markup("<|end|>"), "c"])
    ['ab', '<|end|>', 'c']
    """
    result: list[str] = []
    for piece in pieces:
        if not piece:
            continue
        plain = not isinstance(piece, Markup)
        if plain and result and not isinstance(result[-1], Markup):
            result[-1] += piece
        else:
            result.append(piece)
    return result


def _filled(template: str, slots: Mapping[str, str]) -> str:
    # one pass, so that a slot's name inside a question stays as it is
    return re.sub(r"\{(?:system|lead|user|tools)\}", lambda match: slots[match[0]], template)


def _schema(tool: Mapping[str, Any], indent: int | None) -> str:
    whole = tool if "function" in tool else {"type": "function", "function": dict(tool)}
    return json.dumps(whole, ensure_ascii=False, indent=indent)


_START = Markup("<|im_start|>")
_END = Markup("<|im_end|>")
_HEAD, _HEAD_END, _EOT = (
    Markup("<|start_header_id|>"),
    Markup("<|end_header_id|>"),
    Markup("<|eot_id|>"),
)

# as the chat templates of Qwen2.5 and Qwen3 have it [code]
qwen = ChatFormat(
    name="qwen",
    system=(_START, "system\n"),
    user=(_START, "user\n"),
    assistant=(_START, "assistant\n"),
    end=_END,
    gap="\n",
    grammar=TaggedJson(),
    system_text_with_tools="{lead}# Tools\n\nYou may call one or more functions to assist with "
    "the user query.\n\nYou are provided with function signatures within <tools></tools> XML tags:"
    "\n<tools>\n{tools}\n</tools>\n\nFor each function call, return a json object with function "
    "name and arguments within <tool_call></tool_call> XML tags:\n<tool_call>\n"
    '{"name": <function-name>, "arguments": <args-json-object>}\n</tool_call>',
    system_gap="\n\n",
    reply_start=(_START, "user\n"),
    before=(Markup("<tool_response>"), "\n"),
    after=("\n", Markup("</tool_response>")),
    between=("\n",),
    reply_end=(_END, "\n"),
)

# as the chat template of Llama 3.1 has it, tools in the user's message [code]
llama = ChatFormat(
    name="llama",
    start=(Markup("<|begin_of_text|>"),),
    system=(_HEAD, "system", _HEAD_END, "\n\n"),
    user=(_HEAD, "user", _HEAD_END, "\n\n"),
    assistant=(_HEAD, "assistant", _HEAD_END, "\n\n"),
    end=_EOT,
    other_ends=("<|eom_id|>",),
    grammar=BareJson(),
    system_text="Cutting Knowledge Date: December 2023\nToday Date: 26 Jul 2024\n\n{system}",
    system_text_with_tools="Environment: ipython\nCutting Knowledge Date: December 2023\n"
    "Today Date: 26 Jul 2024\n\n{system}",
    user_text_with_tools="Given the following functions, please respond with a JSON for a function "
    "call with its proper arguments that best answers the given prompt.\n\nRespond in the format "
    '{"name": function name, "parameters": dictionary of argument name and its value}.'
    "Do not use variables.\n\n{tools}\n\n{user}",
    tool_indent=4,
    tool_gap="\n\n",
    before=(_HEAD, "ipython", _HEAD_END, "\n\n"),
    after=(_EOT,),
)

# SmolLM2's template knows no tools; where they stand is ours
smollm2 = ChatFormat(
    name="smollm2",
    system=(_START, "system\n"),
    user=(_START, "user\n"),
    assistant=(_START, "assistant\n"),
    end=_END,
    gap="\n",
    grammar=TaggedJson(),
    system_text_with_tools="{lead}Tools that you can call, one JSON schema a line:\n<tools>\n"
    '{tools}\n</tools>\nCall one with <tool_call>\n{"name": "TOOL", "arguments": {...}}\n'
    "</tool_call>",
    system_gap="\n\n",
    reply_start=(_START, "tool\n"),
    before=("<tool_response>\n",),
    after=("\n</tool_response>",),
    between=("\n",),
    reply_end=(_END, "\n"),
)

# ours, for tiny models with a tokenizer of their own: tools are learned, not described
compact = ChatFormat(
    name="compact",
    user=(Markup("<|user|>"),),
    assistant=(Markup("<|assistant|>"),),
    end=Markup("<|end|>"),
    grammar=Lines(),
    user_text="{lead}{user}",
    user_text_with_tools="{lead}{user}",
    system_gap="\n",
    before=(Markup("<|tool|>"),),
    after=(Markup("<|end|>"),),
)

formats = {form.name: form for form in (qwen, llama, smollm2, compact)}
