"""Drafts of questions from a model that is shown a path's documents. [GTA-RAG 3.4, Table 6]

The model is any policy, such as a `Server`. It answers with JSON; what cannot be read is told and
asked for again. The wording is ours, since that of Table 6 is not public.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path as FilePath
from typing import Any

from hopling.data.drafts import Draft, Drafts, Rejected
from hopling.data.paths import Path, distractors
from hopling.data.teach import played
from hopling.environment import Environment
from hopling.episode import Action, Answer, Ending, Episode, Malformed, Observation, Prompt, Task
from hopling.errors import WorldError
from hopling.graphs.documents import DocumentGraph
from hopling.rollout import Policy

_RULES = """You write questions that take several searches to answer.

You are given the documents of a chain, in order, and then others that are there to mislead.
Write one question whose answer stands in the last document that you use, and that nobody can answer
without the documents before it. Use two or more documents of the chain, in their order.

Then write how to find the answer: for each document that you use, a short thought and the search
query that finds it. A thought and a query may use only the question and the documents found by the
queries before it; they must not name what is found later. The question must not name the answer nor
the title of any document but the first. The answer is at most ten words, copied from its document.

Answer with one JSON object and nothing else:
{"question": "...", "answer": "...",
 "turns": [{"thought": "...", "document": 1, "query": "..."}], "last_thought": "..."}"""


@dataclass(frozen=True)
class Generator:
    """Asks a policy for a draft of each path, `max_tries` times where it cannot be read.

    What it said is appended to `record` as it comes, and what stands there is not asked again.
    """

    policy: Policy
    graph: DocumentGraph
    record: FilePath | None = None
    num_distractors: int = 4
    max_tries: int = 3
    seed: int = 0

    def __call__(self, paths: Sequence[Path]) -> Drafts:
        """Return a draft for each path, or why there is none.

        Raises WorldError when the model answered for none of them.
        """
        tasks = [Task(path.id, self._shown(path)) for path in paths]
        prompt = lambda task: Prompt(task.question, _RULES)  # noqa: E731
        world = Environment(prompt, (), DraftJson(), self.max_tries)
        episodes = played(self.policy, world, tasks, seed=self.seed, record=self.record)
        if episodes and all(episode.ending is Ending.UNSCORED for episode in episodes):
            raise WorldError(f"No question could be written: {episodes[0].reason}")
        return [_draft(path, episode) for path, episode in zip(paths, episodes, strict=True)]

    def _shown(self, path: Path) -> str:
        others = distractors(self.graph, path, num=self.num_distractors, seed=self.seed)
        shown = [self.graph.document(id) for id in (*path.documents, *others)]
        lines = [f"Document {n}: {d.title}\n{d.text}\n" for n, d in enumerate(shown, start=1)]
        last = len(path.documents)
        links = "; ".join(", ".join(link) for link in path.links)
        chain = f"The chain is documents 1 to {last}, joined by: {links}.\n"
        mislead = ["Documents to mislead, which you must not use:\n"] if others else []
        return "\n".join([chain, *lines[:last], *mislead, *lines[last:]])


@dataclass(frozen=True)
class DraftJson:
    """The dialect of drafts: a turn is an answer iff it holds one JSON object of a draft's form."""

    stops: tuple[str, ...] = ()

    def opening(self, prompt: Prompt, tools: Sequence[Mapping[str, Any]]) -> list[str]:
        """Return what the model is told."""
        return [f"{prompt.system}\n\n{prompt.user}\n"]

    def parse(self, text: str, *, cut: bool = False) -> tuple[Action, ...]:
        """Return the draft's JSON as an answer, or what is wrong with it."""
        row = _object(text)
        if row is None:
            return (Malformed("No JSON object with a question was found. Write one, complete."),)
        problem = _problem(row)
        return (Malformed(problem) if problem else Answer(json.dumps(row, ensure_ascii=False)),)

    def reply(self, observations: Sequence[Observation]) -> list[str]:
        """Return what was wrong."""
        return ["\n", *(observation.text for observation in observations), "\n"]

    def write(self, actions: Sequence[Action], thought: str = "") -> str:
        """Return a draft as it is read."""
        return "\n".join(action.text for action in actions if isinstance(action, Answer))

    def pieces(self, text: str) -> list[str]:
        """Return the turn, which has no markup."""
        return [text]


def _object(text: str) -> dict[str, Any] | None:
    """Return the last JSON object in a text that has a question."""
    found = None
    start, decoder = text.find("{"), json.JSONDecoder()
    while start >= 0:
        end = start + 1
        try:
            value, end = decoder.raw_decode(text, start)
        except ValueError:
            value = None
        if isinstance(value, dict) and "question" in value:
            found = value
        start = text.find("{", end)
    return found


def _problem(row: Mapping[str, Any]) -> str | None:
    turns = row.get("turns")
    for name in ("question", "answer"):
        if not isinstance(row.get(name), str) or not row[name].strip():
            return f"{name!r} must be text that is not empty."
    if not isinstance(turns, list) or not all(isinstance(turn, dict) for turn in turns):
        return "'turns' must be a list of objects with thought, document and query."
    if any(not isinstance(turn.get("query"), str) for turn in turns):
        return "Each turn needs a 'query' that is text."
    numbers = [turn.get("document") for turn in turns]
    if any(type(number) is not int or number < 1 for number in numbers):
        return "Each turn needs a 'document', which is the number of a document of the chain."
    if len(numbers) < 2 or numbers != sorted(set(numbers)):
        return "The turns must use two or more documents of the chain, in order, each once."
    return None


def _draft(path: Path, episode: Episode) -> Draft | Rejected:
    if episode.ending is Ending.UNSCORED:
        return Rejected(f"unscored: {episode.reason}")
    if episode.answer is None:
        return Rejected("the model wrote no draft that can be read")
    row = json.loads(episode.answer.text)
    turns = row["turns"]
    if turns[-1]["document"] > len(path.documents):
        return Rejected("the draft uses a document that is not of the chain")
    thoughts = [str(turn.get("thought") or "") for turn in turns]
    return Draft(
        path.id,
        row["question"].strip(),
        (row["answer"].strip(),),
        tuple(path.documents[turn["document"] - 1] for turn in turns),
        tuple(turn["query"].strip() for turn in turns),
        (*thoughts, str(row.get("last_thought") or "")),
    )
