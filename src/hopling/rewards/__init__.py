"""Scorers: functions from an episode to a number."""

from hopling.rewards.answers import (
    exact_match,
    f1,
    grounded,
    hits_any,
    hits_first,
    normalized,
    observed,
    predicted,
)
from hopling.rewards.conduct import all_calls_ran, gate, num_calls, sog_r1, thrift

__all__ = [
    "all_calls_ran",
    "exact_match",
    "f1",
    "gate",
    "grounded",
    "hits_any",
    "hits_first",
    "normalized",
    "num_calls",
    "observed",
    "predicted",
    "sog_r1",
    "thrift",
]
