"""Search of documents in words; what comes back is text to read and documents by id. [GTA-RAG 3.3]

A document's text is shown as it is, tags and all: no action, reward or control token is ever read
from an observation. [BUGS B20, B21]
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hopling.episode import Episode, Observation
from hopling.errors import SettingsError, ToolError
from hopling.graphs.base import Document, Retriever
from hopling.tools.tables import shortened

CUT = " ..."


@dataclass(frozen=True)
class Retrieve:
    """`search`: the documents that the retriever finds, best first, `Doc 1(Title: ...) text`.

    At most `max_docs` are shown, in about `max_chars` characters: a document that is too long for
    its share of them is cut, and shorter ones leave their rest to those after them.
    """

    retriever: Retriever
    max_docs: int = 6  # [ours] K_g = K_d = 3
    max_chars: int = 4000  # [ours] about 1,000 tokens
    name: str = "search"

    def __post_init__(self) -> None:
        if self.max_docs < 1 or self.max_chars < 1:
            raise SettingsError(
                f"max_docs is {self.max_docs} and max_chars {self.max_chars}; a search that may "
                "show nothing teaches nothing, so both must be at least 1."
            )

    @property
    def schema(self) -> Mapping[str, Any]:
        """The tool's description in OpenAI's function form."""
        query = {"type": "string", "description": "What to look for, in words."}
        return {
            "name": self.name,
            "description": "Find the documents that fit a query.",
            "parameters": {
                "type": "object",
                "properties": {"query": query},
                "required": ["query"],
            },
        }

    def __call__(self, episode: Episode, /, query: object = None, **others: object) -> Observation:
        """Return the documents that fit the query; none is no error.

        Raises ToolError for a query without a letter or digit, and for another argument.
        """
        (found,) = self.many([episode], [{"query": query, **others}])
        if isinstance(found, ToolError):
            raise found
        return found

    def many(
        self, episodes: Sequence[Episode], arguments: Sequence[Mapping[str, Any]], /
    ) -> list[Observation | ToolError]:
        """Return what each episode's call gives; the retriever is asked once for all of them."""
        problems = [_problem(given) for given in arguments]
        queries = [
            " ".join(given["query"].split())
            for given, problem in zip(arguments, problems, strict=True)
            if problem is None
        ]
        found = iter(self.retriever.retrieve(queries) if queries else [])
        return [
            problem or self._observation(next(found), episode, given["query"])
            for episode, given, problem in zip(episodes, arguments, problems, strict=True)
        ]

    def _observation(
        self, documents: Sequence[Document], episode: Episode, query: str
    ) -> Observation:
        shown = list(documents[: self.max_docs])
        lines = ["You asked this before."] if self._repeats(episode, query) else []
        if not shown:
            lines.append("No document fits this query. Ask for less, or in other words.")
        left = self.max_chars
        for place, document in enumerate(shown):
            title = shortened(" ".join(document.title.split()), 200)
            head = f"Doc {place + 1}(Title: {title}) "
            text = _cut(document.text.strip(), max(0, left // (len(shown) - place) - len(head)))
            lines.append(head + text)
            left -= len(head) + len(text)
        nodes = tuple(document.id for document in shown)
        names = tuple(document.title for document in shown)
        return Observation("\n".join(lines), nodes, names)

    def _repeats(self, episode: Episode, query: str) -> bool:
        asked = [call.arguments for turn in episode.turns for call in turn.calls]
        return _key(query) in {_key(before.get("query")) for before in asked}


def _problem(given: Mapping[str, Any]) -> ToolError | None:
    others = [name for name in given if name != "query"]
    if others:
        return ToolError(f"There is no argument {others[0]!r}; search takes a query only.")
    query = given.get("query")
    if not isinstance(query, str):
        return ToolError(f"query must be text, not {query!r}.")
    if not any(character.isalnum() for character in query):
        return ToolError(f"The query {query!r} has no words. Write what to look for.")
    return None


def _key(query: object) -> str:
    return " ".join(str(query).casefold().split())


def _cut(text: str, size: int) -> str:
    """Return the text, or as many of its whole words as fit, with a mark.

    >>> _cut("one two three", 11), _cut("one two three", 13)
    ('one two ...', 'one two three')
    """
    if len(text) <= size:
        return text
    end = max(0, size - len(CUT))
    kept = text[:end]
    if not text[end].isspace() and " " in kept:
        kept = kept[: kept.rindex(" ")]
    return kept.rstrip() + CUT
