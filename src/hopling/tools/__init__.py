"""Tools: what a policy can call."""

from hopling.tools.one_hop import OneHopSearch
from hopling.tools.retrieve import Retrieve

__all__ = ["OneHopSearch", "Retrieve"]
