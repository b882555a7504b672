"""How often a question's own part of the graph, on which CNY walks, holds an answer.

    python benchmarks/subgraphs.py FOLDER

FOLDER holds `webqsp-fragment.nt.gz` and `questions.jsonl.gz`. Counted are the test questions whose
part holds an answer, by its id or its name, and how many nodes such a part has. [CNY 5.4]
"""

import argparse
from pathlib import Path
from statistics import mean, median

from hopling.data.text_sets import webqsp
from hopling.tools.walk import Walk

SIZES = ((1, 200), (2, 50), (2, 200))


def main() -> None:
    """Print one line for each size of the parts."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    for hops, max_nodes in SIZES:
        labeled = webqsp(folder, hops=hops, max_nodes=max_nodes, splits=("test",))
        tasks = labeled.tasks["test"]
        sizes = [_size(Walk(labeled.graph), task.start[0]) for task in tasks]
        share = mean(bool(task.hints["reachable"]) for task in tasks)
        print(
            f"{hops} hops, at most {max_nodes} nodes: an answer is there for {100 * share:.1f} % "
            f"of {len(tasks)} questions; {median(sizes):.0f} nodes at the median",
            flush=True,
        )


def _size(walk: Walk, root: str) -> int:
    seen, waiting = {root}, [root]
    while waiting:
        new = [node for node in walk.graph.neighbors(waiting.pop()) if node not in seen]
        seen.update(new)
        waiting += new
    return len(seen) - 1


if __name__ == "__main__":
    main()
