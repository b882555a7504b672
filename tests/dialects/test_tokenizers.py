from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pytest

from hopling.dialects import chat, check_history, format_for
from hopling.errors import SettingsError

CHATML = ("<|im_start|>", "<|im_end|>")
LLAMA = ("<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>")
COMPACT = ("<|user|>", "<|assistant|>", "<|tool|>", "<|end|>")


@dataclass
class _Tokenizer:
    """Renders ChatML as a template would; `keep` says what becomes of an earlier turn's text."""

    markers: tuple[str, ...] = CHATML
    chat_template: str | None = "{{ messages }}"
    drops_thoughts: bool = False
    speaker: str = "<|im_start|>"

    def get_vocab(self) -> Mapping[str, int]:
        return {marker: k for k, marker in enumerate(self.markers)}

    def apply_chat_template(
        self, conversation: Sequence[Mapping[str, str]], *, tokenize: bool, **options: bool
    ) -> str:
        text = ""
        for k, message in enumerate(conversation):
            content = message["content"]
            if self.drops_thoughts and k + 1 < len(conversation):
                content = content.split("</think>")[-1].strip()
            text += f"{self.speaker}{message['role']}\n{content}<|im_end|>\n"
        return text + ("<|im_start|>assistant\n" if options["add_generation_prompt"] else "")


@pytest.mark.parametrize(
    ("tokenizer", "form"),
    [
        (_Tokenizer((*CHATML, "<tool_call>")), chat.qwen),
        (_Tokenizer(CHATML, chat_template="... <tool_call> ..."), chat.qwen),
        (_Tokenizer(CHATML), chat.smollm2),
        (_Tokenizer(LLAMA), chat.llama),
        (_Tokenizer(COMPACT, chat_template=None), chat.compact),
    ],
)
def test_the_format_is_chosen_by_the_markers(tokenizer: _Tokenizer, form: chat.ChatFormat):
    """Ours."""
    assert format_for(tokenizer) is form


def test_a_tokenizer_without_known_markers_is_refused():
    """Ours: the message lists what is known."""
    with pytest.raises(SettingsError, match=r"no chat format .*qwen: <\|im_start\|>"):
        format_for(_Tokenizer(("[INST]",)))


def test_a_template_that_drops_earlier_thoughts_is_refused():
    """BUGS B28: prefix check at the start, with what to do."""
    tokenizer = _Tokenizer(drops_thoughts=True)

    with pytest.raises(SettingsError, match=r"drops or changes .*One thought.*append_only=True"):
        check_history(tokenizer)

    check_history(tokenizer, append_only=True)


def test_a_template_that_appends_passes():
    """BUGS B28; a tokenizer without a template has nothing to rewrite."""
    check_history(_Tokenizer())
    check_history(_Tokenizer(COMPACT, chat_template=None))


def test_a_template_with_other_markers_than_the_format_is_refused():
    """Ours: the opening would not be what the model was trained on."""
    with pytest.raises(SettingsError, match="Pass the ChatFormat of this model's family"):
        check_history(_Tokenizer(speaker="<|User|>"), append_only=True)
