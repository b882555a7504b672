"""Where a recipe's traces come from: the gold programs, compiled, or a teacher model."""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal, Protocol

from hopling.data.compile import Compiler, gold_path
from hopling.data.hops import gold_query
from hopling.data.teach import Traces, teach
from hopling.dialects import ToolCalls
from hopling.environment import Environment
from hopling.episode import Task
from hopling.policies.sampling import Sampling
from hopling.policies.server import Server
from hopling.recipes.prompts import compact
from hopling.recipes.prompts.teaching import teacher
from hopling.recipes.students import dialect_of
from hopling.rewards import all_calls_ran, exact_match
from hopling.rollout import Policy
from hopling.tools import OneHopSearch

Name = Literal["webqsp", "cwq", "grailqa", "metaqa", "movies"]
WALKED = ("movies", "metaqa")  # their gold programs are paths; the others' are SPARQL
TEACHER_TOKENS = 8192  # ours: a thinking model's turn


class Asked(Protocol):
    """The settings that decide who teaches."""

    @property
    def benchmark(self) -> Name: ...

    @property
    def student(self) -> str: ...

    @property
    def teacher(self) -> str: ...

    @property
    def teacher_url(self) -> str: ...

    @property
    def max_turns(self) -> int: ...


def taught(asked: Asked, search: OneHopSearch, tasks: Sequence[Task], *, record: Path) -> Traces:
    """Return the episodes that end in the exact answer and whose every call ran. [SoG-R1 4.2]

    Those that `record` holds are not played again.
    """
    graph, dialect = search.graph, dialect_of(asked.student)
    if asked.teacher:
        dialect = ToolCalls()  # what `Server` writes; replay() turns it into the student's
        sampling = Sampling(max_turn_tokens=TEACHER_TOKENS)
        policy: Policy = Server(asked.teacher_url, asked.teacher, sampling=sampling)
        prompt = teacher(graph, "metaqa" if asked.benchmark == "movies" else asked.benchmark)
    else:
        policy = Compiler(
            graph,
            dialect,
            tasks,
            gold_path if asked.benchmark in WALKED else gold_query,
            max_rows=search.max_rows,
            max_probe_rows=search.max_probe_rows,
        )
        prompt = compact(graph)
    world = Environment(prompt, (search,), dialect, asked.max_turns)
    return teach(policy, world, tasks, keep=[exact_match, all_calls_ran], record=record)
