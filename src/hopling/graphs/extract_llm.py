"""Reads entities and triples out of documents with a language model: names first, then facts.

The model is any function from chat messages to text, so a server, a local model or a test's list
of replies will do. A reply counts only when it is the JSON that was asked for: all else is asked
for again, and then the document fails, to be tried by the next run. [BUGS B16, B17]
"""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from typing import NamedTuple

from hopling.errors import WorldError
from hopling.graphs.base import Document
from hopling.graphs.openie import Extraction, Triple, tidied, tidied_triples, tidy

Messages = Sequence[Mapping[str, str]]
Complete = Callable[[Messages], str]

_MAX_CHARACTERS = 8000  # of a document that one request shows
_TOKENS_PER_CHARACTER = 0.3  # of English text and JSON, for the estimate alone
_NAMES_SHARE, _FACTS_SHARE = 0.35, 0.9  # of a reply, in characters of the passage

_ENTITIES = """\
List the named entities of the passage: people, organisations, places, works, events, dates and \
other names, spelled as in the passage. Give each a kind: person, organisation, place, work, \
event, date or other. Reply with JSON alone, as in this example.

Title: Radio City
Radio City is India's first private FM radio station and was started on 3 July 2001.

{"entities": [{"name": "Radio City", "kind": "organisation"}, {"name": "India", "kind": "place"}, \
{"name": "3 July 2001", "kind": "date"}]}"""

_TRIPLES = """\
List the facts that the passage states as triples of subject, relation and object. Relations are \
short verb phrases. Write names in full instead of pronouns. Each triple has at least one of the \
named entities, and each named entity is in a triple where the passage allows it. Reply with JSON \
alone, as in this example.

Title: Radio City
Radio City is India's first private FM radio station and was started on 3 July 2001.

{"named_entities": ["Radio City", "India", "3 July 2001"]}

{"triples": [["Radio City", "is located in", "India"], \
["Radio City", "is", "private FM radio station"], \
["Radio City", "was started on", "3 July 2001"]]}"""


class Estimate(NamedTuple):
    """What an extraction would ask of a model, if every reply is good at once."""

    num_documents: int
    num_requests: int
    prompt_tokens: int
    completion_tokens: int


@dataclass(frozen=True)
class LlmExtractor:
    """Asks a model twice for each document, `tries` times at most for each reply.

    `model` names the one that answers; together with the prompts it is what results depend on.
    After `max_silent` documents in a row without an answer, `extract` raises WorldError.
    """

    complete: Complete
    model: str
    tries: int = 3
    concurrency: int = 8
    max_silent: int = 5
    name: str = field(init=False)

    def __post_init__(self) -> None:
        prompts = hashlib.sha256((_ENTITIES + _TRIPLES).encode()).hexdigest()[:6]
        object.__setattr__(self, "name", f"llm {self.model} {prompts}")

    def extract(self, documents: Sequence[Document]) -> Iterator[Extraction]:
        """Yield each document's extraction as soon as it is there."""
        waiting, silent = iter(documents), 0
        with ThreadPoolExecutor(self.concurrency) as pool:
            asked: dict[Future[Extraction], Document] = {}
            try:
                while True:
                    while len(asked) < self.concurrency and (new := next(waiting, None)):
                        asked[pool.submit(self._read, new)] = new
                    if not asked:
                        return
                    for future in wait(asked, return_when=FIRST_COMPLETED).done:
                        document = asked.pop(future)
                        extraction, silent = self._outcome(future, document, silent)
                        yield extraction
            finally:
                for future in asked:
                    future.cancel()

    def _outcome(
        self, future: Future[Extraction], document: Document, silent: int
    ) -> tuple[Extraction, int]:
        """Return an extraction, and how many documents in a row have had no answer."""
        try:
            return future.result(), 0
        except WorldError as error:
            if silent + 1 >= self.max_silent:
                raise WorldError(
                    f"{silent + 1} documents in a row had no answer; the last one: {error} What "
                    "was read is kept; the same command goes on from there."
                ) from error
            return Extraction(document.id, problem=str(error)), silent + 1

    def _read(self, document: Document) -> Extraction:
        names: list[str] = []
        triples: list[Triple] = []
        kinds: dict[str, str] = {}
        for passage in parts(document):
            entities, problem = self._asked(_ENTITIES, passage, "entities")
            known = dict(filter(None, map(_entity, entities)))
            if not problem:
                listed = json.dumps({"named_entities": list(known)}, ensure_ascii=False)
                facts, problem = self._asked(_TRIPLES, f"{passage}\n\n{listed}", "triples")
            if problem:
                return Extraction(document.id, problem=problem)
            names.extend(known)
            triples.extend(tidied_triples(facts))
            kinds |= {name: kind for name, kind in known.items() if kind and name not in kinds}
        return Extraction(document.id, tidied(names), tidied_triples(triples), kinds)

    def _asked(self, system: str, user: str, key: str) -> tuple[list[object], str]:
        """Return the list that a good reply holds under a key, or what is wrong with the last."""
        problem = ""
        for _ in range(self.tries):
            mend = f"\n\n{problem}. Reply with JSON alone." if problem else ""
            told = [
                {"role": "system", "content": system},
                {"role": "user", "content": f"{user}{mend}"},
            ]
            found, problem = _listed(self.complete(told), key)
            if not problem:
                return found, ""
        return [], f"{problem} ({self.tries} tries)"


def parts(document: Document) -> list[str]:
    """Return what requests show of a document: one piece, or several of a huge one."""
    text, found = document.text.strip(), []
    while len(text) > _MAX_CHARACTERS:
        cut = max(text.rfind("\n", 1, _MAX_CHARACTERS), text.rfind(". ", 1, _MAX_CHARACTERS) + 1)
        cut = cut if cut > 0 else _MAX_CHARACTERS
        found.append(text[:cut].strip())
        text = text[cut:].strip()
    title = f"Title: {document.title}\n" if document.title else ""
    return [f"{title}{part}" for part in [*found, text] if part]


def estimate(documents: Sequence[Document]) -> Estimate:
    """Return about how many requests and tokens an extraction of these documents would take."""
    told = len(_ENTITIES) + len(_TRIPLES)
    passages = [len(part) for document in documents for part in parts(document)]
    size = sum(passages)
    read = told * len(passages) + 2 * size + _NAMES_SHARE * size
    written = (_NAMES_SHARE + _FACTS_SHARE) * size
    return Estimate(
        len(documents),
        2 * len(passages),
        round(read * _TOKENS_PER_CHARACTER),
        round(written * _TOKENS_PER_CHARACTER),
    )


def _entity(item: object) -> tuple[str, str] | None:
    """Return name and kind of one entity; some models list names alone."""
    if isinstance(item, Mapping):
        name, kind = tidy(item.get("name")), tidy(item.get("kind")).casefold()
        return (name, "" if kind == "other" else kind) if name else None
    return (tidy(item), "") if tidy(item) else None


def _listed(reply: str, key: str) -> tuple[list[object], str]:
    """Return the list under a key of the first JSON object in a reply, or what is wrong."""
    start = reply.find("{", reply.rfind("</think>") + 1)
    try:
        value, _ = json.JSONDecoder().raw_decode(reply, max(start, 0))
    except ValueError:
        return [], f"The last reply was {reply[:80]!r}, which is not JSON"
    if not isinstance(value, dict) or not isinstance(value.get(key), list):
        return [], f"The last reply was {reply[:80]!r}, which has no list {key!r}"
    return value[key], ""
