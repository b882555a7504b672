"""A small world: each task's answer is what the one tool finds, and a policy that may be wrong."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from hopling.dialects.tool_calls import ToolCalls, braced
from hopling.environment import Environment
from hopling.episode import Answer, Call, Episode, Observation, Prompt, Task, View
from hopling.errors import ToolError, WorldError
from hopling.policies.scripted import Scripted

DIALECT = ToolCalls()


@dataclass
class Find:
    """Finds a name; `down` says which tasks it does not answer for."""

    down: set[str]
    name: str = "find"
    schema = {  # noqa: RUF012
        "type": "function",
        "function": {"name": "find", "description": "Find.", "parameters": {"type": "object"}},
    }

    def __call__(self, episode: Episode, what: str = "") -> Observation:
        if episode.task.id in self.down:
            raise WorldError("the graph did not answer within 30 s (3 tries).")
        if not what:
            raise ToolError("what is empty; say what to find.")
        return Observation(f"Ann of {what}", names=("Ann",))


@dataclass
class World:
    """An environment, tasks for it and policies that answer right where they are told to."""

    find: Find
    environment: Environment

    def tasks(self, num: int, **hints: Any) -> list[Task]:
        """Return tasks t0, t1, ... whose answer is Ann."""
        return [Task(f"t{n}", f"Who is at {n}?", answers=("Ann",), hints=hints) for n in range(num)]

    def policy(self, right: Callable[[View], bool], *, num_calls: int = 1) -> Scripted:
        """Return a policy that calls and then answers Ann or, where it is not right, Bob."""

        def write(view: View) -> str:
            if len(view.turns) < num_calls:
                return DIALECT.write([Call("find", {"what": view.task_id})])
            return DIALECT.write([Answer(braced(["Ann" if right(view) else "Bob"]))])

        return Scripted.from_function(write)


@pytest.fixture
def world() -> World:
    find = Find(down=set())
    environment = Environment(lambda task: Prompt(task.question), (find,), DIALECT, max_turns=4)
    return World(find, environment)
