"""Where a recipe's traces come from: the gold programs, compiled, or a teacher model."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from zlib import crc32

from hopling.data.compile import Compiler, gold_path
from hopling.data.estimate import Estimate, Habits, estimate
from hopling.data.hops import gold_query
from hopling.data.teach import Traces, teach
from hopling.dialects import ToolCalls
from hopling.environment import Environment
from hopling.episode import Prompt, Task
from hopling.errors import SettingsError
from hopling.graphs import Graph
from hopling.policies.sampling import Sampling
from hopling.policies.server import Server
from hopling.policies.spending import Price
from hopling.recipes.prompts import compact
from hopling.recipes.prompts.teaching import teacher
from hopling.recipes.students import dialect_of
from hopling.rewards import all_calls_ran, exact_match
from hopling.rollout import Policy
from hopling.settings import setting
from hopling.tools import OneHopSearch

Name = Literal["webqsp", "cwq", "grailqa", "metaqa", "movies"]
WALKED = ("movies", "metaqa")  # their gold programs are paths; the others' are SPARQL
TEACHER_TOKENS = 8192  # ours: a thinking model's turn


@dataclass(frozen=True)
class Asked:
    """The settings that decide what is asked, on which graph, and who teaches."""

    benchmark: Name = setting("cwq", "paper 5.1", "webqsp, cwq, grailqa, metaqa or movies.")
    data: str = setting("", "ours", "Folder with the benchmark's files.")
    graph: str = setting("", "ours", "Folder of a hop index, or a SPARQL endpoint's URL.")
    student: str = setting("meta-llama/Llama-3.1-8B-Instruct", "paper 5.1", "Or smollm2, tiny.")
    teacher: str = setting("", "ours", "A served model's name; empty compiles the gold programs.")
    teacher_url: str = setting("http://localhost:8000/v1", "ours", "Where the teacher answers.")
    teacher_price_read: float | None = setting(None, "ours", "Price of a million tokens read.")
    teacher_price_written: float | None = setting(None, "ours", "And of a million written.")
    teacher_budget: float | None = setting(None, "ours", "Stop the teacher when this is spent.")
    hops: tuple[int, ...] = setting((), "ours", "Ask only questions of so many hops; () asks all.")
    pool: int | None = setting(None, "paper 5.5", "Train on this many questions.")
    max_turns: int = setting(15, "paper App. B", "Turns of an episode, the answer's included.")
    filtered: float = setting(0.0, "ours", "Share of compiled traces that name properties at once.")


def taught(asked: Asked, search: OneHopSearch, tasks: Sequence[Task], *, record: Path) -> Traces:
    """Return the episodes that end in the exact answer and whose every call ran. [SoG-R1 4.2]

    Those that `record` holds are not played again.
    """
    graph, dialect = search.graph, dialect_of(asked.student)
    if asked.teacher:
        dialect = ToolCalls()  # what `Server` writes; replay() turns it into the student's
        sampling = Sampling(max_turn_tokens=TEACHER_TOKENS)
        policy: Policy = Server(
            asked.teacher_url,
            asked.teacher,
            sampling=sampling,
            price=_price(asked),
            budget=asked.teacher_budget,
        )
        prompt = _prompt(asked, graph)
    else:
        policy = Compiler(
            graph,
            dialect,
            tasks,
            gold_path if asked.benchmark in WALKED else gold_query,
            max_rows=search.max_rows,
            max_probe_rows=search.max_probe_rows,
            filtered=frozenset(t.id for t in tasks if _place(t.id) < asked.filtered),
        )
        prompt = compact(graph)
    world = Environment(prompt, (search,), dialect, asked.max_turns)
    return teach(policy, world, tasks, keep=[exact_match, all_calls_ran], record=record)


def estimated(asked: Asked, graph: Graph, tasks: Sequence[Task]) -> Estimate:
    """Return what the teacher is expected to take for the tasks; it is not asked.

    The cost is 0 without prices. Raises SettingsError when no teacher is named.
    """
    if not asked.teacher:
        raise SettingsError(
            "teacher is ''; compiled traces cost nothing. Name one: --teacher NAME --estimate."
        )
    price = _price(asked) or Price(0.0, 0.0)
    return estimate(tasks, _prompt(asked, graph), price, habits=Habits())


def _place(id: str) -> float:
    """Return where an id falls in [0, 1), the same in every run and whatever the other tasks."""
    return crc32(id.encode()) / 2**32


def _prompt(asked: Asked, graph: Graph) -> Callable[[Task], Prompt]:
    return teacher(graph, "metaqa" if asked.benchmark == "movies" else asked.benchmark)


def _price(asked: Asked) -> Price | None:
    read, written = asked.teacher_price_read, asked.teacher_price_written
    if read is None and written is None:
        return None
    if read is None or written is None:
        raise SettingsError(
            f"teacher_price_read is {read} and teacher_price_written {written}; give both, per "
            "million tokens."
        )
    return Price(read, written)
