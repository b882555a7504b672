"""Graphs and what may be asked of them.

`RdfStore` and `SparqlEndpoint` are imported when first used, so that a hop index stays quick.
"""

from typing import TYPE_CHECKING

from hopling.graphs.base import Direction, Edge, Graph
from hopling.graphs.build import BuildSettings, build_index
from hopling.graphs.hop_index import HopIndex
from hopling.graphs.layout import LoadReport
from hopling.graphs.terms import Term

if TYPE_CHECKING:
    from hopling.graphs.rdf import RdfStore
    from hopling.graphs.sparql import Connection, SparqlEndpoint

__all__ = [
    "BuildSettings",
    "Connection",
    "Direction",
    "Edge",
    "Graph",
    "HopIndex",
    "LoadReport",
    "RdfStore",
    "SparqlEndpoint",
    "Term",
    "build_index",
]


def __getattr__(name: str) -> object:
    if name == "RdfStore":
        from hopling.graphs.rdf import RdfStore

        return RdfStore
    if name in ("Connection", "SparqlEndpoint"):
        from hopling.graphs import sparql

        return getattr(sparql, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
