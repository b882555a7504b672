"""An episode as HTML: who wrote what, what was trained on, and every call with its full result."""

from collections.abc import Mapping
from dataclasses import dataclass
from html import escape

from hopling.episode import Action, Answer, Call, Episode, Segment, Turn
from hopling.rewards.answers import predicted, ungrounded

_WHO = {"prompt": "prompt", "policy": "policy, trained", "environment": "environment"}
_OPEN_LINES = 14

LEGEND = (
    '<p class="legend">'
    + "".join(f'<span class="segment {source}">{who}</span>' for source, who in _WHO.items())
    + '<span class="soft">Only what the policy wrote is trained on.</span></p>'
)


@dataclass(frozen=True)
class Example:
    """An episode to show, with the stage that played it and its scores."""

    stage: str
    outcome: str
    episode: Episode
    scores: Mapping[str, float]


def transcript(example: Example) -> str:
    """Return an episode's outcome, gold answers, and segments in the order read and written."""
    episode = example.episode
    gold = ", ".join(episode.task.answers) or "none"
    scores = ", ".join(f"{name} {value:.3g}" for name, value in example.scores.items())
    lines = [f"Gold: {gold}", *_provenance(episode), scores]
    parts = [f'<p class="soft">{escape(line)}</p>' for line in lines]
    if episode.reason:
        parts.append(f'<p class="soft">{escape(episode.reason)}</p>')
    turns = iter(episode.turns)
    turn: Turn | None = None
    for segment in episode.segments:
        if segment.source == "policy":
            turn = next(turns, None)
        parts.append(_segment(segment, turn))
    if episode.segments and episode.segments[-1].source == "policy" and turn is not None:
        parts.extend(_unread(observation.text) for observation in turn.observations)
    return "".join(parts)


def _provenance(episode: Episode) -> list[str]:
    names, recalled = predicted(episode), ungrounded(episode)
    marked = [f"{name} ({'not seen' if name in recalled else 'seen'})" for name in names]
    return [f"Answered, and whether an observation held it: {', '.join(marked)}"] if names else []


def tag(outcome: str) -> str:
    """Return an outcome as a small label."""
    style = outcome if outcome in ("correct", "wrong") else "bad"
    return f'<span class="tag {style}">{escape(outcome)}</span>'


def _segment(segment: Segment, turn: Turn | None) -> str:
    failed = (
        segment.source == "environment"
        and turn is not None
        and any(observation.error for observation in turn.observations)
    )
    num_tokens = f", {len(segment.tokens)} tokens" if segment.tokens else ""
    who = f'<div class="who">{_WHO[segment.source]}{num_tokens}{", error" if failed else ""}</div>'
    chips = "".join(map(_chip, turn.actions)) if segment.source == "policy" and turn else ""
    style = f"segment {segment.source}" + (" failed" if failed else "")
    return f'<div class="{style}">{who}{_text(segment.text, segment.source)}{chips}</div>'


def _text(text: str, source: str) -> str:
    block = f"<pre>{escape(text.strip(chr(10)))}</pre>"
    num_lines = text.count("\n") + 1
    if source == "policy" or (source == "environment" and num_lines <= _OPEN_LINES):
        return block
    return f"<details><summary>{num_lines} lines</summary>{block}</details>"


def _unread(text: str) -> str:
    who = '<div class="who">result that the policy did not read</div>'
    return f'<div class="segment environment">{who}<pre>{escape(text)}</pre></div>'


def _chip(action: Action) -> str:
    if isinstance(action, Call):
        arguments = ", ".join(f"{name}={value!r}" for name, value in action.arguments.items())
        return f'<span class="tag">call {escape(action.tool)}({escape(arguments)})</span>'
    if isinstance(action, Answer):
        return f'<span class="tag">answer {escape(action.text)}</span>'
    return f'<span class="tag bad">malformed: {escape(action.reason)}</span>'
