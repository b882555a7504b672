"""Which tasks are practiced on: those that are solved sometimes."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from asking import tasks, world
from hopling.episode import Completion, View
from hopling.policies.sampling import Sampling
from hopling.rewards import exact_match
from hopling.training.selection import undecided


@dataclass
class Wavering:
    """Solves the first task always, the second every other time, others never."""

    sampling: Sampling = field(default_factory=lambda: Sampling(0.0, max_turn_tokens=7))
    seen: Counter[str] = field(default_factory=Counter)
    temperatures: set[float] = field(default_factory=set)
    encoder: None = None
    max_live: int = 4
    concurrent: bool = False

    def generate(self, views: Sequence[View], stops: Sequence[str]) -> list[Completion]:
        """Answer at once."""
        self.temperatures.add(self.sampling.temperature)
        return [Completion(f"={self._number(view.task_id)}") for view in views]

    def _number(self, task_id: str) -> str:
        self.seen[task_id] += 1
        first, second, *_ = tasks()
        gold = {task.id: task.answers[0] for task in tasks()}[task_id]
        sometimes = task_id == second.id and self.seen[task_id] % 2
        return gold if task_id == first.id or sometimes else "no number"


def test_only_tasks_that_are_solved_sometimes_are_kept() -> None:
    """Ours: a group of equal rewards has no advantage [BUGS B29], so it is not played again."""
    student = Wavering()
    kept = undecided(student, world(), tasks(), correct=exact_match, copies=4, seed=0)
    assert [task.id for task in kept] == [tasks()[1].id]
    assert set(student.seen.values()) == {4}


def test_the_student_samples_and_gets_its_sampling_back() -> None:
    """Ours: a greedy student would show no spread."""
    student = Wavering()
    undecided(student, world(), tasks(2), correct=exact_match, copies=2, seed=0)
    assert student.temperatures == {1.0}
    assert student.sampling == Sampling(0.0, max_turn_tokens=7)
