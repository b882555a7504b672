"""Is it the walk that helps? One policy with other texts, with more samples, or on other edges.

A control without walks is the walking environment with another prompt and no tool. Everything here
is computed from episodes; nothing knows a graph. [CNY 5.3, App. F.2]
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

import numpy as np
from rich import box
from rich.table import Table

from hopling.environment import Environment
from hopling.episode import Call, Ending, Episode, Prompt, Task
from hopling.evaluation.evaluate import Evaluation, Outcome
from hopling.evaluation.intervals import Estimate, bootstrap
from hopling.rewards.answers import normalized


def without_walks(environment: Environment, prompt: Callable[[Task], Prompt | str]) -> Environment:
    """Return the environment with this prompt and one turn, in which the policy answers."""
    return replace(environment, prompt=prompt, tools=(), max_turns=1)


def walked(episode: Episode, *, tool: str = "walk") -> list[str]:
    """Return the nodes that the episode walked to, in order."""
    return [
        str(next(iter(action.arguments.values()))).strip()
        for turn in episode.turns
        for action, observation in zip(turn.actions, turn.observations, strict=False)
        if isinstance(action, Call) and action.tool == tool and not observation.error
    ]


def walk_attempts(episode: Episode, *, tool: str = "walk") -> float:
    """Return how many walks the episode asked for, whether they could be carried out or not."""
    return float(sum(call.tool == tool for turn in episode.turns for call in turn.calls))


def read_and_written(episode: Episode) -> float:
    """Return the tokens of the whole episode, prompt and observations included."""
    return float(len(episode.tokens))


def out_of_budget(episode: Episode) -> float:
    """Return 1.0 for an episode that ended without an answer for lack of turns or room."""
    return float(episode.ending not in (Ending.ANSWERED, Ending.UNSCORED))


def answered(episode: Episode) -> float:
    """Return 1.0 for an episode that ended in an answer."""
    return float(episode.ending is Ending.ANSWERED)


# what stands beside accuracy in Table 6 [CNY Table 6], and what matched compute is judged by
METRICS: Mapping[str, Callable[[Episode], float]] = {
    "walks": lambda episode: float(len(walked(episode))),
    "walk_attempts": walk_attempts,
    "answer_rate": answered,
    "out_of_budget": out_of_budget,
    "all_tokens": read_and_written,
}


def with_metrics(evaluation: Evaluation) -> Evaluation:
    """Return the evaluation with the walk's own numbers in every scored row."""
    for name, scorer in METRICS.items():
        evaluation = evaluation.with_metric(name, scorer)
    return evaluation


def voted(samples: Evaluation) -> Evaluation:
    """Return for each task the first sample that has its most frequent answer. [CNY 5.3]

    Self-consistency; it costs the tokens of all samples, which `all_tokens` counts.
    """

    def choose(episodes: Sequence[Episode]) -> int:
        answers = [normalized(e.answer.text) if e.answer else None for e in episodes]
        counts = Counter(answer for answer in answers if answer is not None)
        best = max(counts.values(), default=0)
        return next((i for i, a in enumerate(answers) if a and counts[a] == best), 0)

    return _chosen(samples, choose)


def likeliest(samples: Evaluation) -> Evaluation:
    """Return for each task the sample whose tokens the policy finds likeliest on the mean.

    Best of n, ranked by the policy itself [CNY 5.3; the ranking is ours].
    """

    def choose(episodes: Sequence[Episode]) -> int:
        def score(episode: Episode) -> float:
            pairs = zip(episode.logprobs, episode.sampled, strict=True)
            own = [logprob for logprob, sampled in pairs if sampled]
            return fmean(own) if own and episode.answer else float("-inf")

        return max(range(len(episodes)), key=lambda i: score(episodes[i]))

    return _chosen(samples, choose)


def _chosen(samples: Evaluation, choose: Callable[[Sequence[Episode]], int]) -> Evaluation:
    places: dict[str, list[int]] = defaultdict(list)
    for place, row in enumerate(samples.rows):
        if row.outcome is not Outcome.WORLD_FAILURE:
            places[row.task_id].append(place)
    episodes, rows = [], []
    for own in places.values():
        place = own[choose([samples.episodes[i] for i in own])]
        tokens = sum(read_and_written(samples.episodes[i]) for i in own)
        episodes.append(samples.episodes[place])
        row = samples.rows[place]
        rows.append(replace(row, copy=0, scores={**row.scores, "all_tokens": tokens}))
    return Evaluation(samples.seed, tuple(episodes), tuple(rows))


@dataclass(frozen=True)
class Bucket:
    """The tasks with so many walks: their share, and accuracy with one text and with the walk."""

    walks: str
    share: float
    direct: Estimate
    walk: Estimate
    difference: Estimate


def by_walks(walk: Evaluation, direct: Evaluation) -> list[Bucket]:
    """Return Table 2: how walking differs from as much text that was not chosen. [CNY Table 2]

    The difference is paired, with an interval over the tasks.
    """
    num_walks = {e.task.id: len(walked(e)) for e in walk.episodes}
    without = {r.task_id: r.scores["exact_match"] for r in direct.rows if r.scores}
    with_walk = {r.task_id: r.scores["exact_match"] for r in walk.rows if r.scores}
    tasks = [task for task in with_walk if task in without]
    kinds = {"no walk": (0, 0), "1 walk": (1, 1), ">=2 walks": (2, 10**9), "all": (0, 10**9)}
    buckets = []
    for name, (low, high) in kinds.items():
        own = [task for task in tasks if low <= num_walks[task] <= high]
        if not own:
            continue
        pairs = [(without[task], with_walk[task]) for task in own]
        found = [
            bootstrap(values, [1.0] * len(own), rng=np.random.default_rng(walk.seed))
            for values in (
                [d for d, _ in pairs],
                [w for _, w in pairs],
                [w - d for d, w in pairs],
            )
        ]
        estimates = [estimate for estimate in found if estimate]
        buckets.append(Bucket(name, len(own) / len(tasks), *estimates))
    return buckets


@dataclass(frozen=True)
class WalkStatistics:
    """How the policy walks. [CNY 5.3]

    `same_class` is the share of walked nodes that have the target's class, `homophily` that share
    among all they were chosen from. `top_similar` is how often the first pick is the neighbor most
    like the target, `mean_rank` the pick's rank in that order, 1 being the most similar.
    """

    walks: float
    same_class: float | None
    homophily: float | None
    top_similar: float | None
    mean_rank: float | None


def walk_statistics(
    episodes: Sequence[Episode],
    *,
    label: Callable[[str], str | None],
    neighbors: Callable[[str], Sequence[str]],
    text: Callable[[str], str],
) -> WalkStatistics:
    """Return the statistics of walks from single targets; similarity is that of their words."""
    same: list[float] = []
    usual: list[float] = []
    ranks: list[int] = []
    num_walks = 0
    for episode in episodes:
        (target, *_), picks = episode.task.start, walked(episode)
        num_walks += len(picks)
        around = list(neighbors(target))
        if not picks or not around:
            continue
        own = label(target)
        same += [float(label(pick) == own) for pick in picks]
        usual.append(fmean(label(node) == own for node in around))
        if picks[0] in around:
            near = {node: _overlap(text(target), text(node)) for node in around}
            ranks.append(1 + sum(value > near[picks[0]] for value in near.values()))
    return WalkStatistics(
        num_walks / max(1, len(episodes)),
        fmean(same) if same else None,
        fmean(usual) if usual else None,
        fmean(rank == 1 for rank in ranks) if ranks else None,
        fmean(ranks) if ranks else None,
    )


def _overlap(one: str, other: str) -> float:
    first, second = set(normalized(one).split()), set(normalized(other).split())
    return len(first & second) / max(1, len(first | second))


def table_of_walks(buckets: Sequence[Bucket]) -> Table:
    """Return Table 2 for a terminal. [CNY Table 2]"""
    made = Table(box=box.SIMPLE_HEAD, title="By walks", title_justify="left")
    for head in ("", "Tasks", "Direct, as much text", "Walk", "Difference"):
        made.add_column(head, justify="right" if head else "left")
    for row in buckets:
        cells = [_percent(row.direct), _percent(row.walk), _percent(row.difference, sign="+")]
        made.add_row(row.walks, f"{100 * row.share:.0f} %", *cells)
    return made


def table_of_settings(evaluations: Mapping[str, Evaluation]) -> Table:
    """Return Tables 3 and 6 for a terminal: each setting's accuracy and how it got there.

    [CNY Table 3, Table 6]
    """
    made = Table(box=box.SIMPLE_HEAD, title="By setting", title_justify="left")
    heads = ("Accuracy, 95 %", "Walks", "Attempts", "Answered", "Out of\nbudget", "Tokens")
    for head in ("", *heads):
        made.add_column(head, justify="right" if head else "left", no_wrap=bool(head))
    for name, evaluation in evaluations.items():
        means = {key: evaluation.mean(key) for key in METRICS}
        shown = [
            _number(means["walks"], "{:.2f}"),
            _number(means["walk_attempts"], "{:.2f}"),
            _number(means["answer_rate"], "{:.0%}"),
            _number(means["out_of_budget"], "{:.1%}"),
            _number(means["all_tokens"], "{:.0f}"),
        ]
        made.add_row(name, _percent(evaluation.mean("exact_match")), *shown)
    return made


def _percent(estimate: Estimate | None, *, sign: str = "") -> str:
    if estimate is None:
        return "none"
    value, low, high = (
        f"{100 * v:{sign}.1f}" for v in (estimate.value, estimate.low, estimate.high)
    )
    return f"{value} [{low}, {high}]"


def _number(estimate: Estimate | None, form: str) -> str:
    return form.format(estimate.value) if estimate else "none"
