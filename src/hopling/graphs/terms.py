"""Writes and reads RDF terms: the one way in which an id, a literal or a tag reaches a query.

Every IRI, literal and language tag is validated before it is written, so that nothing a policy
wrote can become query text. Escapes of N-Triples are decoded once, when a file is read.
"""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import pyoxigraph as ox

from hopling.errors import SettingsError, ToolError

XSD_STRING = "http://www.w3.org/2001/XMLSchema#string"
RDFS_LABEL = "http://www.w3.org/2000/01/rdf-schema#label"
FREEBASE_NAME = "http://rdf.freebase.com/ns/type.object.name"
LABEL_PREDICATES = (RDFS_LABEL, FREEBASE_NAME)

_BAD = r'\x00-\x20<>"{}|^`\\'
_IRI = re.compile(rf"[A-Za-z][A-Za-z0-9+.\-]*:[^{_BAD}]*")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*:")
_LANGUAGE = re.compile(r"[A-Za-z]{1,8}(?:-[A-Za-z0-9]{1,8})*")
_PREFIX = re.compile(r"(?:ns|fb|wd|wdt|dbr|dbo):")
_ESCAPE = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|(.)|$)", re.DOTALL)
_CHARACTERS = {
    "t": "\t", "b": "\b", "n": "\n", "r": "\r", "f": "\f", '"': '"', "'": "'", "\\": "\\"
}  # fmt: skip
_WRITTEN = str.maketrans(
    {"\\": r"\\", '"': r"\"", "\n": r"\n", "\r": r"\r", "\t": r"\t", "\b": r"\b", "\f": r"\f"}
)

# IRIs, strings, comments, variables and escaped characters, in which SERVICE is only text
_QUERY_TEXT = re.compile(
    r"""<[^<>"{}|^`\\\s]*>"""
    r"""|\"\"\"(?:[^"\\]|\\.|"(?!""))*\"\"\"|'''(?:[^'\\]|\\.|'(?!''))*'''"""
    r"""|"(?:[^"\\\n\r]|\\.)*"|'(?:[^'\\\n\r]|\\.)*'|\#[^\n\r]*|[?$]\w+|\\[^uU]""",
    re.DOTALL,
)
_SERVICE = re.compile(r"(?<![:_])SERVICE|\\[uU]", re.IGNORECASE)

_NODE = r"(?:<([^<>\"{}|^`\x00-\x20]*)>|_:([\w:](?:[\w.\-:]*[\w\-:])?))"
_TRIPLE = re.compile(
    rf"[ \t]*{_NODE}[ \t]*<([^<>\"{{}}|^`\x00-\x20]*)>[ \t]*"
    rf"(?:{_NODE}|\"((?:[^\"\\\n\r]|\\.)*)\""
    r"(?:@([A-Za-z]+(?:-[A-Za-z0-9]+)*)|\^\^<([^<>\"{}|^`\x00-\x20]*)>)?)"
    r"[ \t]*\.[ \t]*(?:#.*)?"
)


class Term(NamedTuple):
    """One value of a query's result: a node's id, or a literal with its datatype or language."""

    value: str
    literal: bool = False
    datatype: str = ""
    language: str = ""


class Triple(NamedTuple):
    """One line of N-Triples; `suffix` is None for a node, else "", "@en" or "^^datatype"."""

    head: str
    relation: str
    tail: str
    suffix: str | None = None


@dataclass(frozen=True)
class Namespace:
    """Turns IRIs that begin with `iri` into short ids and back; other IRIs stay as they are.

    >>> freebase = Namespace("http://rdf.freebase.com/ns/")
    >>> freebase.shorten("http://rdf.freebase.com/ns/m.0abc")
    'm.0abc'
    >>> freebase.expand("m.0abc")
    'http://rdf.freebase.com/ns/m.0abc'
    """

    iri: str = ""

    def shorten(self, iri: str) -> str:
        """Return the id of an IRI; a rest that would itself read as an IRI is not cut off."""
        if not self.iri or not iri.startswith(self.iri):
            return iri
        rest = iri[len(self.iri) :]
        return rest if rest and not _SCHEME.match(rest) else iri

    def expand(self, node: str) -> str:
        """Return the IRI of an id."""
        return node if _SCHEME.match(node) else self.iri + node

    def is_id(self, text: str) -> bool:
        """Return whether the text is an id as `shorten` gives it, and safe to write."""
        iri = self.expand(text)
        return is_iri(iri) and self.shorten(iri) == text

    def predicates(self, names: Iterable[str]) -> frozenset[str]:
        """Return the IRIs of label predicates, given as IRIs, ids or `rdfs:label`."""
        known = {"rdfs:label": RDFS_LABEL}
        return frozenset(known.get(name) or self.expand(name) for name in names)

    def readings(self, name: str) -> list[str]:
        """Return the ids that a name may stand for, the likeliest first.

        >>> Namespace("http://rdf.freebase.com/ns/").readings("/m/0abc")
        ['/m/0abc', 'm.0abc']
        >>> Namespace().readings("<ns:m.0abc>")
        ['<ns:m.0abc>', 'ns:m.0abc', 'm.0abc']
        """
        bare = name.strip()
        found = [name, bare]
        if bare.startswith("<") and bare.endswith(">"):
            bare = bare[1:-1]
        found += [bare, self.shorten(bare)]
        if prefix := _PREFIX.match(bare):
            bare = bare[prefix.end() :]
            found.append(bare)
        if "/" in bare and ":" not in bare:
            found.append(bare.strip("/").replace("/", "."))
        return list(dict.fromkeys(found))


def is_iri(text: str) -> bool:
    """Return whether the text is an absolute IRI without a character that could end it early."""
    return _IRI.fullmatch(text) is not None and is_utf8(text)


def named_node(iri: str) -> ox.NamedNode | None:
    """Return the IRI as a term, None for what RFC 3987 does not allow, such as brackets."""
    try:
        return ox.NamedNode(iri)
    except ValueError:
        return None


def write_iri(iri: str) -> str:
    """Return the IRI between angle brackets.

    Raises ToolError for text that is not an absolute IRI.
    """
    if not is_iri(iri):
        raise ToolError(f"{iri!r} is not a valid id. Copy an id exactly as it was listed.")
    return f"<{iri}>"


def write_literal(text: str, *, language: str = "", datatype: str = "") -> str:
    r"""Return the literal in the form of N-Triples and SPARQL.

    Raises ToolError for a language tag or datatype that is not one, or text that is not Unicode.

    >>> print(write_literal('the \\ "cat"', language="en"))
    "the \\ \"cat\""@en
    """
    if not is_utf8(text):
        raise ToolError(f"{text!r} holds half a character. Write it out in full.")
    written = f'"{text.translate(_WRITTEN)}"'
    if language:
        if not _LANGUAGE.fullmatch(language):
            raise ToolError(f"{language!r} is not a language tag; one looks like 'en' or 'pt-BR'.")
        return f"{written}@{language}"
    return f"{written}^^{write_iri(datatype)}" if datatype else written


def refuse_service(query: str) -> None:
    """Do nothing for a query that stays within its own store.

    Raises SettingsError for one with SERVICE, by which a server calls another address, also when
    escapes outside strings could spell it.
    """
    found = _SERVICE.search(_QUERY_TEXT.sub(" ", query))
    if found:
        raise SettingsError(
            f"The query holds {found[0]!r}: hopling runs no query that can call another server. "
            "Ask each endpoint by itself."
        )


def parse_results(body: bytes | str, namespace: Namespace) -> bool | list[dict[str, Term]]:
    """Return the rows of SPARQL results in JSON with short ids, or the truth of an ASK.

    An unbound variable is absent from its row; a blank node keeps `_:`, and is no id.
    Raises ValueError when the body is anything else, also when it was cut short.
    """
    results = json.loads(body)
    try:
        if "boolean" in results:
            if not isinstance(results["boolean"], bool):
                raise ValueError("the answer to an ASK is neither true nor false")
            return results["boolean"]
        rows = results["results"]["bindings"]
        return [{name: _bound(term, namespace) for name, term in row.items()} for row in rows]
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"it holds no SPARQL results ({error!r})") from error


def _bound(term: dict[str, str], namespace: Namespace) -> Term:
    kind, value = term["type"], term["value"]
    if kind == "uri":
        return Term(namespace.shorten(value))
    if kind == "bnode":
        return Term(f"_:{value}")
    if kind in ("literal", "typed-literal"):
        datatype = term.get("datatype", "")
        datatype = "" if datatype == XSD_STRING else datatype
        return Term(value, True, datatype, term.get("xml:lang", "").lower())
    raise ValueError(f"it holds a term of type {kind!r}")


def decode(text: str) -> str:
    r"""Return the text with the escapes of N-Triples replaced.

    Raises ValueError for an escape that N-Triples does not know.

    >>> decode(r"a \"cat\"")
    'a "cat"'
    """
    return _ESCAPE.sub(_unescaped, text) if "\\" in text else text


def parse_triple(line: str, scope: str = "0") -> Triple:
    """Return the triple of one line of N-Triples, escapes decoded, blank nodes made IRIs.

    A blank node `b1` becomes `genid:SCOPE-b1`, an id that works in the next call; labels of two
    files are different nodes, so each file needs its own scope. A literal of xsd:string is plain,
    and language tags are lower-cased, for RDF holds both equal.
    Raises ValueError that names the rule when the line is not a triple.
    """
    match = _TRIPLE.fullmatch(line)
    if match is None:
        raise ValueError(_broken_rule(line))
    head, head_blank, relation, tail, tail_blank, text, language, datatype = match.groups()
    head = f"genid:{scope}-{head_blank}" if head is None else _decoded_iri(head)
    relation = _decoded_iri(relation)
    if tail is not None:
        return Triple(head, relation, _decoded_iri(tail))
    if tail_blank is not None:
        return Triple(head, relation, f"genid:{scope}-{tail_blank}")
    if language is not None:
        return Triple(head, relation, decode(text), "@" + language.lower())
    if datatype is None or datatype == XSD_STRING:
        return Triple(head, relation, decode(text), "")
    return Triple(head, relation, decode(text), "^^" + _decoded_iri(datatype))


def _decoded_iri(iri: str) -> str:
    if not _SCHEME.match(iri):
        raise ValueError("an IRI is not absolute")
    if "\\" in iri:
        iri = decode(iri)
        if not is_iri(iri):
            raise ValueError("an IRI holds a character that is not allowed")
    return iri


def _unescaped(match: re.Match[str]) -> str:
    short, long, character = match.groups()
    if short or long:
        code = int(short or long, 16)
        if code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
            raise ValueError("an escape is not a character")
        return chr(code)
    if character not in _CHARACTERS:
        raise ValueError("an escape is not known to N-Triples")
    return _CHARACTERS[character]


def _broken_rule(line: str) -> str:
    for iri in re.findall(r"<([^<>]*)>", re.sub(r'"(?:[^"\\]|\\.)*"', '""', line)):
        if re.search(rf"[{_BAD}]", iri):
            return "an IRI holds a character that is not allowed"
    if not re.search(r"\.[ \t]*(?:#.*)?$", line):
        return "no full stop at the end"
    if not re.match(rf"[ \t]*{_NODE}", line):
        return "the subject is neither an IRI nor a blank node"
    if not re.match(rf"[ \t]*{_NODE}[ \t]*<[^<>]*>", line):
        return "the predicate is not an IRI"
    return "the object is neither an IRI, a blank node nor a literal"


def is_utf8(text: str) -> bool:
    """Return whether the text can be sent: no lone surrogate, half a character, is in it."""
    return not any("\ud800" <= character <= "\udfff" for character in text)
