"""Personalised PageRank beside igraph's prpack, which HippoRAG calls, on one graph in one run.

    python benchmarks/ppr.py [--nodes 100000] [--edges 1000000] [--graph FOLDER]

CPU time of one thread a query; the overlap is that of the ten best documents with prpack's. Seeds
are the ends of five triples, as in retrieval. [HippoRAG 2025]
"""

import argparse
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

from hopling.graphs.document_store import load
from hopling.graphs.ppr import Adjacency, Scores, Seeds, power, push

NUM_SEEDS = 10
RESTART = 0.5
BATCH = 64
DOCUMENT_SHARE = 0.15
SKEW = 2.5  # how much commoner the common entities are


def main() -> None:
    """Print a table of seconds and overlaps."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, default=100_000)
    parser.add_argument("--edges", type=int, default=1_000_000)
    parser.add_argument("--graph", help="folder of a document graph, in place of a random one")
    parser.add_argument("--slow", type=int, default=8, help="queries that prpack answers")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    rng = np.random.default_rng(arguments.seed)
    if arguments.graph:
        content = load(Path(arguments.graph))
        graph, num_documents = content.adjacency, len(content.documents)
    else:
        graph, num_documents = random_graph(arguments.nodes, arguments.edges, rng)
    print(f"{graph.num_nodes:,} nodes, {len(graph.neighbors) // 2:,} edges, restart {RESTART}")
    measured(graph, num_documents, arguments.slow, rng)


def measured(graph: Adjacency, num_documents: int, num_slow: int, rng: np.random.Generator) -> None:
    """Print the table of one graph."""
    seeds = [random_seeds(graph.num_nodes, num_documents, rng) for _ in range(BATCH)]
    call = prpack(graph, num_documents)
    slow, exact = timed(lambda: [call(one) for one in seeds[:num_slow]], num_slow)
    rows = [("igraph prpack", slow, exact)]

    def quick(asked: list[Seeds], epsilon: float = 1e-5) -> list[Scores]:
        return push(graph, asked, 10, below=num_documents, restart=RESTART, epsilon=epsilon)

    quick(seeds[:1])  # compiles
    for epsilon in (3e-5, 1e-5, 3e-6, 1e-6):
        made = timed(partial(quick, seeds, epsilon), BATCH)
        rows.append((f"push, epsilon {epsilon:g}, {BATCH} at once", *made))
    made = timed(lambda: [quick([one])[0] for one in seeds], BATCH)
    rows.append(("push, epsilon 1e-05, one by one", *made))
    made = timed(partial(power, graph, seeds, restart=RESTART, tolerance=1e-7), BATCH)
    rows.append((f"power iteration, {BATCH} at once", *made))
    exactly = [scores.top(10, below=num_documents) for scores in made[1]]
    print(f"top-10 overlap with prpack on {num_slow} queries, with power iteration on {BATCH}")
    print(f"{'':36} {'ms a query':>10} {'prpack / it':>11} {'prpack':>10} {'power':>10}")
    for name, seconds, found in rows:
        best = [scores.top(10, below=num_documents) for scores in found]
        same = np.mean([overlap(a, b) for a, b in zip(exact, best, strict=False)])
        every = np.mean([overlap(a, b) for a, b in zip(exactly, best, strict=False)])
        print(f"{name:36} {seconds * 1e3:10.2f} {slow / seconds:10.0f}x {same:10.3f} {every:10.3f}")


def timed(work: Callable[[], list[Scores]], num_queries: int) -> tuple[float, list[Scores]]:
    """Return CPU seconds a query, and what the work returned."""
    start = time.process_time()
    found = work()
    return (time.process_time() - start) / num_queries, found


def prpack(graph: Adjacency, num_documents: int) -> Callable[[Seeds], Scores]:
    """Return HippoRAG's own call on this graph, which gives the ten best documents."""
    import igraph

    rows = np.repeat(np.arange(graph.num_nodes), np.diff(graph.starts))
    once = rows <= graph.neighbors
    built = igraph.Graph(
        n=graph.num_nodes, edges=np.stack([rows[once], graph.neighbors[once]], axis=1)
    )
    built.es["weight"] = (graph.shares * graph.strength[graph.neighbors])[once]

    def call(seeds: Seeds) -> Scores:
        reset = np.zeros(graph.num_nodes)
        np.add.at(reset, seeds.nodes, seeds.weights)
        scores = built.personalized_pagerank(
            vertices=range(graph.num_nodes),
            damping=1 - RESTART,
            directed=False,
            weights="weight",
            reset=reset,
            implementation="prpack",
        )
        return Scores(np.arange(graph.num_nodes), np.asarray(scores)).top(10, below=num_documents)

    return call


def random_graph(num_nodes: int, num_edges: int, rng: np.random.Generator) -> tuple[Adjacency, int]:
    """Return documents with entities, some of them common, and entities joined to each other."""
    num_documents = int(num_nodes * DOCUMENT_SHARE)
    num_entities = num_nodes - num_documents

    def common(size: int) -> np.ndarray:
        return num_documents + (num_entities * rng.random(size) ** SKEW).astype(np.int64)

    half = num_edges // 2
    heads = np.concatenate(
        [
            rng.integers(0, num_documents, half),
            rng.integers(num_documents, num_nodes, num_edges - half),
        ]
    )
    tails = np.concatenate([common(half), common(num_edges - half)])
    return Adjacency.from_edges(num_nodes, heads, tails, np.ones(num_edges)), num_documents


def random_seeds(num_nodes: int, num_documents: int, rng: np.random.Generator) -> Seeds:
    """Return the entities of one query."""
    entities = rng.integers(num_documents, num_nodes, NUM_SEEDS)
    return Seeds(entities, rng.random(NUM_SEEDS) + 0.1)


def overlap(exact: Scores, found: Scores) -> float:
    """Return the share of the best that were found."""
    return len({*exact.nodes.tolist()} & {*found.nodes.tolist()}) / max(1, len(exact.nodes))


if __name__ == "__main__":
    main()
