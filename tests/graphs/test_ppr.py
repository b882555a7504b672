"""Personalised PageRank: both kernels beside igraph's prpack, and what is defined at the edges."""

import igraph
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hopling.errors import SettingsError
from hopling.graphs import ppr
from hopling.graphs.ppr import Adjacency, Scores, Seeds, power, push, rank

NUM_NODES = 9
NODES = st.integers(0, NUM_NODES - 1)
EDGES = st.lists(st.tuples(NODES, NODES, st.floats(0.1, 5)), max_size=20)
SEEDS = st.lists(st.tuples(NODES, st.floats(0.1, 5)), min_size=1, max_size=4)


def graph_of(*edges: tuple[int, int, float], num_nodes: int = NUM_NODES) -> Adjacency:
    """Return the graph of edges (head, tail, weight)."""
    heads, tails, weights = np.asarray(edges, float).reshape(-1, 3).T
    return Adjacency.from_edges(num_nodes, heads.astype(int), tails.astype(int), weights)


def seeds_of(*pairs: tuple[int, float]) -> Seeds:
    """Return the seeds of pairs (node, weight)."""
    nodes, weights = np.asarray(pairs, float).reshape(-1, 2).T
    return Seeds(nodes.astype(int), weights)


def dense(scores: Scores, num_nodes: int = NUM_NODES) -> np.ndarray:
    """Return the score of every node."""
    every = np.zeros(num_nodes)
    every[scores.nodes] = scores.values
    return every


def prpack(
    edges: list[tuple[int, int, float]], pairs: list[tuple[int, float]], restart: float
) -> np.ndarray:
    """Return what HippoRAG's call gives."""
    graph = igraph.Graph(n=NUM_NODES, edges=[edge[:2] for edge in edges])
    reset = np.zeros(NUM_NODES)
    np.add.at(reset, [node for node, _ in pairs], [weight for _, weight in pairs])
    return np.asarray(
        graph.personalized_pagerank(
            damping=1 - restart,
            directed=False,
            weights=[edge[2] for edge in edges],
            reset=reset,
            implementation="prpack",
        )
    )


@settings(deadline=None, max_examples=60)
@given(EDGES, SEEDS, st.sampled_from([0.15, 0.5, 0.9]))
def test_both_kernels_give_what_prpack_gives(
    edges: list[tuple[int, int, float]], pairs: list[tuple[int, float]], restart: float
) -> None:
    """GTA-RAG Eq. 7 as HippoRAG computes it: parallel edges, self loops, nodes without edges."""
    graph, seeds = graph_of(*edges), seeds_of(*pairs)
    expected = prpack(edges, pairs, restart)
    (solved,) = power(graph, [seeds], restart=restart, tolerance=1e-6)
    (pushed,) = push(graph, [seeds], restart=restart, epsilon=1e-8)
    assert dense(solved) == pytest.approx(expected, abs=1e-5)
    assert dense(pushed) == pytest.approx(expected, abs=1e-5)


@settings(deadline=None, max_examples=60)
@given(EDGES, SEEDS, st.sampled_from([0.2, 0.01, 1e-3]))
def test_a_push_is_too_low_by_epsilon_times_strength_at_most(
    edges: list[tuple[int, int, float]], pairs: list[tuple[int, float]], epsilon: float
) -> None:
    """Ours: ppr(v) - push(v) = sum r(u) ppr_u(v) <= epsilon d(v), since walks are reversible."""
    graph, seeds = graph_of(*edges), seeds_of(*pairs)
    exact = prpack(edges, pairs, 0.5)
    (pushed,) = push(graph, [seeds], restart=0.5, epsilon=epsilon)
    (best,) = push(graph, [seeds], NUM_NODES, restart=0.5, epsilon=epsilon)
    missing = exact - dense(pushed)
    assert (missing >= -1e-5).all()
    assert (missing <= epsilon * graph.strength + 1e-5).all()
    better = (exact - dense(best))[best.nodes]
    assert (better >= -1e-5).all()
    assert (better <= epsilon * graph.strength[best.nodes] / 2 + 1e-5).all()


def test_a_chain_by_hand() -> None:
    """GTA-RAG Eq. 7: a - b, seed a, restart 1/2: r_a = 1/2 + r_b / 2, r_b = r_a / 2."""
    graph = graph_of((0, 1, 3.0), num_nodes=2)
    for scores in (
        power(graph, [seeds_of((0, 7.0))], restart=0.5, tolerance=1e-7)[0],
        push(graph, [seeds_of((0, 7.0))], restart=0.5, epsilon=1e-9)[0],
    ):
        assert dense(scores, 2) == pytest.approx([2 / 3, 1 / 3], abs=1e-6)


@pytest.mark.parametrize("kernel", [push, power])
def test_without_seeds_nothing_has_a_score(kernel) -> None:
    """Ours: an empty personalisation, and one whose weights are all 0, find nothing."""
    graph = graph_of((0, 1, 1.0))
    empty, void = seeds_of(), seeds_of((0, 0.0))
    assert [len(s.nodes) for s in kernel(graph, [empty, void], restart=0.5)] == [0, 0]
    assert kernel(graph_of(), [], restart=0.5) == []


def test_the_best_are_ordered_and_ties_go_to_the_smaller_node() -> None:
    """BUGS B14: equal scores, equal ranks, whatever the order of the edges."""
    star = [(0, leaf, 1.0) for leaf in range(1, 6)]
    for edges in (star, star[::-1]):
        graph = graph_of(*edges, num_nodes=6)
        (best,) = push(graph, [seeds_of((0, 1.0))], 3, restart=0.5)
        (under,) = push(graph, [seeds_of((5, 1.0))], 2, below=4, restart=0.5)
        assert best.nodes.tolist() == [0, 1, 2]
        assert under.nodes.tolist() == [0, 1]
    tied = Scores(np.asarray([4, 2, 9]), np.asarray([1.0, 1.0, 2.0]))
    assert tied.top(2).nodes.tolist() == [9, 2]
    assert not len(push(graph, [seeds_of((0, 1.0))], 0, restart=0.5)[0].nodes)


def test_many_seeds_give_what_each_gives_alone() -> None:
    """Ours: one batched call serves many episodes; the workspace is left clean."""
    rng = np.random.default_rng(0)
    edges = [(*rng.integers(0, 200, 2), 1.0) for _ in range(600)]
    graph = graph_of(*edges, num_nodes=200)
    many = [seeds_of(*((node, 1.0) for node in rng.integers(0, 200, 3))) for _ in range(70)]
    together = push(graph, many, 5, below=150, restart=0.5)
    solved = power(graph, many, restart=0.5)
    for one, found, exact in zip(many, together, solved, strict=True):
        (alone,) = push(graph, [one], 5, below=150, restart=0.5)
        assert alone.nodes.tolist() == found.nodes.tolist()
        assert dense(power(graph, [one], restart=0.5)[0], 200) == pytest.approx(
            dense(exact, 200), abs=1e-6
        )


def test_without_numba_power_iteration_ranks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours: scipy alone will do, with the same documents."""
    graph = graph_of((0, 5, 1.0), (1, 5, 2.0), (2, 6, 1.0), (5, 6, 1.0))
    seeds = [seeds_of((5, 1.0)), seeds_of((6, 1.0)), seeds_of()]
    quick = rank(graph, seeds, 2, below=5, restart=0.5)
    monkeypatch.setattr(ppr, "find_spec", lambda name: None)
    slow = rank(graph, seeds, 2, below=5, restart=0.5)
    assert [s.nodes.tolist() for s in slow] == [s.nodes.tolist() for s in quick]


@pytest.mark.parametrize(
    ("edges", "rule"),
    [
        ([(0, 1, 0.0)], "positive"),
        ([(0, 1, -1.0)], "positive"),
        ([(0, 1, float("nan"))], "positive"),
        ([(0, 9, 1.0)], "node 9 of 9"),
        ([(-1, 0, 1.0)], "nodes"),
    ],
)
def test_a_graph_that_cannot_be_walked_is_refused(
    edges: list[tuple[int, int, float]], rule: str
) -> None:
    """CONVENTIONS, "Errors"."""
    with pytest.raises(SettingsError, match=rule):
        graph_of(*edges)


def test_edges_are_heads_tails_and_weights_of_one_length() -> None:
    """CONVENTIONS, "Errors"."""
    with pytest.raises(SettingsError, match="an edge is one of each"):
        Adjacency.from_edges(3, np.zeros(2, int), np.zeros(2, int), np.ones(1))


@pytest.mark.parametrize("restart", [0.0, -0.1, 1.5, float("nan")])
def test_a_restart_that_is_no_probability_is_refused(restart: float) -> None:
    """CONVENTIONS, "Errors"."""
    for kernel in (push, power):
        with pytest.raises(SettingsError, match="restart"):
            kernel(graph_of((0, 1, 1.0)), [], restart=restart)
    with pytest.raises(SettingsError, match="epsilon"):
        push(graph_of((0, 1, 1.0)), [], restart=0.5, epsilon=0)
    with pytest.raises(SettingsError, match="tolerance"):
        power(graph_of((0, 1, 1.0)), [], restart=0.5, tolerance=0)
