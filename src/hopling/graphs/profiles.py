"""Dumps as published: what is left out of Freebase and Wikidata, and what their ids become.

A profile works on the lines of N-Triples before they are parsed. A dropped line leaves an empty
one, so that a bad line keeps its number. What is no triple passes, to be named as a bad line.
"""

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from hopling.errors import SettingsError, nearest
from hopling.graphs.terms import FREEBASE_NAME, RDFS_LABEL

FREEBASE = "http://rdf.freebase.com/ns/"
WIKIDATA = "http://www.wikidata.org/entity/"
# ids of relations, or beginnings of IRIs, that question answering on Freebase leaves out
FREEBASE_DROPPED = (
    "common.", "freebase.", "type.", "kg.", "dataworld.", "user.", "pipeline.",
    "http://www.w3.org/", "http://rdf.freebase.com/key/",
)  # fmt: skip
_DIRECT = b"<http://www.wikidata.org/prop/direct/P"
_STATEMENTS = {
    b"<http://www.wikidata.org/prop/P": b"-statement",
    b"<http://www.wikidata.org/prop/statement/P": b"",
    b"<http://www.wikidata.org/prop/qualifier/P": b"",
}
_PREFIXED = re.compile(rb"(?<![^\s])ns:([^\s\"]+?)(?=[\s]|\.\s*$)")
_LANGUAGE = re.compile(rb"\"@([A-Za-z][A-Za-z0-9-]*)[ \t]*\.[ \t]*$")
_SPLIT = re.compile(rb"[ \t]+")


@dataclass(frozen=True)
class Profile:
    """What is kept of a dump; `dropped` counts the lines left out, by reason.

    `namespace` is what ids are cut by. `drop` are beginnings of relations, as ids or IRIs, `keep`
    those kept all the same. Literals with a language tag stay if it is one of `languages`.
    """

    namespace: str
    line: Callable[["Profile", bytes], bytes]
    languages: tuple[str, ...] = ("en",)
    drop: tuple[str, ...] = ()
    keep: tuple[str, ...] = ()
    statements: bool = False
    dropped: Counter[str] = field(default_factory=Counter)

    def kept(self, text: bytes) -> bytes:
        """Return whole lines as they are to be read."""
        line = self.line
        return b"".join([line(self, each) for each in text.splitlines(keepends=True)])

    def is_dropped(self, relation: str) -> bool:
        """Return whether a relation, an id or IRI, is left out; what is kept by name wins."""
        return relation.startswith(self.drop) and not relation.startswith(self.keep)

    def omit(self, reason: str) -> bytes:
        """Count a line that is left out, and return what stands for it."""
        self.dropped[reason] += 1
        return b"\n"


def profile_named(
    name: str,
    *,
    languages: tuple[str, ...] = (),
    drop: tuple[str, ...] = (),
    keep: tuple[str, ...] = (),
    statements: bool = False,
) -> Profile | None:
    """Return the profile of that name with these settings, None for "".

    Raises SettingsError for any other name.
    """
    if not name:
        return None
    if name == "freebase":
        always = ("type.object.name", FREEBASE_NAME)
        dropped = drop or FREEBASE_DROPPED
        return Profile(FREEBASE, _freebase, languages or ("en",), dropped, (*always, *keep))
    if name == "wikidata":
        spoken = languages or ("en", "mul")
        return Profile(WIKIDATA, _wikidata, spoken, drop, keep, statements)
    known = ("freebase", "wikidata")
    raise SettingsError(f"profile is {name!r}; write freebase or wikidata.{nearest(name, known)}")


def _freebase(profile: Profile, line: bytes) -> bytes:
    """Keep a line of facts or of an English name; `ns:m.0abc` is written out."""
    terms, quote, literal = line.partition(b'"')
    if b"ns:" in terms and not terms.lstrip().startswith((b"#", b"@")):
        line = _PREFIXED.sub(rb"<http://rdf.freebase.com/ns/\1>", terms) + quote + literal
    if line.startswith(b"@prefix"):
        return b"\n"
    relation = _relation(line)
    if relation is None:
        return line
    if profile.is_dropped(relation.removeprefix(FREEBASE)):
        return profile.omit("a relation left out")
    return line if _is_spoken(profile, line) else profile.omit("another language")


def _wikidata(profile: Profile, line: bytes) -> bytes:
    """Keep direct claims, names, and statements if wanted; every P of them is `entity/P`."""
    parts = _SPLIT.split(line, maxsplit=2)
    if len(parts) < 3 or not parts[1].startswith(b"<"):
        return line
    head, relation, rest = parts
    if relation == b"<" + RDFS_LABEL.encode() + b">":
        if not _is_spoken(profile, line):
            return profile.omit("another language")
        is_property = head.startswith(b"<" + WIKIDATA.encode() + b"P")
        if profile.statements and is_property:
            return (
                line.rstrip(b"\n") + b"\n" + b" ".join((head[:-1] + b"-statement>", relation, rest))
            )
        return line
    if relation.startswith(_DIRECT):
        number = relation.rsplit(b"/", 1)[1][:-1]
        return _claimed(profile, head, number, rest)
    for start, end in _STATEMENTS.items():
        if profile.statements and relation.startswith(start):
            number = relation.rsplit(b"/", 1)[1][:-1]
            return _claimed(profile, head, number + end, rest)
    return profile.omit("no claim and no label")


def _claimed(profile: Profile, head: bytes, relation: bytes, rest: bytes) -> bytes:
    if profile.is_dropped(relation.decode("utf-8", "replace")):
        return profile.omit("a relation left out")
    line = b" ".join((head, b"<" + WIKIDATA.encode() + relation + b">", rest))
    return line if _is_spoken(profile, line) else profile.omit("another language")


def _relation(line: bytes) -> str | None:
    parts = _SPLIT.split(line, maxsplit=2)
    if len(parts) < 3 or not parts[1].startswith(b"<"):
        return None
    return parts[1][1:-1].decode("utf-8", "replace")


def _is_spoken(profile: Profile, line: bytes) -> bool:
    match = _LANGUAGE.search(line.rstrip(b"\r\n"))
    if match is None:
        return True
    tag = match[1].decode().lower()
    return any(tag == one or tag.startswith(one + "-") for one in profile.languages)
