"""When a turn ends, and what its text is then. V is the vocabulary."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import torch

from hopling.episode import Completion, Markup
from hopling.policies.encoding import TokenizerEncoder


@dataclass(frozen=True, eq=False)
class Stops:
    """The stops of a dialect, for one tokenizer.

    A stop that is `Markup` or a special token marks the end and is left out of the turn's text;
    any other stop, such as a closing tag, is part of it. Either is one token (`ends_V`) where the
    tokenizer has it.
    The others are looked for in the text as soon as a token comes that may complete one.
    """

    encoder: TokenizerEncoder
    markers: frozenset[int]
    ends_V: torch.Tensor
    spelled: tuple[str, ...]
    may_complete_V: torch.Tensor

    @classmethod
    def of(
        cls, stops: Sequence[str], encoder: TokenizerEncoder, *, ends: Collection[int], size: int
    ) -> "Stops":
        """Return the rules for `stops` and the model's own end-of-text tokens, `ends`."""
        control = encoder.control
        single = {control[stop] for stop in stops if stop in control}
        added = encoder.tokenizer.added_tokens_decoder
        hidden = {
            control[stop]
            for stop in stops
            if stop in control and (isinstance(stop, Markup) or added[control[stop]].special)
        }
        spelled = tuple(stop for stop in stops if stop not in control)
        last = {stop[-1] for stop in spelled}
        # a token that is part of a character reads as U+FFFD
        completing = [
            number
            for number in range(size if spelled else 0)
            if not (last | {"\ufffd"}).isdisjoint(encoder.decode([number]))
        ]
        ends_V = torch.zeros(size, dtype=torch.bool)
        ends_V[list(single.union(ends))] = True
        may_complete_V = torch.zeros(size, dtype=torch.bool)
        may_complete_V[completing] = True
        return cls(encoder, frozenset(hidden.union(ends)), ends_V, spelled, may_complete_V)

    def is_spelled(self, tokens: Sequence[int]) -> bool:
        """Return whether the tokens' last part spells a stop."""
        num_tokens = max(len(stop.encode()) for stop in self.spelled) + 1
        text = self.encoder.decode(tokens[-num_tokens:])
        return any(stop in text for stop in self.spelled)

    def completion(self, tokens: Sequence[int], logprobs: Sequence[float]) -> Completion:
        """Return the turn; it is cut when nothing ended it."""
        kept, scores = tuple(tokens), tuple(logprobs)
        text, found = torn(kept, self.encoder, markers=self.markers, spelled=self.spelled)
        ended = found or bool(self.ends_V[kept[-1]])
        return Completion(text, kept, scores, cut=not ended)


def torn(
    tokens: Sequence[int],
    encoder: TokenizerEncoder,
    *,
    markers: Collection[int],
    spelled: Collection[str],
) -> tuple[str, bool]:
    """Return a turn's text, torn off where it ends, and whether a marker or spelled stop ended it.

    A marker at the end is left out. Of the spelled stops the first one in the text counts; it is
    part of the text unless it is `Markup`.
    """
    if tokens and tokens[-1] in markers:
        return encoder.decode(tokens[:-1]), True
    text = encoder.decode(tokens)
    found = [(text.find(stop), stop) for stop in spelled if stop in text]
    if not found:
        return text, False
    start, stop = min(found)
    return text[: start if isinstance(stop, Markup) else start + len(stop)], True
