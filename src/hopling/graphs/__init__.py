"""Graphs and what may be asked of them."""

from hopling.graphs.base import Direction, Edge, Graph
from hopling.graphs.build import build_index
from hopling.graphs.hop_index import HopIndex

__all__ = ["Direction", "Edge", "Graph", "HopIndex", "build_index"]
