"""SoG-R1: a small model learns to search a knowledge graph, one hop at a time.

Search-on-Graph-R1: traces that walk the gold query with the student's own tool, supervised
fine-tuning on them, then GRPO against the live graph. Defaults are the paper's where it has them.

    hopling run sog_r1 --benchmark cwq --data DATA --graph GRAPH
"""

from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from rich.console import Console

from hopling.environment import Environment
from hopling.evaluation.evaluate import closed_book
from hopling.evaluation.report import Report
from hopling.policies.local import LocalModel
from hopling.recipes.questions import questions_and_graph
from hopling.recipes.small import SMALL
from hopling.recipes.stages import Stages, Tell
from hopling.recipes.students import new_student
from hopling.recipes.traces import Asked, taught
from hopling.rewards import exact_match, sog_r1
from hopling.settings import setting
from hopling.tools import OneHopSearch
from hopling.training.batches import replay
from hopling.training.grpo import grpo
from hopling.training.practice import Goal
from hopling.training.practice import Run as Practice
from hopling.training.preview import preview
from hopling.training.processes import Processes
from hopling.training.selection import undecided
from hopling.training.settings import GRPO, SFT
from hopling.training.sft import sft

SCALES = {"full": {}, "small": SMALL}
SWEEP = "pool"  # the paper's Figure 2: --pool 500,1000,2000


@dataclass(frozen=True)
class Settings(Asked):
    """What is learned, and how; what is asked and who teaches stands in `Asked`."""

    stages: tuple[str, ...] = setting(("sft", "rl"), "paper 5.3", "sft; rl; or sft,rl.")
    rl_only: bool = setting(False, "paper 5.3", "Train a second student by RL alone as well.")
    closed_book: bool = setting(False, "ours", "Also ask the untrained student without the tool.")
    traces: int | None = setting(None, "ours", "SFT imitates this many traces; RL plays all tasks.")
    valid: int = setting(300, "paper 5.1", "Validation questions.")
    test: int | None = setting(None, "ours", "Evaluate on this many test questions.")
    max_rows: int = setting(50, "paper 4.1", "Rows that Search shows before it sums up.")
    max_probe_rows: int | None = setting(None, "ours", "The same for calls without properties.")
    max_tokens: int | None = setting(32_768, "paper App. B", "Tokens of an episode.")
    penalty: float = setting(0.05, "paper 5.1", "What each call beyond the free ones costs.")
    known: int | None = setting(
        None, "ours", "Practice on those of this many tasks that are solved sometimes, not always."
    )
    floor: float = setting(0.3, "paper 5.1", "What a right answer earns at least.")
    free_calls: float | None = setting(None, "paper 5.1", "T_d; else the traces' 75th percentile.")
    sft: SFT = setting(SFT(), "paper App. B")
    grpo: GRPO = setting(GRPO(), "paper App. B")
    seed: int = setting(0, "ours", "Added to the stages' seeds; fixes the start as well.")


def run(settings: Settings, folder: Path, console: Console) -> Report:
    """Train and evaluate the student, resuming what the folder holds, and return the report."""
    plays = settings.grpo.vllm.mode == "off" and (settings.rl_only or "rl" in settings.stages)
    processes = Processes(plays=plays)
    stages = Stages(folder, settings, console, seed=settings.seed, processes=processes)
    asked, graph = questions_and_graph(settings, stages)
    test = (*asked.test[: settings.test], *asked.unseen[: settings.test])
    search = OneHopSearch(graph, settings.max_rows, max_probe_rows=settings.max_probe_rows)

    # Stage 1: whoever knows the gold program walks it with the student's own tool [4.2].
    pool, record = asked.train[: settings.pool], folder / "traces.jsonl"
    traces = stages.shared(lambda: taught(settings, search, pool, record=record))
    console.print(traces.table(), markup=False)
    student = new_student(settings.student, traces.kept, seed=settings.seed)
    world = Environment(
        student.prompt(graph), (search,), student.dialect, settings.max_turns, settings.max_tokens
    )
    if settings.closed_book:
        stages.evaluate("Closed book", student.policy, closed_book(world), test)
    stages.evaluate("Base", student.policy, world, test)

    # Stage 2: the student imitates the traces, without the program [4.3].
    def imitate(policy: LocalModel, place: Path, tell: Tell) -> None:
        shown = replay(traces.kept[: settings.traces], world, policy.encoder)
        console.print(preview(shown[:1], policy.tokenizer))
        chosen = replace(settings.sft, seed=settings.sft.seed + settings.seed)
        sft(policy, shown, settings=chosen, output_dir=place, on_progress=tell, resume=True)

    # Stage 3: it practices on the live graph; T_d is the traces' third quartile [4.4, 5.1].
    free = traces.free_calls if settings.free_calls is None else settings.free_calls
    goal = Goal(sog_r1(free, penalty=settings.penalty, floor=settings.floor), exact_match)

    def practice(policy: LocalModel, place: Path, tell: Tell) -> None:
        valid = asked.valid[: settings.valid]
        tasks = [trace.task for trace in traces.kept]
        if settings.known:
            some, copies = tasks[: settings.known], settings.grpo.group_size // 2
            picked = partial(undecided, policy, world, some, correct=exact_match, copies=copies)
            tasks = stages.shared(partial(picked, seed=settings.seed))
        run = Practice(place, valid, resume=True, on_step=tell, show=console.print)
        chosen = replace(settings.grpo, seed=settings.grpo.seed + settings.seed)
        grpo(policy, world, tasks=tasks, goal=goal, settings=chosen, run=run)

    has_sft = "sft" in settings.stages
    plan = [("SFT", imitate, student)] if has_sft else []
    if "rl" in settings.stages:
        plan.append(("SFT+RL" if has_sft else "RL only", practice, student))
    if settings.rl_only and has_sft:
        fresh = new_student(settings.student, traces.kept, seed=settings.seed)
        plan.append(("RL only", practice, fresh))
    for name, learn, learner in plan:
        stages.learn(name, learner.policy, learn)
        stages.evaluate(name, learner.policy, world, test)
    return stages.report(f"SoG-R1 on {settings.benchmark}", graph)
