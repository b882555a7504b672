"""Shows which tokens are trained, before the first of them is. [BUGS B27]"""

from collections.abc import Sequence

from rich.text import Text
from transformers import PreTrainedTokenizerBase

from hopling.episode import Ending, Episode

RAISED, LOWERED, NEUTRAL, READ, MARK = "green", "red", "yellow", "dim", "bold magenta"


def preview(
    episodes: Sequence[Episode],
    tokenizer: PreTrainedTokenizerBase,
    *,
    advantages: Sequence[float] | None = None,
) -> Text:
    """Return the episodes' tokens: trained ones colored by the sign of the advantage, others dim.

    Green tokens become likelier, red ones less likely, yellow ones are trained by the divergence
    from the start only. Without advantages, as in SFT, all trained tokens are green.
    """
    text = Text()
    signs = advantages if advantages is not None else [1.0] * len(episodes)
    for episode, advantage in zip(episodes, signs, strict=True):
        style = RAISED if advantage > 0 else LOWERED if advantage < 0 else NEUTRAL
        trained = episode.ending is not Ending.UNSCORED
        text.append(f"[{episode.task.id}] ", MARK)
        for segment in episode.segments:
            shown = _shown(segment.tokens, tokenizer) if segment.tokens else segment.text
            text.append(shown, style if segment.source == "policy" and trained else READ)
        if episode.ending is not Ending.ANSWERED:
            text.append(f" [{episode.ending.value if episode.ending else 'not ended'}]", MARK)
        text.append("\n")
    return text


def _shown(tokens: Sequence[int], tokenizer: PreTrainedTokenizerBase) -> str:
    shown = tokenizer.decode(
        list(tokens), skip_special_tokens=False, clean_up_tokenization_spaces=False
    )
    assert isinstance(shown, str)
    return shown
