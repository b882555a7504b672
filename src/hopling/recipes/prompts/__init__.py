"""What SoG-R1's student is told [SoG-R1 App. A]; the wording is ours.

What its teacher model is told besides, with the gold program, is in `teaching`.
"""

from collections.abc import Callable, Mapping, Sequence
from importlib import resources

from hopling.dialects import chat
from hopling.dialects.chat import ChatFormat
from hopling.episode import Prompt, Task
from hopling.graphs import Graph


def prompt_for(form: ChatFormat, graph: Graph) -> Callable[[Task], Prompt]:
    """Return the prompt of a student that was taught in this chat format."""
    return compact(graph) if form is chat.compact else student(graph)


def student(graph: Graph) -> Callable[[Task], Prompt]:
    """Return the prompt of training and inference: the rules, the question and its entities."""
    system = file("student.md")
    return lambda task: Prompt(user=question(task, graph), system=system)


def compact(graph: Graph) -> Callable[[Task], Prompt]:
    """Return the prompt of a tiny model: the question, then each entity as "| id | name |"."""

    def prompt(task: Task) -> Prompt:
        lines = [f"| {node} | {name} |" for node, name in _named(task.start, graph).items()]
        return Prompt(user="\n".join([task.question, *lines]))

    return prompt


def question(task: Task, graph: Graph) -> str:
    """Return the question and the dictionary of its entities, as student and teacher read it."""
    return f"Question: {task.question}\n\n{dictionary(_named(task.start, graph))}"


def dictionary(names: Mapping[str, str]) -> str:
    """Return the entities, one a line, with their names."""
    lines = [f"- {node}: {name}" for node, name in names.items()]
    return "\n".join(["Entities:", *lines])


def _named(nodes: Sequence[str], graph: Graph) -> dict[str, str]:
    labels = graph.labels(list(nodes))
    return {node: label or node for node, label in zip(nodes, labels, strict=True)}


def file(name: str) -> str:
    """Return the text of a file that lies beside this one."""
    return (resources.files(__name__) / name).read_text(encoding="utf-8").rstrip("\n")
