"""Drafts of questions over a path of documents, and the rules that a draft has to keep.

[GTA-RAG 3.4] A draft has a question, its answer, and one query for each document in turn. The paper
names "rule-based validation" and gives no rules; all of `broken_rule` is ours.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from hopling.episode import Task
from hopling.graphs.base import Document
from hopling.rewards.squad import squad_normalized

MAX_ANSWER_WORDS = 10
_ASKING = {"who", "whom", "whose", "what", "which", "when", "where", "why", "how", "is", "was"}


@dataclass(frozen=True)
class Draft:
    """A question with its way to the answer; `queries[t]` is to find `documents[t]`.

    `thoughts` are one for each query and one for the answer, or none at all.
    """

    path_id: str
    question: str
    answers: tuple[str, ...]
    documents: tuple[str, ...]
    queries: tuple[str, ...]
    thoughts: tuple[str, ...] = ()

    @property
    def task(self) -> Task:
        """The question as it is asked; queries and thoughts are hints, which no policy sees."""
        hints = {
            "hops": len(self.documents),
            "queries": list(self.queries),
            "thoughts": list(self.thoughts),
        }
        return Task(
            self.path_id,
            self.question,
            answers=self.answers,
            evidence=self.documents,
            hints=hints,
        )


@dataclass(frozen=True)
class Rejected:
    """A path of which no question came, and why."""

    reason: str


Drafts = Sequence[Draft | Rejected]


def broken_rule(draft: Draft, document: Callable[[str], Document]) -> str | None:
    """Return the rule that a draft breaks, None when it keeps them all.

    No name may come before a document that tells it was found: not the answer, not the titles of
    later documents, nor any name in a query that neither question nor earlier documents hold.
    """
    found = [document(id) for id in draft.documents]
    texts = [f"{one.title}\n{one.text}" for one in found]
    return next(_broken(draft, texts, [one.title for one in found]), None)


def _broken(draft: Draft, texts: Sequence[str], titles: Sequence[str]) -> Iterator[str]:
    question, answers, queries = draft.question, draft.answers, draft.queries
    if len(texts) < 2:
        yield "fewer than two documents"
    if len(set(draft.documents)) < len(texts):
        yield "a document comes twice"
    if len(queries) != len(texts):
        yield "not one query for each document"
    if not all(map(squad_normalized, [*queries, question])):
        yield "the question or a query is empty"
    if len(set(map(squad_normalized, queries))) < len(queries):
        yield "a query comes twice"
    if not any(map(squad_normalized, answers)):
        yield "the answer is empty"
    if len(answers[0].split()) > MAX_ANSWER_WORDS:
        yield "the answer is long"
    if _any_holds([question], answers):
        yield "the answer is in the question"
    if not _any_holds(texts[-1:], answers):
        yield "the last document does not tell the answer"
    if _any_holds(texts[:-1], answers):
        yield "an earlier document tells the answer"
    if _any_holds(queries, answers):
        yield "the answer is in a query"
    if _any_holds([question], titles[1:]):
        yield "the question names a later document"
    for turn, query in enumerate(queries):
        if _any_holds([query], titles[turn + 1 :]):
            yield "a query names a later document"
        if not _is_known(query, [question, *texts[:turn]]):
            yield "a query names what was not found yet"
    for turn, thought in enumerate(draft.thoughts[: len(texts)]):
        if _any_holds([thought], [*answers, *titles[turn + 1 :]]):
            yield "a thought tells what was not found yet"


def holds(text: str, name: str) -> bool:
    """Return whether a text has a name in it, as whole words, by SQuAD's normalization.

    Scripts without case, which may be without spaces too, need no word's border.

    >>> holds("Born in Ann Arbor.", "the Ann"), holds("Annual", "Ann"), holds("", "")
    (True, False, False)
    """
    sought, text = squad_normalized(name), squad_normalized(text)
    if not sought:
        return False
    start = text.find(sought)
    while start >= 0:
        before, after = text[:start][-1:], text[start + len(sought) :][:1]
        if not (_joins(before, sought[0]) or _joins(sought[-1], after)):
            return True
        start = text.find(sought, start + 1)
    return False


def _joins(one: str, other: str) -> bool:
    """Return whether two characters belong to one word of a script with case, or to a number."""
    return all(c.isdigit() or c.lower() != c.upper() for c in (one, other)) and bool(one and other)


def _any_holds(texts: Sequence[str], names: Sequence[str]) -> bool:
    return any(holds(text, name) for text in texts for name in names)


def _is_known(query: str, told: Sequence[str]) -> bool:
    """Return whether every name and number of a query stands in what was told before."""
    known = " ".join(told)
    words = [word.removesuffix("'s") for word in query.split()]
    names = [word for word in words if any(c.isupper() or c.isdigit() for c in word)]
    sought = set(map(squad_normalized, names)) - _ASKING - {""}
    return all(holds(known, name) for name in sought)
