"""OPSD: a walk is judged again once it is known where it led. [CNY 4.4]

The same weights score a walk's node id twice, without and with a recap of the destination before
the walk: delta is the difference of the two log-probabilities, and beta times it is added to the
advantage of those tokens. Nothing is differentiated here.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from hopling.episode import Call, Encoder, Episode, Observation, Task
from hopling.training.advantages import is_flat
from hopling.training.practice import Credit, Credited, Scored, Student
from hopling.training.prefixes import span_logprobs
from hopling.training.recaps import LEAKS, Leak, Recap, leak
from hopling.training.settings import OPSD

Destination = Callable[[Task, Call, Observation], str]
Labels = Callable[[Task], Sequence[str]]


@dataclass(frozen=True)
class Walk:
    """A successful walk: its call's first token, and its node id's tokens, in the episode."""

    call: Call
    observation: Observation
    start: int
    ids: tuple[int, int]


@dataclass(frozen=True)
class _Judged:
    """A walk of an episode, with its recap's tokens and what the recap gives away."""

    episode: int
    walk: Walk
    recap: tuple[int, ...]
    leak: Leak | None


def hindsight(
    recap: Recap,
    settings: OPSD,
    *,
    tool: str = "walk",
    destination: Destination | None = None,
    labels: Labels | None = None,
) -> Credit:
    """Return the credit of every walk in hindsight, A + beta delta on its node id. [CNY Eq. 7-8]

    `destination` gives the text that a recap is of, the observation's where there is none, and
    `labels` the classes that no recap may name. A walk whose recap leaks gets no
    credit, if that kind of leak is among those that drop it.
    """
    text_of = destination or (lambda task, call, observation: observation.text)
    classes = labels or (lambda task: ())

    def credit(scored: Sequence[Scored], student: Student) -> Credited:
        flat = _flat(scored)
        found = [
            (number, walk)
            for number, s in enumerate(scored)
            if s.reward is not None
            for walk in walks(s.episode, student.encoder, tool=tool)
        ]
        aligned = [(n, walk) for n, walk in found if walk]
        chosen = [(n, walk) for n, walk in aligned if not (settings.gate and flat[n])]
        texts = [text_of(scored[n].episode.task, w.call, w.observation) for n, w in chosen]
        distinct = list(dict.fromkeys(texts))
        written = recap(distinct, student, settings.max_recap_tokens) if distinct else []
        recaps = {
            text: (own, tuple(student.encoder.encode([own])[: settings.max_recap_tokens]))
            for text, own in zip(distinct, written, strict=True)
        }
        judged = [
            _Judged(n, walk, recaps[text][1], _leak(recaps[text][0], scored[n], walk, classes))
            for (n, walk), text in zip(chosen, texts, strict=True)
        ]
        kept = [j for j in judged if j.leak not in settings.drop]
        deltas, num_read = _deltas(kept, scored, student)
        terms = [[0.0] * len(s.episode.tokens) for s in scored]
        for j, delta in zip(kept, deltas, strict=True):
            for place, value in zip(range(*j.walk.ids), delta, strict=True):
                terms[j.episode][place] = settings.beta * _tamed(value, len(delta), settings)
        num_scored = float(sum(s.reward is not None for s in scored))
        sums = _sums(judged, kept, deltas, flat=flat) | {
            "walking": (float(len({n for n, _ in aligned})), num_scored),
            "walks": (float(len(aligned)), num_scored),
            "walks_misaligned": (float(len(found) - len(aligned)), float(len(found))),
            "recaps": (float(len(distinct)), num_scored),
            "credit_tokens": (float(num_read), num_scored),
        }
        return Credited(terms, sums)

    return credit


def walks(episode: Episode, encoder: Encoder, *, tool: str = "walk") -> Iterator[Walk | None]:
    """Yield the episode's successful walks; None for one whose id no token can be found for.

    A token counts to the id if it holds any of the id's characters.
    """
    starts = _starts(episode)
    for turn, start in zip(episode.turns, starts, strict=False):
        for action, observation in zip(turn.actions, turn.observations, strict=False):
            if not isinstance(action, Call) or action.tool != tool or observation.error:
                continue
            tokens = episode.tokens[start.at : start.at + start.size]
            ends = _ends(tokens, encoder)
            first, last = action.span
            id_span = _id_span(turn.text[first:last], action, first)
            call_tokens = _overlapping(ends, action.span)
            id_tokens = _overlapping(ends, id_span) if id_span else None
            if call_tokens is None or id_tokens is None:
                yield None
                continue
            ids = (start.at + id_tokens[0], start.at + id_tokens[1])
            yield Walk(action, observation, start.at + call_tokens[0], ids)


@dataclass(frozen=True)
class _Start:
    at: int
    size: int


def _starts(episode: Episode) -> list[_Start]:
    """Return where each turn's tokens stand; every turn has its segment."""
    result, at = [], 0
    for segment in episode.segments:
        if segment.source == "policy":
            result.append(_Start(at, len(segment.tokens)))
        at += len(segment.tokens)
    return result


def _id_span(call: str, action: Call, offset: int) -> tuple[int, int] | None:
    """Return where the node id stands in the turn's text: in a tag, else the last whole match."""
    (node, *others) = (str(value).strip() for value in action.arguments.values())
    if others or not node:
        return None
    whole = rf"(?<!\w)({re.escape(node)})(?!\w)"
    found = [*re.finditer(rf">\s*({re.escape(node)})\s*<", call), *re.finditer(whole, call)]
    if not found:
        return None
    match = found[0] if found[0][0].startswith(">") else found[-1]
    return offset + match.start(1), offset + match.end(1)


def _ends(tokens: Sequence[int], encoder: Encoder) -> list[int]:
    """Return where in the text each token ends; part of a character ends where that begins."""
    single = [encoder.decode([token]) for token in tokens]
    if "".join(single) == encoder.decode(tokens):
        ends, at = [], 0
        for text in single:
            at += len(text)
            ends.append(at)
        return ends
    whole = [encoder.decode(tokens[: k + 1]) for k in range(len(tokens))]
    return [len(text.rstrip("\ufffd")) for text in whole]


def _overlapping(ends: Sequence[int], span: tuple[int, int]) -> tuple[int, int] | None:
    """Return the first token that holds a character of the span, and one past the last."""
    starts = [0, *ends[:-1]]
    held = [
        k
        for k, (start, end) in enumerate(zip(starts, ends, strict=True))
        if start < span[1] and max(end, start + 1) > span[0]
    ]
    covered = bool(held) and starts[held[0]] <= span[0] and ends[held[-1]] >= span[1]
    return (held[0], held[-1] + 1) if covered else None


def _leak(recap: str, scored: Scored, walk: Walk, labels: Labels) -> Leak | None:
    task, observations = scored.episode.task, scored.episode.observations
    observed = (node for observation in observations for node in observation.nodes)
    walked = (str(value).strip() for value in walk.call.arguments.values())
    return leak(recap, ids={*task.start, *observed, *walked} - {""}, labels=labels(task))


def _deltas(
    judged: Sequence[_Judged], scored: Sequence[Scored], student: Student
) -> tuple[list[list[float]], int]:
    """Return delta of each walk's id tokens, and how many tokens were read for it. [CNY Eq. 7]"""
    sequences: list[list[int]] = []
    spans: list[tuple[int, int]] = []
    opens, closes = (student.encoder.encode([text]) for text in ("[Destination: ", "]"))
    for j in judged:
        tokens, (first, last) = scored[j.episode].episode.tokens, j.walk.ids
        inserted = [*opens, *j.recap, *closes]
        before, action = tokens[: j.walk.start], tokens[j.walk.start : last]
        sequences += [[*before, *action], [*before, *inserted, *action]]
        spans += [(first, last), (first + len(inserted), last + len(inserted))]
    scores = span_logprobs(student.model, sequences, spans)
    pairs = zip(scores.logprobs[::2], scores.logprobs[1::2], strict=True)
    deltas = [[t - s for s, t in zip(stu, tea, strict=True)] for stu, tea in pairs]
    return deltas, scores.tokens


def _tamed(delta: float, size: int, settings: OPSD) -> float:
    if settings.clip is not None:
        delta = max(-settings.clip, min(settings.clip, delta))
    return delta / size if settings.average else delta


def _flat(scored: Sequence[Scored]) -> list[bool]:
    """Return for each episode whether the rewards of its group are all equal."""
    groups: dict[str, list[float]] = defaultdict(list)
    for s in scored:
        if s.reward is not None:
            groups[s.episode.task.id].append(s.reward)
    return [is_flat(groups[s.episode.task.id]) for s in scored]


def _sums(
    judged: Sequence[_Judged],
    kept: Sequence[_Judged],
    deltas: Sequence[Sequence[float]],
    *,
    flat: Sequence[bool],
) -> dict[str, tuple[float, float]]:
    """Return what is logged of delta and of the recaps. [CNY Table 5]"""
    values = [value for delta in deltas for value in delta]
    pairs = zip(kept, deltas, strict=True)
    in_flat = [value for j, delta in pairs if flat[j.episode] for value in delta]
    leaks = Counter(j.leak for j in judged)
    size, num = float(len(values)), float(len(judged))
    return {
        "delta": (sum(values), size),
        "delta_abs": (sum(map(abs, values)), size),
        "delta_positive": (float(sum(value > 0 for value in values)), size),
        "delta_flat": (sum(in_flat), float(len(in_flat))),
        "recap_tokens": (float(sum(len(j.recap) for j in judged)), num),
        **{f"leaks_{kind}": (float(leaks[kind]), num) for kind in LEAKS},
    }
