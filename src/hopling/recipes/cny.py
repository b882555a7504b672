"""CNY: a model walks a text-attributed graph to classify a node, with credit for each walk.

Call Neighbours Yourself: GRPO on the ladder of rewards, and OPSD, which judges a walk again once it
is known where it led. Defaults are the paper's where it has them.

    hopling run cny --train wn18rr,wikispeedia --test fb15k237 --data FOLDER
    hopling run cny --scale small
"""

from copy import deepcopy
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Literal

from rich.console import Console

from hopling.data.text_graphs import Shown
from hopling.evaluation.controls import METRICS
from hopling.evaluation.report import Report
from hopling.policies.local import LocalModel
from hopling.recipes.small_walks import PAPER_GRPO, SMALL
from hopling.recipes.stages import Stages, Tell
from hopling.recipes.walk_graphs import walked
from hopling.recipes.walk_tables import judged, show_tables
from hopling.recipes.walkers import dialect_of, recap_of, traces, walker
from hopling.rewards.ladder import FULL, REMOVED, RESCALED, ladder
from hopling.settings import setting
from hopling.training.credit import hindsight
from hopling.training.grpo import grpo
from hopling.training.practice import Goal
from hopling.training.practice import Run as Practice
from hopling.training.settings import GRPO, OPSD, SFT
from hopling.training.sft import sft

TIERS = {"full": FULL, "rescaled": RESCALED, "removed": REMOVED}
SWEEP = "reward"  # the paper's Table 6: --reward full,rescaled,removed
SCALES = {"full": {}, "small": SMALL}


@dataclass(frozen=True)
class Settings:
    """What is walked, by whom, and how it is learned."""

    train: tuple[str, ...] = setting(("a",), "ours", "Graphs of the training mixture.")
    test: tuple[str, ...] = setting(("a", "b"), "ours", "Graphs of evaluation.")
    data: str = setting("", "ours", "Folder with nodes.tsv and edges.tsv; empty takes WordNet's.")
    student: str = setting("Qwen/Qwen2.5-14B-Instruct", "paper Table 9", "Or smollm2, tiny.")
    shown: Shown = setting("text", "paper 4.1", "What is shown of a target: text, name or nothing.")
    stages: tuple[str, ...] = setting(("rl",), "paper 4.3", "rl; or sft,rl for a warm start.")
    betas: tuple[float, ...] = setting((0.03,), "paper 5.5", "One student each; 0 is GRPO.")
    reward: Literal["full", "rescaled", "removed"] = setting("full", "paper Eq. 3", "Tiers.")
    tables: bool = setting(True, "paper 5.3", "Play the controls of the last student as well.")
    limit: int | None = setting(None, "ours", "Evaluate on this many tasks of each graph.")
    max_turns: int = setting(5, "paper Table 9", "Turns, the answer's included, as in the code.")
    max_first: int = setting(3, "paper Table 9", "Nodes of the initial frontier at most.")
    max_new: int = setting(3, "code", "Nodes that a walk adds to the frontier at most.")
    preview_words: int = setting(20, "code", "Words of a preview.")
    text_words: int = setting(120, "code", "Words that a walk reveals.")
    max_tokens: int | None = setting(32_768, "paper Table 9", "Tokens of an episode.")
    opsd: OPSD = setting(OPSD(), "paper Table 9")
    sft: SFT = setting(SFT(), "ours")
    grpo: GRPO = setting(PAPER_GRPO, "paper Table 9")
    seed: int = setting(0, "ours", "Added to the stages' seeds; fixes the start as well.")


def run(settings: Settings, folder: Path, console: Console) -> Report:
    """Train and evaluate the student, resuming what the folder holds, and return the report."""
    stages = Stages(folder, settings, console, seed=settings.seed)
    mixture = walked(settings, settings.train, dialect_of(settings.student))
    policy, dialect = walker(
        settings.student, lambda: traces(mixture, seed=settings.seed), seed=settings.seed
    )
    mixture = replace(mixture, dialect=dialect)
    tests = [walked(settings, (name,), dialect) for name in settings.test]

    def judge(name: str, policy: LocalModel) -> None:
        for graph in tests:
            stage, tasks = f"{name}, {graph.graphs[0].name}", graph.tasks("test")
            asked = tasks[: settings.limit]
            stages.evaluate(stage, policy, graph.world(), asked, judge=partial(judged, graph))

    # A warm start of ours, for a student too small to follow the prompt: constructed walks.
    def imitate(policy: LocalModel, place: Path, tell: Tell) -> None:
        shown = traces(mixture, seed=settings.seed, encoder=policy.encoder)
        chosen = replace(settings.sft, seed=settings.sft.seed + settings.seed)
        sft(policy, shown, settings=chosen, output_dir=place, on_progress=tell, resume=True)

    # GRPO on the ladder [Eq. 3, 5, 9], with hindsight on node ids [Eq. 7-8] unless beta is 0.
    def practice(beta: float, policy: LocalModel, place: Path, tell: Tell) -> None:
        told = hindsight(
            recap_of(settings.student, dialect),
            replace(settings.opsd, beta=beta),
            destination=mixture.destination,
            labels=mixture.classes,
        )
        reward = ladder(TIERS[settings.reward], correct=mixture.right)
        goal = Goal(reward, mixture.right, metrics=METRICS, credit=(told,) if beta else ())
        run = Practice(place, mixture.tasks("valid"), True, on_step=tell, show=console.print)
        chosen = replace(settings.grpo, seed=settings.grpo.seed + settings.seed)
        tasks = mixture.tasks("train")
        grpo(policy, mixture.world(), tasks=tasks, goal=goal, settings=chosen, run=run)

    learner, last = policy, "SFT" if "sft" in settings.stages else "Base"
    if "sft" in settings.stages:
        stages.learn("SFT", policy, imitate)
    judge(last, policy)
    for beta in settings.betas if "rl" in settings.stages else ():
        # every beta begins from the same weights
        learner = LocalModel(deepcopy(policy.model), policy.tokenizer, max_live=policy.max_live)
        last = f"OPSD {beta}" if beta else "GRPO"
        stages.learn(last, learner, partial(practice, beta))
        judge(last, learner)
    for graph in tests if settings.tables else ():
        show_tables(stages, last, learner, graph, limit=settings.limit)
    return stages.report(f"CNY on {', '.join(settings.train)}", mixture.graphs[0].graph)
