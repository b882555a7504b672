"""Edges swapped at random so that every node keeps its degree: the same texts, another topology."""

from random import Random

import numpy as np


def rewire(
    ends: np.ndarray, rng: Random, *, directed: bool = False, swaps_per_edge: int = 10
) -> np.ndarray:
    """Return the edges after random swaps (a, b), (c, d) -> (a, d), (c, b). [CNY 5.3]

    `ends` has a row of two nodes for each edge, every edge once. A swap that would make a loop or
    an edge that is there already is left out. Without direction an edge may be turned first.
    """
    edges = [(int(a), int(b)) for a, b in ends.tolist()]
    held = {_key(a, b, directed) for a, b in edges}
    for _ in range(swaps_per_edge * len(edges) if len(edges) > 1 else 0):
        i, j = int(rng.random() * len(edges)), int(rng.random() * len(edges))
        (a, b), (c, d) = edges[i], edges[j]
        if not directed and rng.random() < 0.5:
            c, d = d, c
        one, other = _key(a, d, directed), _key(c, b, directed)
        if a == d or c == b or one == other or one in held or other in held:
            continue
        held -= {_key(a, b, directed), _key(c, d, directed)}
        held |= {one, other}
        edges[i], edges[j] = (a, d), (c, b)
    return np.array(edges, dtype=np.int64).reshape(-1, 2)


def _key(a: int, b: int, directed: bool) -> tuple[int, int]:
    return (a, b) if directed or a < b else (b, a)
