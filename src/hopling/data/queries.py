"""Gold SPARQL as triple patterns: what must be read before the query can be answered.

rdflib parses the query; what is kept of it are its triple patterns, since each is one hop.
"""

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from pyparsing import ParseException
from rdflib import Literal, URIRef, Variable
from rdflib.plugins.sparql.algebra import translateQuery
from rdflib.plugins.sparql.parser import parseQuery
from rdflib.plugins.sparql.parserutils import CompValue
from rdflib.term import Node

from hopling.data.reading import Stuck
from hopling.graphs.terms import LABEL_PREDICATES, Namespace


@dataclass(frozen=True)
class Triple:
    """One triple pattern; a term is `?name` for a variable, a literal's text in quotes, or an id.

    A soft triple (of OPTIONAL, MINUS or EXISTS) is read but excludes nothing.
    """

    subject: str
    relation: str
    object: str
    soft: bool = False


@dataclass(frozen=True)
class Pattern:
    """One conjunction of triple patterns.

    `values` are the nodes that VALUES names for a variable, `unequal` the pairs of terms that a
    filter keeps apart.
    """

    triples: tuple[Triple, ...] = ()
    values: tuple[tuple[str, tuple[str, ...]], ...] = ()
    unequal: tuple[tuple[str, str], ...] = ()

    def anchors(self, start: Sequence[str]) -> set[str]:
        """Return the start entities that the pattern names."""
        named = {term for triple in self.triples for term in (triple.subject, triple.object)}
        return {node for node in start if node in named}

    def joined(self, other: "Pattern") -> "Pattern":
        """Return the conjunction of both."""
        return Pattern(
            tuple(dict.fromkeys(self.triples + other.triples)),
            self.values + other.values,
            self.unequal + other.unequal,
        )


@dataclass(frozen=True)
class Gold:
    """A parsed query and the alternative conjunctions (one, without UNION) that it needs."""

    sparql: str
    patterns: tuple[Pattern, ...]


def parsed(sparql: str, namespace: Namespace) -> Gold:
    """Return the query with its triple patterns; ids are what is left without the namespace.

    Raises Stuck when it cannot be parsed or holds a form that has no hops.
    """
    # a year typed as a date is no fault of ours, and Freebase's queries are full of them
    logging.getLogger("rdflib.term").setLevel(logging.ERROR)
    try:
        query = translateQuery(parseQuery(sparql))
    except ParseException as error:
        raise Stuck("the query does not parse") from error
    patterns = tuple(_patterns(query.algebra, namespace))
    if not any(pattern.triples for pattern in patterns):
        raise Stuck("the query has no triple pattern")
    return Gold(sparql, patterns)


def _patterns(part: Any, namespace: Namespace) -> list[Pattern]:
    if part.name == "BGP":
        return [Pattern(tuple(_triples(part.triples, namespace)))]
    if part.name == "Union":
        return _patterns(part.p1, namespace) + _patterns(part.p2, namespace)
    if part.name == "Join":
        pairs = product(_patterns(part.p1, namespace), _patterns(part.p2, namespace))
        return [left.joined(right) for left, right in pairs]
    if part.name in ("LeftJoin", "Minus"):
        soft = Pattern(tuple(_soft(part.p2, namespace)))
        return [left.joined(soft) for left in _patterns(part.p1, namespace)]
    if part.name == "Filter":
        unequal = tuple(_unequal(part.expr, namespace))
        soft = Pattern(tuple(_soft(part.expr, namespace)), unequal=unequal)
        return [inner.joined(soft) for inner in _patterns(part.p, namespace)]
    if part.name == "values":
        return [Pattern(values=tuple(_values(part.res, namespace)))]
    if isinstance(part.get("p"), CompValue):
        return _patterns(part.p, namespace)
    raise Stuck(f"the query uses {part.name}")


def _values(rows: Iterable[Mapping[Node, Node]], namespace: Namespace) -> Iterator[Any]:
    columns: dict[str, list[str]] = {}
    for row in rows:
        for variable, value in row.items():
            columns.setdefault(f"?{variable}", []).append(_term(value, namespace))
    for name, values in columns.items():
        yield name, tuple(values)


def _unequal(part: Any, namespace: Namespace) -> Iterator[tuple[str, str]]:
    if isinstance(part, CompValue) and part.name == "ConditionalAndExpression":
        for operand in (part.expr, *part.other):
            yield from _unequal(operand, namespace)
    elif isinstance(part, CompValue) and part.name == "RelationalExpression" and part.op == "!=":
        sides = (part.expr, part.other)
        if all(isinstance(side, URIRef | Variable) for side in sides):
            yield _term(part.expr, namespace), _term(part.other, namespace)


def _soft(part: Any, namespace: Namespace) -> Iterator[Triple]:
    if isinstance(part, CompValue):
        if "triples" in part:
            terms = [term for group in part.triples for term in group]
            groups = [tuple(terms[i : i + 3]) for i in range(0, len(terms), 3)]
            yield from (
                Triple(t.subject, t.relation, t.object, soft=True)
                for t in _triples(groups, namespace)
            )
        for key, value in part.items():
            if key != "triples":
                yield from _soft(value, namespace)
    elif isinstance(part, list):
        for item in part:
            yield from _soft(item, namespace)


def _triples(triples: Iterable[Sequence[Node]], namespace: Namespace) -> Iterator[Triple]:
    for subject, relation, value in triples:
        if not isinstance(relation, URIRef):
            form = "variable" if isinstance(relation, Variable) else "property path"
            raise Stuck(f"a relation is a {form}")
        if str(relation) in LABEL_PREDICATES:
            raise Stuck("the query reads a name as an edge")
        yield Triple(_term(subject, namespace), _term(relation, namespace), _term(value, namespace))


def _term(term: Node, namespace: Namespace) -> str:
    if isinstance(term, Variable):
        return f"?{term}"
    if isinstance(term, Literal):
        return f'"{term}"'
    if isinstance(term, URIRef):
        return namespace.shorten(str(term))
    return f"?_{term}"
