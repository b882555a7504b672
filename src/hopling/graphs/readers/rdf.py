"""Turtle, TriG and RDF/XML, parsed by pyoxigraph as a stream; literals keep their written form.

After a statement that cannot be read, Turtle and TriG go on with the next one.
# limit: the names of blank nodes that a file leaves without one are held in memory (issue 3).
"""

from collections.abc import Iterator

import pyoxigraph as ox

from hopling.graphs.formats import Bad, Source
from hopling.graphs.sources import opened
from hopling.graphs.terms import XSD_STRING, Triple

_FORMATS = {
    "turtle": ox.RdfFormat.TURTLE,
    "trig": ox.RdfFormat.TRIG,
    "rdfxml": ox.RdfFormat.RDF_XML,
}


def read(source: Source, scope: str) -> Iterator[Triple | Bad]:
    """Yield the triples of a file, whatever graph they are in; a blank node becomes an IRI."""
    base = source.path.absolute().as_uri()
    names: dict[str, str] = {}

    def node(term: ox.NamedNode | ox.BlankNode) -> str:
        if isinstance(term, ox.NamedNode):
            return term.value
        # those without a name get random ones, and a file should give the same graph each time
        return names.setdefault(term.value, f"genid:{scope}-n{len(names)}")

    with opened(source.path) as stream:
        quads = ox.parse(stream, format=_FORMATS[source.kind], base_iri=base)
        while True:
            try:
                quad = next(quads)
            except StopIteration:
                return
            except SyntaxError as error:
                yield Bad(error.lineno or 0, "a statement cannot be read", str(error))
                if source.kind == "rdfxml":
                    return
                continue
            head, value = quad.subject, quad.object
            if isinstance(head, ox.Triple) or isinstance(value, ox.Triple):
                yield Bad(0, "a triple is a term of another", str(quad))
            elif isinstance(value, ox.Literal):
                yield Triple(node(head), quad.predicate.value, value.value, _suffix(value))
            else:
                yield Triple(node(head), quad.predicate.value, node(value))


def _suffix(literal: ox.Literal) -> str:
    if literal.language:
        return "@" + literal.language.lower()
    datatype = literal.datatype.value
    return "" if datatype == XSD_STRING else f"^^{datatype}"
