"""The SPARQL that asks an endpoint one-hop questions; every term goes through the term writer.

Answers are sorted as `Graph` sorts them, by id and value, before anything is cut. Without that,
equal calls may see different rows.
"""

from collections.abc import Iterable, Sequence

from hopling.graphs.base import Direction
from hopling.graphs.terms import Namespace, write_iri, write_literal

_PATTERNS = {"outgoing": "?n ?p ?v", "incoming": "?v ?p ?n"}


def present(iris: Sequence[str]) -> str:
    """Return the query for those of the IRIs that the graph holds, as ?n."""
    return (
        f"SELECT DISTINCT ?n WHERE {{ {_values('n', iris)} "
        "FILTER(EXISTS { ?n ?p1 ?v1 } || EXISTS { ?v2 ?p2 ?n } || EXISTS { ?v3 ?n ?v4 }) } "
        "ORDER BY STR(?n)"
    )


def relation_counts(iris: Sequence[str], direction: Direction, *, hidden: Iterable[str]) -> str:
    """Return the query for the number ?c of edges of each node ?n and relation ?p."""
    return (
        f"SELECT ?n ?p (COUNT(DISTINCT ?v) AS ?c) WHERE {{ {_values('n', iris)} "
        f"{_edges(direction, hidden)} }} GROUP BY ?n ?p ORDER BY STR(?n) STR(?p)"
    )


def edges(
    iris: Sequence[str],
    direction: Direction,
    *,
    hidden: Iterable[str],
    relations: Sequence[str] | None,
    limit: int | None,
    namespace: Namespace,
) -> str:
    """Return the query for the edges (?n, ?p, ?v), sorted, at most `limit` for each node."""
    order = f"ORDER BY STR(?n) {_key('p', namespace)} {_key('v', namespace)} isLiteral(?v) ?v"
    narrowed = "" if relations is None else _values("p", relations)
    body = f"{narrowed} {_edges(direction, hidden)}"
    if limit is None:
        return f"SELECT DISTINCT ?n ?p ?v WHERE {{ {_values('n', iris)} {body} }} {order}"
    each = (
        f"{{ SELECT DISTINCT ?n ?p ?v WHERE {{ {_values('n', [iri])} {body} }} "
        f"{order} LIMIT {limit:d} }}"
        for iri in iris
    )
    return f"SELECT ?n ?p ?v WHERE {{ {' UNION '.join(each)} }} {order}"


def label_rows(iris: Sequence[str], predicates: Iterable[str]) -> str:
    """Return the query for the labels ?l of the nodes ?n."""
    return (
        f"SELECT DISTINCT ?n ?l WHERE {{ {_values('n', iris)} {_values('q', predicates)} "
        "?n ?q ?l FILTER(isLiteral(?l)) } ORDER BY STR(?n) STR(?l) LANG(?l)"
    )


def named(names: Iterable[str], languages: Iterable[str], *, predicates: Iterable[str]) -> str:
    """Return the query for the nodes ?n with one of the names as label ?l."""
    literals = [
        write_literal(name, language=language) for name in names for language in ("", *languages)
    ]
    return (
        f"SELECT DISTINCT ?n ?l WHERE {{ VALUES ?l {{ {' '.join(literals)} }} "
        f"{_values('q', predicates)} ?n ?q ?l }} ORDER BY STR(?l) LANG(?l) STR(?n)"
    )


def _values(variable: str, iris: Iterable[str]) -> str:
    return f"VALUES ?{variable} {{ {' '.join(write_iri(iri) for iri in iris)} }}"


def _edges(direction: Direction, hidden: Iterable[str]) -> str:
    written = ", ".join(write_iri(iri) for iri in sorted(hidden))
    hide = f" FILTER(!(isLiteral(?v) && ?p IN ({written})))" if written else ""
    return _PATTERNS[direction] + hide


def _key(variable: str, namespace: Namespace) -> str:
    text = f"STR(?{variable})"
    if not namespace.iri:
        return text
    short = f"SUBSTR({text}, {len(namespace.iri) + 1})"
    start = write_literal(namespace.iri)
    return f"IF(isIRI(?{variable}) && STRSTARTS({text}, {start}), {short}, {text})"
