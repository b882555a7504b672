"""Which chat format a tokenizer's model was trained on, and whether its template keeps history.

Takes any tokenizer with the few methods of `Tokenizer`; those of transformers have them.
"""

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Protocol

from hopling.dialects import chat
from hopling.dialects.chat import ChatFormat
from hopling.episode import Markup, Prompt
from hopling.errors import SettingsError


class Tokenizer(Protocol):
    """What is asked of a tokenizer; `chat_template` is None where the model has none."""

    chat_template: object

    def get_vocab(self) -> Mapping[str, int]: ...

    def apply_chat_template(
        self, conversation: Sequence[Mapping[str, str]], *, tokenize: bool, **options: bool
    ) -> object: ...


def format_for(tokenizer: Tokenizer) -> ChatFormat:
    """Return the chat format whose markers the tokenizer has.

    Raises SettingsError when it has those of none.
    """
    vocabulary = tokenizer.get_vocab()
    template = str(getattr(tokenizer, "chat_template", None) or "")
    marked = "<tool_call>" in vocabulary or "<tool_call>" in template
    for form in (chat.llama, chat.qwen if marked else chat.smollm2, chat.compact):
        if all(marker in vocabulary for marker in _markers(form)):
            return form
    needs = "; ".join(f"{name}: {' '.join(_markers(f))}" for name, f in chat.formats.items())
    raise SettingsError(
        f"The tokenizer has the markers of no chat format that hopling knows ({needs}). "
        "Take another model, or pass a ChatFormat of your own to ToolCalls."
    )


def check_history(
    tokenizer: Tokenizer, form: ChatFormat | None = None, *, append_only: bool = False
) -> None:
    """Render a conversation with the tokenizer's template and compare it with ours.

    `append_only` says that rendering which never rewrites is wanted whatever the template does.
    Raises SettingsError when the template changes what was said before, since then what is trained
    is not what serving shows the model, or when its markers differ from the chat format's.
    A tokenizer without a template has nothing to check. [BUGS B28]
    """
    if not getattr(tokenizer, "chat_template", None):
        return
    form = form or format_for(tokenizer)
    _check_markers(tokenizer, form)
    if append_only:
        return
    renders = [_rendered(tokenizer, _TALK[:n], ask=False) for n in range(2, len(_TALK) + 1)]
    rewritten = next((k for k, (a, b) in enumerate(pairwise(renders)) if not b.startswith(a)), None)
    said = [message["content"] for message in _TALK if message["role"] == "assistant"]
    lost = next((text for text in said if text not in renders[-1]), None)
    if rewritten is not None or lost is not None:
        what = "drops or changes earlier turns" if lost else "renders earlier turns anew"
        shown = f", such as {lost!r}" if lost else ""
        raise SettingsError(
            f"This tokenizer's chat template {what} when a conversation goes on{shown}. hopling "
            "trains on tokens as they were sampled, so say append_only=True to render without the "
            "template's changes, and serve the model in the same way."
        )


_TALK: Sequence[Mapping[str, str]] = (
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "Which hop is first?"},
    {"role": "assistant", "content": "<think>\nOne thought.\n</think>\n\nThe left one."},
    {"role": "user", "content": "And then?"},
    {"role": "assistant", "content": "<think>\nOther thought.\n</think>\n\nThe right one."},
)


def _markers(form: ChatFormat) -> list[str]:
    # tags inside messages may be plain text: Qwen2.5 has no token for <tool_response>
    pieces = [*form.start, *form.system, *form.user, *form.assistant, form.end]
    return [str(piece) for piece in dict.fromkeys(pieces) if isinstance(piece, Markup)]


def _check_markers(tokenizer: Tokenizer, form: ChatFormat) -> None:
    system, user = _TALK[0]["content"], _TALK[1]["content"]
    prompt = Prompt(user, system) if form.system else Prompt(user)
    ours = "".join(chat.opening(form, prompt, ()))
    theirs = _rendered(tokenizer, _TALK[:2] if form.system else _TALK[1:2], ask=True)
    # dates and other lines inside the system message are not compared
    parts = filter(None, [*_markers(form), prompt.system, user])
    marker = re.compile("|".join(map(re.escape, parts)))
    if marker.findall(ours) != marker.findall(theirs):
        raise SettingsError(
            f"The chat format {form.name!r} writes {ours!r}, but this tokenizer's template writes "
            f"{theirs!r}. Pass the ChatFormat of this model's family."
        )


def _rendered(tokenizer: Tokenizer, talk: Sequence[Mapping[str, str]], *, ask: bool) -> str:
    return str(tokenizer.apply_chat_template(list(talk), tokenize=False, add_generation_prompt=ask))
