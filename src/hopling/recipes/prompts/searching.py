"""What GTA-RAG's student is told [GTA-RAG 3.3]; the wording is ours."""

from hopling.episode import Prompt, Task

_RULES = """Answer the question. Think inside <think> and </think> before each action.

To look something up, write <search>QUERY</search>; the documents found are shown to you between
<info> and </info>. One search rarely finds everything: use what you read to ask for what is still
missing, until the documents that you found support the answer.

When you know the answer, write <answer>ANSWER</answer> with nothing but the answer, in a few words.

Question: """


def searching(task: Task) -> Prompt:
    """Return the prompt of training and inference."""
    return Prompt(_RULES + task.question)


def compact(task: Task) -> Prompt:
    """Return the prompt of a tiny model, which learns from traces how to act."""
    return Prompt(f"<question>{task.question}")
