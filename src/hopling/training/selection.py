"""Which tasks are worth practicing on: those that the student solves sometimes."""

from collections.abc import Sequence
from dataclasses import replace

from hopling.environment import Environment
from hopling.episode import Ending, Task
from hopling.rollout import rollout
from hopling.training.practice import Scorer, Student


def undecided(
    student: Student,
    environment: Environment,
    tasks: Sequence[Task],
    *,
    correct: Scorer,
    copies: int,
    seed: int,
) -> list[Task]:
    """Return the tasks of which some of `copies` sampled episodes are correct and some are not.

    A group of equal rewards teaches nothing; where most groups would be flat, choosing beforehand
    saves their rollouts. Unscored episodes do not count. [ours]
    """
    before = student.sampling
    student.sampling = replace(before, temperature=1.0, top_p=1.0, top_k=0)
    try:
        played = rollout(student, environment, [t for t in tasks for _ in range(copies)], seed=seed)
    finally:
        student.sampling = before
    found: dict[str, set[bool]] = {}
    for episode in played:
        if episode.ending is not Ending.UNSCORED:
            found.setdefault(episode.task.id, set()).add(correct(episode) > 0)
    return [task for task in tasks if len(found.get(task.id, ())) == 2]
