"""Text to tokens and back, such that only `Markup` yields control tokens.

Works with any tokenizer that has the few methods of `Tokenizer`, and needs no torch.
"""

import re
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Protocol

from hopling.episode import Markup
from hopling.errors import SettingsError


class AddedToken(Protocol):
    """An entry of a tokenizer's list of added tokens."""

    content: str
    special: bool


class Tokenizer(Protocol):
    """What is asked of a tokenizer; those of transformers have it."""

    @property
    def added_tokens_decoder(self) -> Mapping[int, AddedToken]: ...

    def encode(
        self, text: str, *, add_special_tokens: bool, split_special_tokens: bool
    ) -> list[int]: ...

    def decode(self, token_ids: list[int], **kwargs: bool) -> str | list[str]: ...


class TokenizerEncoder:
    """Encodes pieces one by one; a piece that is not `Markup` never gives a control token.

    Control tokens are the added tokens that are special, and those that are not but look like
    markup (<think>, <tool_call>). Text that spells one is cut inside the marker, so it reads the
    same and means nothing [BUGS B20].
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.tokenizer = tokenizer
        probe = " a\n b"
        if (found := self.decode(self.encode([probe[:2], probe[2:]]))) != probe:
            raise SettingsError(
                f"This tokenizer reads {probe!r} back as {found!r} when it comes in pieces. "
                "Episodes are encoded piece by piece, so take a model with a byte-level tokenizer "
                "(Llama-3, Qwen and SmolLM2 have one)."
            )

    @cached_property
    def control(self) -> dict[str, int]:
        """The control tokens, text to id."""
        return {
            token.content: number
            for number, token in self.tokenizer.added_tokens_decoder.items()
            if token.special or re.search(r"[^\w\s]", token.content)
        }

    def encode(self, pieces: Sequence[str]) -> list[int]:
        """Return the pieces' tokens.

        Raises SettingsError for text that this tokenizer cannot keep apart from a control token.
        """
        tokens: list[int] = []
        for piece in pieces:
            tokens += self._control(piece) if isinstance(piece, Markup) else self._plain(piece)
        return tokens

    def decode(self, tokens: Sequence[int]) -> str:
        """Return the text of the tokens, control tokens included, with every space as it was."""
        text = self.tokenizer.decode(
            list(tokens), skip_special_tokens=False, clean_up_tokenization_spaces=False
        )
        assert isinstance(text, str)
        return text

    def _control(self, text: str) -> list[int]:
        return self.tokenizer.encode(text, add_special_tokens=False, split_special_tokens=False)

    def _plain(self, text: str) -> list[int]:
        tokens: list[int] = []
        for part in self._apart(text):
            tokens += self.tokenizer.encode(
                part, add_special_tokens=False, split_special_tokens=True
            )
        if not self._control_ids.isdisjoint(tokens):
            names = sorted(name for name, number in self.control.items() if number in tokens)
            raise SettingsError(
                f"The text {text[:200]!r} became the control token {names[0]!r}; this tokenizer "
                "rewrites text before it looks for control tokens. Take another model."
            )
        return tokens

    def _apart(self, text: str) -> list[str]:
        """Return the text in parts of which none holds a control token's whole spelling."""
        parts: list[str] = []
        start = 0
        while match := self._spelled.search(text, start):
            cut = match.start() + 1
            parts.append(text[start:cut])
            start = cut
        return [*parts, text[start:]]

    @cached_property
    def _control_ids(self) -> frozenset[int]:
        return frozenset(self.control.values())

    @cached_property
    def _spelled(self) -> re.Pattern[str]:
        # limit: a control token of one character cannot be cut; encode() raises if it comes up
        names = [re.escape(name) for name in self.control if len(name) > 1]
        return re.compile("|".join(names) or r"(?!)")
