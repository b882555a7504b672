"""GTA-RAG: a model learns to search documents, rewarded for the evidence that it finds.

Questions are made from paths of a document graph and kept if they replay; GRPO on the trajectory
reward (tgr), then on exact match. Defaults are the paper's where it has them.

    hopling run gta_rag --graph FOLDER --generator-model MODEL --questions hotpotqa.jsonl
    hopling run gta_rag --scale small --without tgr,tv
"""

from dataclasses import dataclass, replace
from pathlib import Path

from rich.console import Console

from hopling.data.synthesis import hasty, replayed
from hopling.data.tasks import read_tasks
from hopling.environment import Environment
from hopling.episode import Task
from hopling.evaluation.evidence import coverage_table, with_coverage
from hopling.evaluation.report import Report
from hopling.graphs.documents import Retrieval
from hopling.policies.local import LocalModel
from hopling.recipes.ablations import Ablation, ablated
from hopling.recipes.corpora import documents
from hopling.recipes.searchers import dialect_of, prompt_of, searcher
from hopling.recipes.small_searches import SMALL, STAGE1, STAGE2
from hopling.recipes.stages import Learn, Stages, Tell
from hopling.recipes.trajectories import Served, material
from hopling.rewards.evidence import evidence_steps
from hopling.rewards.squad import squad_em
from hopling.settings import setting
from hopling.tools import Retrieve
from hopling.training.grpo import grpo
from hopling.training.practice import Goal, Run, Scorer
from hopling.training.settings import GRPO, SFT
from hopling.training.sft import sft

SCALES = {"full": {}, "small": SMALL}


@dataclass(frozen=True)
class Settings:
    """What is searched, by whom, and how it is learned."""

    graph: str = setting("", "ours", "Folder of a document graph; empty takes pages of films.")
    questions: str = setting("", "ours", "File of stage II's tasks; empty asks stage I's again.")
    test: str = setting("", "ours", "File of test tasks, played beside the held-out ones.")
    student: str = setting("Qwen/Qwen2.5-7B-Instruct", "paper 4.1", "Or smollm2, tiny.")
    generator: Served = setting(Served(), "ours")
    hops: tuple[int, ...] = setting((2, 3, 4), "paper Table 4", "Documents of a path, in turn.")
    trajectories: int = setting(2000, "paper 4.1", "Validated tasks to train on.")
    held_out: int = setting(1000, "paper 4.4", "Validated tasks to evaluate on.")
    max_paths: int = setting(200_000, "ours", "Paths drawn at most.")
    retrieval: Retrieval = setting(Retrieval(), "ours")
    max_docs: int = setting(6, "ours", "Documents that a search shows.")
    max_chars: int = setting(4000, "ours", "Characters that a search shows.")
    max_turns: int = setting(5, "ours", "Budget B: turns, the answer's included.")
    max_tokens: int | None = setting(16_384, "ours", "Tokens of an episode.")
    gain: float = setting(0.25, "paper Eq. 16", "What each new document of the evidence earns.")
    miss: float = setting(-0.10, "paper Eq. 16", "What a search without one earns.")
    invalid: float = setting(0.0, "ours", "What a turn earns that is neither search nor answer.")
    without: tuple[Ablation, ...] = setting((), "paper 4.3", "Beside it: tgr, tv, gr.")
    warm: int = setting(0, "ours", "SFT imitates so many replays first; 0 does without.")
    hasty: float = setting(0.0, "ours", "Share of those that answer after one search.")
    sft: SFT = setting(SFT(), "ours")
    stage1: GRPO = setting(STAGE1, "paper 4.1")
    stage2: GRPO = setting(STAGE2, "paper 4.1")
    seed: int = setting(0, "ours", "Added to the stages' seeds; fixes the start as well.")


def run(settings: Settings, folder: Path, console: Console) -> Report:
    """Train and evaluate the student, resuming what the folder holds, and return the report."""
    stages = Stages(folder, settings, console, seed=settings.seed)
    graph = documents(settings.graph, settings.retrieval)
    search = Retrieve(graph, settings.max_docs, settings.max_chars)
    prompt = prompt_of(settings.student)
    world = Environment(prompt, (search,), dialect_of(settings.student), settings.max_turns)

    # Paths become questions, kept if the deployed retriever replays them [3.4].
    made = material(settings, graph, world, folder / "drafts.jsonl")
    console.print(made.table(), markup=False)
    policy, dialect = searcher(settings.student, made.replays, seed=settings.seed)
    world = replace(world, dialect=dialect, max_tokens=settings.max_tokens)
    natural = tuple(read_tasks(Path(settings.questions))) if settings.questions else made.train
    test = read_tasks(Path(settings.test)) if settings.test else ()

    def judge(name: str, world: Environment) -> None:
        stages.evaluate(name, policy, world, made.held_out, judge=with_coverage)
        if test:
            stages.evaluate(f"{name}, test", policy, world, test, judge=with_coverage)

    # A warm start of ours, for a student too small to follow the prompt.
    def imitate(policy: LocalModel, place: Path, tell: Tell) -> None:
        shown = replayed(hasty(made.train[: settings.warm], settings.hasty), world, policy.encoder)
        seeded = replace(settings.sft, seed=settings.sft.seed + settings.seed)
        sft(policy, shown, settings=seeded, output_dir=place, on_progress=tell, resume=True)

    def practice(world: Environment, tasks: tuple[Task, ...], reward: Scorer, how: GRPO) -> Learn:
        def learn(policy: LocalModel, place: Path, tell: Tell) -> None:
            seeded = replace(how, seed=how.seed + settings.seed)
            run = Run(place, resume=True, on_step=tell, show=console.print)
            grpo(policy, world, tasks=tasks, goal=Goal(reward, squad_em), settings=seeded, run=run)

        return learn

    if settings.warm:
        stages.learn("Warm", policy, imitate)
    judge("Start", world)
    start = {name: tensor.clone() for name, tensor in policy.model.state_dict().items()}
    steps = evidence_steps(gain=settings.gain, miss=settings.miss, invalid=settings.invalid)
    for name in ("GTA-RAG", *settings.without):
        # every ablation changes one thing and begins from the same weights [4.3]
        policy.model.load_state_dict(start)
        world_, tasks, reward = ablated(name, world, made, steps)
        stages.learn(f"{name} I", policy, practice(world_, tasks, reward, settings.stage1))
        judge(f"{name} I", world_)
        stages.learn(f"{name} II", policy, practice(world_, natural, squad_em, settings.stage2))
        judge(f"{name} II", world_)
    console.print(coverage_table(stages.evaluations), markup=False, soft_wrap=True)
    return stages.report("GTA-RAG", graph.statistics)
