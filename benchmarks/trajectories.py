"""How many paths of a document graph become questions, and which retriever replays them.

    python benchmarks/trajectories.py GRAPH [--hops 2,3,4] [--paths 3000] [--wanted 2000] [--seed 0]

GRAPH is a folder that `hopling graph build --kind documents` wrote. Questions are written by
templates; the deployed retriever is the graph's own, with graph and passages, then each alone.
[GTA-RAG Table 4]
"""

import argparse
from dataclasses import replace
from time import process_time

from hopling.data.synthesis import synthesize
from hopling.data.templates import Templates
from hopling.dialects.tags import Tags
from hopling.environment import Environment
from hopling.graphs.documents import DocumentGraph, Retrieval
from hopling.tools import Retrieve

WAYS = {
    "graph and passages": Retrieval(),
    "passages alone": Retrieval(num_graph=0, num_passages=6),
    "graph alone": Retrieval(num_graph=6, num_passages=0),
}


def main() -> None:
    """Print the table of each retriever, and some questions of the first."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("graph")
    parser.add_argument("--hops", default="2,3,4")
    parser.add_argument("--paths", type=int, default=3000)
    parser.add_argument("--wanted", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    graph = DocumentGraph.open(options.graph)
    hops = tuple(map(int, options.hops.split(",")))
    for name, retrieval in WAYS.items():
        started = process_time()
        search = Retrieve(replace(graph, retrieval=retrieval))
        dialect = Tags({"search": "query"}, observation="info")
        world = Environment(lambda task: task.question, (search,), dialect, max_turns=5)
        made = synthesize(
            Templates(graph, seed=options.seed),
            world,
            hops=hops,
            wanted=options.wanted,
            max_paths=options.paths,
            seed=options.seed,
        )
        kept, cpu_s = f"{len(made.tasks)} of {len(made.drafted)}", process_time() - started
        print(f"\n{name}: {kept} drafts replay, {cpu_s:.1f} CPU s")
        print(made.traces.table())
        for task in made.tasks[:3] if retrieval == Retrieval() else ():
            print(f"  {task.question} {task.answers[0]} | {' > '.join(task.hints['queries'])}")


if __name__ == "__main__":
    main()
