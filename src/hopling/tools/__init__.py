"""Tools: what a policy can call."""

from hopling.tools.one_hop import OneHopSearch

__all__ = ["OneHopSearch"]
