"""A world of one's own: who advised whom among mathematicians, searched one ancestor at a time.

A tool is any callable with a name and a schema; a graph is whatever it reads. Nothing is
registered. The second call is a slip, to show what a policy reads then. It prints:

    advisors(Noether)   Gordan
    advisors(Gordon)    No mathematician named 'Gordon'. Did you mean 'Gordan'?
    advisors(Gordan)    Jacobi
    advisors(Jacobi)    Dirksen
    answer              {Dirksen}
    reward 0.8
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hopling import Answer, Call, Environment, Episode, Observation, Task, ToolError, rollout
from hopling.dialects import ToolCalls, braced
from hopling.errors import nearest
from hopling.policies.scripted import Scripted
from hopling.rewards import exact_match, num_calls
from hopling.testing import check_tool

ADVISORS = {"Noether": ["Gordan"], "Gordan": ["Jacobi"], "Jacobi": ["Dirksen"], "Dirksen": []}


@dataclass(frozen=True)
class Advisors:
    """Lists the advisors of one mathematician."""

    graph: Mapping[str, Sequence[str]]
    name: str = "advisors"

    @property
    def schema(self) -> Mapping[str, Any]:
        """The tool's description in OpenAI's function form."""
        return {
            "name": self.name,
            "description": "List who advised a mathematician.",
            "parameters": {
                "type": "object",
                "properties": {"person": {"type": "string"}},
                "required": ["person"],
            },
        }

    def __call__(self, episode: Episode, /, person: object = None, **others: object) -> Observation:
        """Return the advisors; raises ToolError, which the policy reads, for anything else."""
        if others or not isinstance(person, str):
            raise ToolError('Give one argument, "person": a mathematician\'s name.')
        if person not in self.graph:
            raise ToolError(f"No mathematician named {person!r}.{nearest(person, self.graph)}")
        found = tuple(self.graph[person])
        return Observation(", ".join(found) or "none recorded", nodes=found, names=found)


def reward(episode: Episode) -> float:
    """Return 1.0 for a right answer, less a twentieth for each call."""
    return exact_match(episode) * (1 - 0.05 * num_calls(episode))


advisors = Advisors(ADVISORS)
world = Environment(lambda task: task.question, (advisors,), ToolCalls(), max_turns=6)
task = Task("t1", "Who advised the advisor of Noether's advisor?", ("Noether",), ("Dirksen",))

if __name__ == "__main__":
    check_tool(advisors, {"person": "Noether"})  # is it described, repeatable, without state?
    people = ["Noether", "Gordon", "Gordan", "Jacobi"]
    script = [*(Call(advisors.name, {"person": person}) for person in people)]
    turns = [world.dialect.write([action]) for action in (*script, Answer(braced(["Dirksen"])))]
    (episode,) = rollout(Scripted({task.id: turns}), world, [task])
    for turn in episode.turns:
        for call, seen in zip(turn.calls, turn.observations, strict=True):
            print(f"{call.tool}({call.arguments['person']})".ljust(19), seen.text)
    print("answer".ljust(19), episode.answer.text if episode.answer else episode.ending)
    print("reward", round(reward(episode), 2))
