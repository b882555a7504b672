"""The hops of a gold query, in an order that needs few calls, and the answer off the rows shown.

From the start entities, the step that needs the fewest calls comes next. The gold query is then
asked over the rows that the episode has shown, so filters, UNION, ORDER BY and sub-selects mean
what SPARQL says, and nothing enters the answer that was not printed.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from pyoxigraph import Literal, NamedNode, Quad, QuerySolutions, Store

from hopling.data.compile import Plan, Walk
from hopling.data.queries import Gold, Pattern, Triple, parsed
from hopling.data.reading import Reading, Stuck
from hopling.episode import Task
from hopling.graphs.base import Direction, Edge
from hopling.graphs.terms import Namespace
from hopling.tools.tables import lexical

FREEBASE = Namespace("http://rdf.freebase.com/ns/")
TYPE = "type.object.type"


def gold_query(task: Task, *, namespace: Namespace = FREEBASE) -> Plan:
    """Return the plan of the task's gold SPARQL, for `Compiler`.

    Raises Stuck when the task has none, or one of a form that no calls express.
    """
    if "sparql" not in task.hints:
        raise Stuck("no gold query")
    return Hops(parsed(task.hints["sparql"], namespace), task.start, namespace)


@dataclass(frozen=True)
class Hops:
    """A gold query, and the entities that a walk may start from."""

    gold: Gold
    start: tuple[str, ...]
    namespace: Namespace

    def __call__(self, reading: Reading) -> Walk:
        """Read what the query needs and return its answers over the rows read."""
        anchors = sorted({term for p in self.gold.patterns for term in p.anchors(self.start)})
        orders = [self.start, *((anchor,) for anchor in anchors)]
        if len(anchors) > 1:
            orders.sort(key=lambda first: _num_calls(self._walk(reading.fresh(), first), reading))
        return (yield from self._walk(reading, orders[0]))

    def _walk(self, reading: Reading, first: Sequence[str]) -> Walk:
        """Walk from the first entities, and from the other ones only where these do not lead on."""
        shown = Shown(self.gold.sparql, self.namespace)
        for pattern in self.gold.patterns:
            conjunction = _Conjunction(pattern, self.start, first, reading)
            while visit := conjunction.next_visit():
                rows = yield from reading.read(visit.nodes, visit.direction, visit.relations)
                edges = list(_edges(visit, rows))
                conjunction.note(visit, edges)
                shown.add(edges)
            shown.add(conjunction.implied())
        answers = shown.answers()
        if not answers:
            raise Stuck("the rows that can be read hold no answer")
        return answers


def _num_calls(walk: Walk, reading: Reading, most: int = 30) -> int:
    """Return how many calls a walk would make, `most` where it gets stuck or goes on for longer."""
    number = 0
    try:
        calls = next(walk)
        while number < most:
            number += len(calls)
            calls = walk.send(tuple(reading.foreseen(call) for call in calls))
    except StopIteration:
        return number
    except Stuck:
        return most
    return most


@dataclass(frozen=True)
class Visit:
    """A read of some nodes' edges, in one direction, that settles some triples."""

    nodes: tuple[str, ...]
    direction: Direction
    triples: tuple[Triple, ...]

    @property
    def relations(self) -> list[str]:
        """The relations to read."""
        return list(dict.fromkeys(triple.relation for triple in self.triples))


def _edges(visit: Visit, rows: Mapping[str, Sequence[Edge]]) -> Iterator[tuple[str, str, str]]:
    for node in visit.nodes:
        for relation, value, literal in rows[node]:
            if literal:
                yield node, relation, f'"{lexical(value)}"'
            elif visit.direction == "outgoing":
                yield node, relation, value
            else:
                yield value, relation, node


class _Conjunction:
    """What is known of each variable while the triples of one pattern are read."""

    def __init__(
        self, pattern: Pattern, start: Sequence[str], first: Sequence[str], reading: Reading
    ) -> None:
        self.reading = reading
        self.start = set(first)
        self.others = set(start)
        self.unequal = pattern.unequal
        self.domains: dict[str, set[str]] = {
            name: set(nodes) for name, nodes in pattern.values if self.others.issuperset(nodes)
        }
        self.pending = [t for t in pattern.triples if not _is_type(t)]
        self.types = [t for t in pattern.triples if _is_type(t)]
        self.required = {
            term for t in pattern.triples if not t.soft for term in (t.subject, t.object)
        }
        self.edges: dict[Triple, set[tuple[str, str]]] = {}

    def next_visit(self) -> Visit | None:
        """Return the read that needs the fewest calls, None when nothing is left to read."""
        if any(self.domains.get(term, True) == set() for term in self.required):
            return None
        if not any(not triple.soft for triple in self.pending):
            self.pending += [t for t in self.types if not self._is_implied(t)]
            self.types = [t for t in self.types if t not in self.pending]
        best = min(self._choices(), key=lambda choice: choice[0], default=None)
        if best:
            return self._widened(best[1])
        if any(not triple.soft for triple in self.pending):
            if self.start != self.others:
                self.start = self.others
                return self.next_visit()
            raise Stuck("no start entity leads to the answer")
        return None

    def note(self, visit: Visit, edges: Iterable[tuple[str, str, str]]) -> None:
        """Settle the visit's triples with the edges that it showed."""
        for triple in visit.triples:
            self.pending.remove(triple)
            self.edges[triple] = {
                (subject, value)
                for subject, relation, value in edges
                if relation == triple.relation
                and self._allows(triple.subject, subject)
                and self._allows(triple.object, value)
            }
        self._narrow()

    def implied(self) -> Iterator[tuple[str, str, str]]:
        """Return the types that every candidate has, which no call need look up."""
        for triple in self.types:
            for node in self.domains.get(triple.subject, {triple.subject}):
                yield node, triple.relation, triple.object

    def _choices(self) -> Iterator[tuple[tuple[int, int, int], Visit]]:
        sides: tuple[Direction, Direction] = ("outgoing", "incoming")
        for triple in self.pending:
            for place, direction in enumerate(sides):
                nodes = self._sources(triple.object if place else triple.subject)
                if not nodes:
                    continue
                visit = Visit(nodes, direction, (triple,))
                calls = self.reading.num_calls(nodes, direction, [triple.relation])
                counts = self.reading.graph.counts(list(nodes), direction)
                rows = sum(count.get(triple.relation, 0) for count in counts)
                yield (calls, rows, place), visit

    def _widened(self, visit: Visit) -> Visit:
        """Return the visit with every other triple that the same read may settle."""
        for triple in self.pending:
            source = triple.subject if visit.direction == "outgoing" else triple.object
            if triple in visit.triples or self._sources(source) != visit.nodes:
                continue
            visit = Visit(visit.nodes, visit.direction, (*visit.triples, triple))
        return visit

    def _sources(self, term: str) -> tuple[str, ...]:
        if term.startswith("?"):
            return tuple(sorted(n for n in self.domains.get(term, ()) if not n.startswith('"')))
        return (term,) if term in self.start else ()

    def _allows(self, term: str, value: str) -> bool:
        if not term.startswith("?"):
            return term == value
        return not any(value in self._apart(term, pair) for pair in self.unequal)

    def _apart(self, term: str, pair: tuple[str, str]) -> set[str]:
        if term not in pair:
            return set()
        other = pair[1] if pair[0] == term else pair[0]
        nodes = self.domains.get(other, set()) if other.startswith("?") else {other}
        return nodes if len(nodes) == 1 else set()

    def _narrow(self) -> None:
        """Keep, for each variable, the nodes that every triple read so far allows."""
        before: dict[str, set[str]] | None = None
        while before != self.domains:
            before = dict(self.domains)
            for triple, pairs in self.edges.items():
                kept = {
                    (s, o)
                    for s, o in pairs
                    if s in self.domains.get(triple.subject, {s})
                    and o in self.domains.get(triple.object, {o})
                }
                for place, term in enumerate((triple.subject, triple.object)):
                    if term.startswith("?") and not (triple.soft and term in before):
                        self.domains[term] = {pair[place] for pair in kept}

    def _is_implied(self, triple: Triple) -> bool:
        nodes = self.domains.get(triple.subject)
        if not nodes:
            return False
        edges = self.reading.graph.neighbors(sorted(nodes), "outgoing", [triple.relation])
        return all(any(edge.value == triple.object for edge in row) for row in edges)


def _is_type(triple: Triple) -> bool:
    return triple.relation == TYPE and not triple.object.startswith("?")


class Shown:
    """The rows that an episode has shown, as triples that a gold query can be asked over."""

    def __init__(self, sparql: str, namespace: Namespace) -> None:
        self.sparql = sparql
        self.namespace = namespace
        self.store = Store()
        self.named = {match["text"]: match["suffix"] for match in _NAMED.finditer(sparql)}
        known = " ".join(self.named.values())
        self.datatypes = sorted(_FORMS, key=lambda name: name not in known)

    def add(self, edges: Iterable[tuple[str, str, str]]) -> None:
        """Add edges, given as (subject, relation, object)."""
        for subject, relation, value in edges:
            term = self._literal(value[1:-1]) if value.startswith('"') else self._node(value)
            self.store.add(Quad(self._node(subject), self._node(relation), term))

    def answers(self) -> list[str]:
        """Return the query's answers in the order that the query gives, literals by their text."""
        if re.search(r"\border\s+by\b", self.sparql, re.IGNORECASE) and self._is_mixed():
            raise Stuck("the order compares values of different kinds")
        try:
            rows = self.store.query(self.sparql)
        except SyntaxError as error:  # one parser takes what another does not
            raise Stuck("the query does not parse") from error
        assert isinstance(rows, QuerySolutions)
        found = dict.fromkeys(row[0] for row in rows if row[0] is not None)
        return [
            term.value if isinstance(term, Literal) else self.namespace.shorten(term.value)
            for term in found
            if isinstance(term, Literal | NamedNode)
        ]

    def _is_mixed(self) -> bool:
        # pyoxigraph may abort the process when it sorts over 20 values that have no common order
        literals = [quad.object for quad in self.store if isinstance(quad.object, Literal)]
        return len(literals) > 20 and len({literal.datatype for literal in literals}) > 1

    def _node(self, term: str) -> NamedNode:
        return NamedNode(self.namespace.expand(term))

    def _literal(self, text: str) -> Literal:
        """Return the printed text as the query reads it: by a datatype that it names, if it can."""
        suffix = self.named.get(text)
        if suffix == "":
            return Literal(text)
        if suffix and suffix.startswith("@"):
            return Literal(text, language=suffix[1:])
        if suffix:
            datatype = suffix[2:].replace("xsd:", _XSD).strip("<>")
            return Literal(text, datatype=NamedNode(datatype))
        for name in self.datatypes:
            if re.fullmatch(_FORMS[name], text):
                return Literal(text, datatype=NamedNode(_XSD + name))
        return Literal(text)


_XSD = "http://www.w3.org/2001/XMLSchema#"
_NAMED = re.compile(r'"(?P<text>[^"\\\n]*)"(?P<suffix>@[A-Za-z-]+|\^\^(?:xsd:\w+|<[^>]*>)|)')
_FORMS = {
    "integer": r"[+-]?\d+",
    "decimal": r"[+-]?\d*\.\d+",
    "double": r"[+-]?\d+(\.\d+)?[eE][+-]?\d+",
    "float": r"[+-]?\d+(\.\d+)?",
    "dateTime": r"-?\d{4}-\d\d-\d\dT\S+",
    "date": r"-?\d{4}-\d\d-\d\d",
    "gYearMonth": r"-?\d{4}-\d\d",
    "gYear": r"-?\d{4}",
}
