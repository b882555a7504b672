"""Personalised PageRank on undirected weighted graphs: how near every node is to some seeds.

r = restart * p + (1 - restart) * P' r, where P' moves along edges in proportion to their weights
[GTA-RAG Eq. 7]. `push` touches only what is near the seeds and bounds its error; `power` solves
for many seeds at once, exactly, and needs scipy alone.

As igraph's prpack has it, parallel edges add their weights, a self loop has both its ends at its
node, and at a node without edges the walk restarts. Seeds need not add up to 1; without seeds all
is 0.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, partial
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np

from hopling.errors import SettingsError

BLOCK = 64  # personalisations that `power` solves at once
_CANDIDATES, _MIN_CANDIDATES = 4, 40  # how many of the best `push` looks at twice, a node wanted


class Seeds(NamedTuple):
    """Where walks start: nodes, and a weight for each; those at or below 0 do not count."""

    nodes: np.ndarray
    weights: np.ndarray


class Scores(NamedTuple):
    """Nodes with a positive score, in no order; every other node has 0."""

    nodes: np.ndarray
    values: np.ndarray

    def top(self, k: int, *, below: int | None = None) -> "Scores":
        """Return the k best, best first, of the nodes under `below`; equal ones by node."""
        nodes, values = self
        if below is not None:
            kept = nodes < below
            nodes, values = nodes[kept], values[kept]
        if 0 < k < len(values):
            # all that equal the k-th stay in, so that ties do not depend on the partition
            kept = values >= np.partition(values, -k)[-k]
            nodes, values = nodes[kept], values[kept]
        best = np.lexsort((nodes, -values))[:k]
        return Scores(nodes[best], values[best])


@dataclass(frozen=True)
class Adjacency:
    """An undirected graph in rows: `neighbors[starts[n]:starts[n + 1]]` are those of node n.

    `strength` is the sum of a node's weights, and `shares` the weight of each edge over the
    strength of the neighbor: the probability of walking from the neighbor to n.
    """

    starts: np.ndarray
    neighbors: np.ndarray
    shares: np.ndarray
    strength: np.ndarray

    @property
    def num_nodes(self) -> int:
        """How many nodes there are, those without edges included."""
        return len(self.starts) - 1

    @classmethod
    def from_edges(
        cls, num_nodes: int, heads: np.ndarray, tails: np.ndarray, weights: np.ndarray
    ) -> "Adjacency":
        """Return the graph of the edges, each given once, in either direction.

        Raises SettingsError for a weight that is not a positive number and for an unknown node.
        """
        if not len(heads) == len(tails) == len(weights):
            raise SettingsError(
                f"There are {len(heads)} heads, {len(tails)} tails and {len(weights)} weights; "
                "an edge is one of each."
            )
        if not (np.isfinite(weights) & (np.asarray(weights) > 0)).all():
            raise SettingsError("A weight is not a positive number. Leave such edges out.")
        ends = np.concatenate([heads, tails]).astype(np.int64)
        if ends.size and not 0 <= ends.min() <= ends.max() < num_nodes:
            raise SettingsError(f"An edge has node {ends.max()} of {num_nodes} nodes.")
        sparse = load_sparse()
        edges = (np.concatenate([weights, weights]), (ends, np.concatenate([tails, heads])))
        matrix = sparse.csr_array(edges, shape=(num_nodes, num_nodes))
        matrix.sum_duplicates()
        strength = np.asarray(matrix.sum(axis=1), np.float64)
        shares = matrix.data / strength[matrix.indices]
        starts, neighbors = matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32)
        return cls(starts, neighbors, shares.astype(np.float32), strength)


def rank(
    graph: Adjacency, seeds: Sequence[Seeds], k: int, *, below: int, restart: float
) -> list[Scores]:
    """Return each seeds' k best nodes under `below` by the quickest way there is here.

    That is `push`, or `power` where numba is not installed.
    """
    if find_spec("numba") is not None:
        return push(graph, seeds, k, below=below, restart=restart)
    return [scores.top(k, below=below) for scores in power(graph, seeds, restart=restart)]


def push(
    graph: Adjacency,
    seeds: Sequence[Seeds],
    k: int | None = None,
    *,
    below: int | None = None,
    restart: float,
    epsilon: float = 1e-5,
) -> list[Scores]:
    """Return each seeds' scores, at most epsilon * strength[n] too low at node n; or the k best.

    The best are those of the nodes under `below`, best first; they are half as wrong. Work is
    bounded by 1 / (epsilon * restart), whatever the graph's size. Needs numba; the first call of
    an installation compiles for some seconds.
    """
    _check(restart)
    if not epsilon > 0:
        raise SettingsError(f"epsilon is {epsilon}; the error that is allowed must be above 0.")
    spread, pick = _kernels()
    num_nodes = graph.num_nodes
    rows = (graph.starts, graph.neighbors, graph.shares, graph.strength)
    estimate, waiting = np.zeros(num_nodes), np.zeros(num_nodes, np.float32)
    starts = [_normed(one) for one in seeds]
    room = num_nodes + max((len(one.nodes) for one in starts), default=0)
    touched, queue = np.zeros(num_nodes, np.int32), np.zeros(room, np.int32)
    found = []
    for nodes, weights in starts:
        # what reaches a node without edges starts again, which only scales the rest
        kept = 1 - (1 - restart) * weights[graph.strength[nodes] == 0].sum()
        start = (nodes, weights, restart, epsilon * kept)
        count = spread(rows, start, (estimate, waiting, queue, touched))
        near = touched[:count]
        if k is None:
            scores = Scores(near.copy(), estimate[near])
        else:
            size = min(max(_CANDIDATES * k, _MIN_CANDIDATES if k else 0), count)
            best = Scores(np.zeros(size, np.int32), np.zeros(size))
            limit = num_nodes if below is None else below
            size = pick(rows, start, (estimate, near), limit, best)
            scores = Scores(best.nodes[:size], best.values[:size]).top(k)
        estimate[near] = waiting[near] = 0
        found.append(Scores(scores.nodes, scores.values / kept))
    return found


def power(
    graph: Adjacency, seeds: Sequence[Seeds], *, restart: float, tolerance: float = 1e-6
) -> list[Scores]:
    """Return each seeds' scores by power iteration, in blocks of 64.

    `tolerance` is how much all scores of one seeds may be off together; they are float32.
    """
    _check(restart)
    if not 0 < tolerance < 1:
        raise SettingsError(f"tolerance is {tolerance}; it lies between 0 and 1, such as 1e-6.")
    shape = (graph.num_nodes, graph.num_nodes)
    walk = load_sparse().csr_array((graph.shares, graph.neighbors, graph.starts), shape=shape)
    # each round leaves 1 - restart of the error that was there
    rounds = math.ceil(math.log(tolerance) / math.log(1 - restart)) if restart < 1 else 0
    found = []
    for first in range(0, len(seeds), BLOCK):
        block = [_normed(one) for one in seeds[first : first + BLOCK]]
        begin = np.zeros((graph.num_nodes, len(block)), np.float32)
        for column, (nodes, weights) in enumerate(block):
            begin[nodes, column] = restart * weights
        ranks = begin
        for _ in range(rounds):
            ranks = walk @ ranks
            ranks *= 1 - restart
            ranks += begin
        for values in ranks.T.astype(np.float64):
            nodes = np.flatnonzero(values)
            found.append(Scores(nodes, values[nodes] / (values.sum() or 1.0)))
    return found


def load_sparse() -> Any:
    """Return scipy.sparse; raises SettingsError that says how to install it."""
    try:
        from scipy import sparse
    except ModuleNotFoundError as error:
        raise SettingsError(
            "Graphs of documents need scipy. Run: pip install 'hopling[documents]'"
        ) from error
    return sparse


def _spread(rows, start, workspace):
    """Leave the scores of one seeds in `estimate` and return how many nodes were touched.

    `waiting[n]` is what has arrived at n and not moved on, over n's strength: the one number that
    tells whether n is in the queue, which is a ring. Seeds are queued however little they have,
    so the ring has room for each of them twice.
    """
    starts, neighbors, shares, strength = rows
    nodes, weights, restart, epsilon = start
    estimate, waiting, queue, touched = workspace
    size, count, first, length = len(queue), 0, 0, 0
    for place in range(len(nodes)):
        node = nodes[place]
        touched[count] = node
        count += 1
        if strength[node] == 0.0:
            estimate[node] = restart * weights[place]
        else:
            waiting[node] = weights[place] / strength[node]
            queue[length] = node
            length += 1
    while length > 0:
        node = queue[first]
        first = first + 1 if first + 1 < size else 0
        length -= 1
        amount = waiting[node]
        waiting[node] = 0.0
        estimate[node] += restart * amount * strength[node]
        passed = (1.0 - restart) * amount
        for edge in range(starts[node], starts[node + 1]):
            other = neighbors[edge]
            before = waiting[other]
            after = before + passed * shares[edge]
            waiting[other] = after
            if before == 0.0 and after > 0.0 and estimate[other] == 0.0:
                touched[count] = other
                count += 1
            if before <= epsilon < after:
                last = first + length
                queue[last if last < size else last - size] = other
                length += 1
    for place in range(count):
        node = touched[place]
        estimate[node] += restart * waiting[node] * strength[node]
    return count


def _pick(rows, start, workspace, below, best):
    """Fill `best` with the highest estimates under `below`, made better; return how many.

    One walk back from each of them uses what its neighbors hold, which halves the error.
    """
    starts, neighbors, shares, _ = rows
    seeds, weights, restart, _ = start
    estimate, near = workspace
    nodes, values = best
    found = 0
    for node in near:
        value = estimate[node]
        if node >= below or len(nodes) == 0:
            continue
        if found < len(nodes):
            found += 1
        elif value < values[-1] or (value == values[-1] and node > nodes[-1]):
            continue
        place = found - 1
        while place > 0 and (
            value > values[place - 1] or (value == values[place - 1] and node < nodes[place - 1])
        ):
            values[place], nodes[place] = values[place - 1], nodes[place - 1]
            place -= 1
        values[place], nodes[place] = value, node
    for place in range(found):
        total = 0.0
        for edge in range(starts[nodes[place]], starts[nodes[place] + 1]):
            total += shares[edge] * estimate[neighbors[edge]]
        values[place] = (1.0 - restart) * total
        for seed in range(len(seeds)):
            if seeds[seed] == nodes[place]:
                values[place] += restart * weights[seed]
    return found


@cache
def _kernels() -> tuple[Any, Any]:
    try:
        import numba
    except ModuleNotFoundError as error:
        raise SettingsError(
            "push needs numba. Run: pip install 'hopling[documents]', or use power."
        ) from error
    try:
        compiled = partial(numba.njit, cache=True, nogil=True)
        return compiled(_spread), compiled(_pick)
    except RuntimeError:  # nowhere to keep what is compiled
        return numba.njit(nogil=True)(_spread), numba.njit(nogil=True)(_pick)


def _normed(seeds: Seeds) -> Seeds:
    """Return distinct seeds with weights that add up to 1; those without weight are left out."""
    weights = np.asarray(seeds.weights, np.float64)
    kept = weights > 0
    nodes, places = np.unique(np.asarray(seeds.nodes, np.int64)[kept], return_inverse=True)
    total = np.bincount(places, weights[kept], minlength=len(nodes))
    return Seeds(nodes, total / total.sum() if len(nodes) else total)


def _check(restart: float) -> None:
    if not 0 < restart <= 1:
        raise SettingsError(f"restart is {restart}; it is a probability above 0, such as 0.5.")
