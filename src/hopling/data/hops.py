"""The hops of a gold query, in an order that needs few calls, and the answer off the rows shown."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from rdflib import Graph as Triples
from rdflib import Literal, URIRef
from rdflib.query import ResultRow
from rdflib.term import Node
from rdflib.util import from_n3

from hopling.data.compile import Plan, Walk
from hopling.data.queries import Gold, Pattern, Triple, parsed
from hopling.data.reading import Reading, Stuck
from hopling.episode import Task
from hopling.graphs.base import Direction
from hopling.tools.tables import lexical

FREEBASE = "http://rdf.freebase.com/ns/"
TYPE = "type.object.type"


def gold_query(task: Task, *, namespace: str = FREEBASE) -> Plan:
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
    namespace: str

    def __call__(self, reading: Reading) -> Walk:
        """Read what the query needs and return its answers over the rows read."""
        shown = Shown(self.namespace)
        for pattern in self.gold.patterns:
            conjunction = _Conjunction(pattern, self.start, reading)
            while visit := conjunction.next_visit():
                rows = yield from reading.read(visit.nodes, visit.direction, visit.relations)
                edges = [
                    (node, edge.relation, edge.value)
                    if visit.direction == "outgoing"
                    else (edge.value, edge.relation, node)
                    for node in visit.nodes
                    for edge in rows[node]
                ]
                conjunction.note(visit, edges)
                shown.add(edges)
            shown.add(conjunction.implied())
        answers = shown.answers(self.gold)
        if not answers:
            raise Stuck("the rows that can be read hold no answer")
        return answers


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


class _Conjunction:
    """What is known of each variable while the triples of one pattern are read."""

    def __init__(self, pattern: Pattern, start: Sequence[str], reading: Reading) -> None:
        self.reading = reading
        self.start = set(start)
        self.unequal = pattern.unequal
        self.domains: dict[str, set[str]] = {
            name: set(nodes) for name, nodes in pattern.values if self.start.issuperset(nodes)
        }
        self.pending = [t for t in pattern.triples if not _is_type(t)]
        self.types = [t for t in pattern.triples if _is_type(t)]
        self.edges: dict[Triple, set[tuple[str, str]]] = {}

    def next_visit(self) -> Visit | None:
        """Return the read that needs the fewest calls, None when nothing is left to read."""
        if any(not nodes for nodes in self.domains.values()):
            return None
        if not any(not triple.soft for triple in self.pending):
            self.pending += [t for t in self.types if not self._is_implied(t)]
            self.types = [t for t in self.types if t not in self.pending]
        best = min(self._choices(), key=lambda choice: choice[0], default=None)
        if best:
            return self._widened(best[1])
        if any(not triple.soft for triple in self.pending):
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


@dataclass
class Shown:
    """The rows that an episode has shown, as triples that SPARQL can be asked over."""

    namespace: str
    triples: Triples = field(default_factory=Triples)
    sources: dict[Node, str] = field(default_factory=dict)

    def add(self, edges: Iterable[tuple[str, str, str]]) -> None:
        """Add edges, given as (subject, relation, object)."""
        for subject, relation, value in edges:
            self.triples.add((self._node(subject), self._node(relation), self._node(value)))

    def answers(self, gold: Gold) -> list[str]:
        """Return the query's answers in the order that the query gives."""
        rows = [row[0] for row in self.triples.query(gold.query) if isinstance(row, ResultRow)]
        return [lexical(self.sources.get(node, str(node))) for node in dict.fromkeys(rows) if node]

    def _node(self, term: str) -> Node:
        literal = from_n3(term) if term.startswith('"') else None
        node = literal if isinstance(literal, Literal) else URIRef(self._full(term))
        self.sources[node] = term
        return node

    def _full(self, term: str) -> str:
        return term if "://" in term else self.namespace + term
