"""What CNY's student is told of a node: itself, previews of its neighbors, and how to act.

[CNY App. D.3-D.5]; the wording is ours. A control shows something else and forbids the walk.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Literal

from hopling.episode import Prompt, Task
from hopling.tools.walk import Readable, Walk, previews

# what is shown of the neighborhood; only "walk" may walk [CNY 5.3, App. F.2]
View = Literal["walk", "nothing", "previews", "one text", "all texts"]
CONTROLS: tuple[View, ...] = ("nothing", "previews", "one text", "all texts")
_ASK = {"walk": "walk", "nothing": "answer"}

HOW = """\
Think between <think> and </think>, then write one action. Read the full text of a node that is \
listed with <walk>ID</walk>, for example <walk>{example}</walk>. When you know the answer, end \
with <answer>ANSWER</answer>, for example <answer>{label}</answer>. You have {turns} turns."""
OPEN = "Answer the question with one name, as the nodes' texts write it."
NOW = """\
You cannot walk. Answer at once with <answer>ANSWER</answer>, for example \
<answer>{label}</answer>."""


@dataclass(frozen=True)
class Telling:
    """How a task is put: which classes there are, and whether in words or as a tiny model reads.

    Without classes the question holds its own choices, as those about edges do, or it is open and
    has none. [CNY App. D.4, 5.4]
    """

    classes: tuple[str, ...]
    max_turns: int
    compact: bool = False
    is_open: bool = False

    def prompt(self, walk: Walk, view: View) -> Callable[[Task], Prompt]:
        """Return the prompt that shows this much of a node's neighborhood."""

        def prompt(task: Task) -> Prompt:
            around = walk.first(task)
            lines = _around(walk.graph, around, view, task)
            if self.compact:
                ask = _ASK.get(view, "answer")
                return Prompt("\n".join([task.question, " ".join(self.classes), *lines, ask]))
            how = HOW if view == "walk" else NOW
            told = how.format(
                example=around[0] if around else "17",
                label=self.classes[0] if self.classes else "Oslo" if self.is_open else "0",
                turns=self.max_turns,
            )
            asked = [
                "Which class does the target belong to?",
                f"Classes: {', '.join(self.classes)}",
            ]
            if not self.classes:
                asked = [OPEN if self.is_open else "Choose one of the numbered answers."]
            parts = [
                *asked,
                f"Target: {task.question}",
                *(["Neighbors:", *lines] if lines else []),
                told,
            ]
            return Prompt("\n".join(parts))

        return prompt


def _around(graph: Readable, around: Sequence[str], view: View, task: Task) -> list[str]:
    if view == "nothing":
        return []
    if view in ("walk", "previews"):
        return previews(graph, around)
    chosen = list(around)
    if view == "one text" and chosen:
        chosen = [Random(task.id).choice(chosen)]
    return [f"[{node}] {graph.text(node)}" for node in chosen]
