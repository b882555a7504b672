"""CNY's tables for one student: the walk, its controls, and how it walks. [CNY 5.3, App. F.2]"""

from collections.abc import Mapping, Sequence
from functools import partial

from rich.console import Console

from hopling.episode import Task
from hopling.evaluation.controls import (
    METRICS,
    by_walks,
    likeliest,
    table_of_settings,
    table_of_walks,
    voted,
    walk_statistics,
)
from hopling.evaluation.evaluate import Evaluation, evaluate
from hopling.policies.local import LocalModel
from hopling.policies.sampling import Sampling
from hopling.recipes.prompts.walking import CONTROLS
from hopling.recipes.stages import Stages
from hopling.recipes.walks import Walked

SAMPLES = 4  # of self-consistency and best-of-n [CNY 5.3]


def judged(walked: Walked, evaluation: Evaluation) -> Evaluation:
    """Return the evaluation by what is right on these graphs, with the walk's own numbers."""
    return evaluation.judged_by(walked.right, METRICS)


def show_tables(
    stages: Stages, name: str, policy: LocalModel, walked: Walked, *, limit: int | None
) -> None:
    """Play the controls of the student that walked as `name`, and print the tables."""
    (labeled,) = walked.graphs
    tasks = walked.tasks("test")[:limit]
    walk = f"{name}, {labeled.name}"
    rows = {"walk": stages.evaluations[walk]}
    judge = partial(judged, walked)
    for view in CONTROLS:
        stages.evaluate(f"{walk}: {view}", policy, walked.world(view), tasks, judge=judge)
        rows[view] = stages.evaluations[f"{walk}: {view}"]
    rewired = walked.world(rewired=stages.seed)
    stages.evaluate(f"{walk}: rewired", policy, rewired, tasks, judge=judge)
    rows["walk, rewired"] = stages.evaluations[f"{walk}: rewired"]
    rows |= _samples(policy, walked, tasks, seed=stages.seed)
    console = stages.console
    console.print(f"{walk}: {len(tasks)} tasks", markup=False)
    console.print(table_of_settings(rows))
    console.print(table_of_walks(by_walks(rows["walk"], rows["one text"])))
    _print_statistics(console, rows["walk"], walked)


def _samples(
    policy: LocalModel, walked: Walked, tasks: Sequence[Task], *, seed: int
) -> Mapping[str, Evaluation]:
    before = policy.sampling
    policy.sampling = Sampling(1.0, 1.0, 0, before.max_turn_tokens)
    world = walked.world("previews")
    samples = judged(walked, evaluate(policy, world, list(tasks) * SAMPLES, seed=seed))
    policy.sampling = before
    policy.forget()
    return {f"vote of {SAMPLES}": voted(samples), f"best of {SAMPLES}": likeliest(samples)}


def _print_statistics(console: Console, walk: Evaluation, walked: Walked) -> None:
    (labeled,) = walked.graphs
    graph = labeled.graph
    shown = {task.start[0]: task.question for task in walked.tasks("test")}
    found = walk_statistics(
        walk.episodes,
        label=graph.classes.get,
        neighbors=graph.neighbors,
        text=lambda node: shown.get(node, graph.text(node)),
    )
    for name, value in vars(found).items():
        number = "none" if value is None else f"{value:.3f}"
        console.print(f"{name:14}{number}", markup=False)
