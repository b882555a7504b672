"""Recall of gold documents by graph, by passages and by both, with and without an encoder.

    python benchmarks/retrieval.py DATA_DIR GRAPH [GRAPH ...]

GRAPH is a folder that `hopling graph build CORPUS --kind documents` wrote; two of the same corpus,
one of words and one with an encoder, fill the table. Each way returns ten documents, except the
deployed one: K_g = K_d = 3. The graph of the first is united with the passages of each other one,
too. Calls a second are of one thread, the encoder's time apart. [GTA-RAG 3.2, Table 5]
"""

import argparse
import gzip
import json
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from hopling.apps.documents import open_documents
from hopling.graphs.base import Document
from hopling.graphs.documents import DocumentGraph, Retrieval, fused

QUESTIONS = "multihop-qa/2wiki_101_with_support.jsonl.gz"
MANY = "multihop-qa/2wiki_dev_qa.jsonl.gz"
NUM_CALLS = 1024
WAYS = {
    "passages alone (w/o GR)": Retrieval(num_graph=0, num_passages=10),
    "graph alone": Retrieval(num_graph=10, num_passages=0),
    "union, 5 + 5": Retrieval(num_graph=5, num_passages=5),
    "union as deployed, 3 + 3": Retrieval(),
    "graph alone, seeds as in Eq. 6": Retrieval(num_graph=10, num_passages=0, rarity=0.0),
    "graph alone, restart 0.3": Retrieval(num_graph=10, num_passages=0, restart=0.3),
}


class Known:
    """An embedder that has embedded every query before, so that only the search is timed."""

    def __init__(self, name: str, queries: Sequence[str], rows: np.ndarray) -> None:
        self.name, self.dimension = name, rows.shape[1]
        self._rows = dict(zip(queries, rows, strict=True))

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        """Return the rows of known texts."""
        return np.stack([self._rows[text] for text in texts])


def main() -> None:
    """Print statistics, a table of recalls and the rate of calls for each graph."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("graphs", nargs="+")
    arguments = parser.parse_args()
    rows = read(arguments.data / QUESTIONS)
    queries = [row["question"] for row in rows]
    first: DocumentGraph | None = None
    for folder in arguments.graphs:
        start = time.process_time()
        graph = open_documents(folder)
        print(f"{folder}: embedder {graph.content.embedder}, opened in", end=" ")
        print(f"{time.process_time() - start:.2f} s of CPU time\n{graph.statistics}\n")
        print(f"{len(rows)} questions{'':24} {'R@2':>6} {'R@5':>6} {'R@10':>6} documents")
        for name, retrieval in WAYS.items():
            found = replace(graph, retrieval=retrieval).retrieve(queries)
            print(f"{name:37} {recalls(found, rows)}")
        for k in (5, 3) if first is not None else ():
            found = united(first, graph, queries, k=k)
            print(f"{f'graph of the first, {k} + {k} passages':37} {recalls(found, rows)}")
        first = first or graph
        questions = [row["question"] for row in read(arguments.data / MANY)[:NUM_CALLS]]
        print(f"\n{calls_per_second(graph, questions)}\n")


def read(path: Path) -> list[dict]:
    """Return the rows of a compressed JSONL file."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def united(
    by_graph: DocumentGraph, by_text: DocumentGraph, queries: Sequence[str], *, k: int
) -> list[list[Document]]:
    """Return what walks of one graph and passages of another find, k each. [GTA-RAG Eq. 9]"""
    walked = replace(by_graph, retrieval=Retrieval(num_graph=k, num_passages=0)).retrieve(queries)
    read = replace(by_text, retrieval=Retrieval(num_graph=0, num_passages=k)).retrieve(queries)
    place = {document.id: n for n, document in enumerate(by_graph.documents)}
    return [
        [by_graph.documents[n] for n in fused([[place[d.id] for d in one] for one in both])]
        for both in zip(walked, read, strict=True)
    ]


def recalls(found: Sequence[Sequence[Document]], rows: Sequence[dict]) -> str:
    """Return the mean share of gold titles among the first 2, 5 and 10, and how many come back."""
    cells = []
    for k in (2, 5, 10):
        shares = [
            len({document.title for document in documents[:k]} & {*row["supporting_titles"]})
            / len(row["supporting_titles"])
            for documents, row in zip(found, rows, strict=True)
        ]
        cells.append(f"{np.mean(shares):6.3f}")
    return " ".join([*cells, f"{np.mean([len(documents) for documents in found]):9.1f}"])


def calls_per_second(graph: DocumentGraph, queries: Sequence[str]) -> str:
    """Return the rate of calls of the deployed way, one by one and 64 at once."""
    if graph.embedder is not None:
        rows = graph.embedder.embed(queries)
        graph = replace(graph, embedder=Known(graph.embedder.name, queries, rows))
    graph.retrieve(queries[:2])
    rates = []
    for size in (1, 64):
        start = time.process_time()
        for first in range(0, len(queries), size):
            graph.retrieve(queries[first : first + size])
        seconds = time.process_time() - start
        rates.append(f"{len(queries) / seconds:,.0f} calls a CPU second, {size} at once")
    return "; ".join(rates)


if __name__ == "__main__":
    main()
