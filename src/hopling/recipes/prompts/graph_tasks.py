"""What a walker is told of a task whose question holds its own choices: edges, stances, questions.

[CNY App. D.4, App. D.5]; the wording is ours. `prompts.walking` tells tasks of nodes.
"""

from collections.abc import Callable

from hopling.episode import Prompt, Task
from hopling.tools.walk import Walk, previews

HOW = """\
Think between <think> and </think>, then write one action. Read the full text of a node that is \
listed with <walk>ID</walk>, for example <walk>{example}</walk>. When you know the answer, end \
with <answer>ANSWER</answer>: one of the choices where there are some. You have {turns} turns."""


def question_and_previews(walk: Walk, *, max_turns: int) -> Callable[[Task], Prompt]:
    """Return the prompt of a task: its question, the initial frontier's previews, how to act."""

    def prompt(task: Task) -> Prompt:
        around = walk.first(task)
        how = HOW.format(example=around[0] if around else "17", turns=max_turns)
        lines = ["Neighbors:", *previews(walk.graph, around)] if around else []
        return Prompt("\n".join([task.question, *lines, how]))

    return prompt
