"""How many gold queries become traces: WebQSP, CWQ and GrailQA on one reconstructed graph.

    python benchmarks/retention.py DATA_DIR [--index FOLDER] [--traces FOLDER]

Counted are the questions whose gold SPARQL gives exactly the gold answers on that graph. The paper
keeps 99.6, 96.0 and 87.2 % with a teacher model on all of Freebase. [SoG-R1 4.2]
"""

import argparse
import tempfile
import time
from pathlib import Path
from statistics import mean

from hopling import records
from hopling.data.compile import Compiler
from hopling.data.hops import gold_query
from hopling.data.tasks import read_tasks, relabeled
from hopling.data.teach import Traces, teach
from hopling.dialects.tool_calls import ToolCalls
from hopling.environment import Environment
from hopling.episode import Task
from hopling.graphs import HopIndex, build_index
from hopling.rewards import all_calls_ran, exact_match, num_calls
from hopling.tools import OneHopSearch

LAYERS = ("layer-webqsp", "layer-cwq", "layer-grailqa", "layer-fb15k237", "names")
SETS = {
    "webqsp train": ("webqsp-fragment/questions.jsonl.gz", 0.95),
    "cwq": ("freebase-mini/cwq_questions.jsonl.gz", 0.90),
    "grailqa": ("freebase-mini/grailqa_dev1000_questions.jsonl.gz", 0.85),
}


def main() -> None:
    """Print one table a question set, with the reasons for what was dropped."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--index", type=Path)
    parser.add_argument("--traces", type=Path, help="write the kept traces here")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        graph = indexed(arguments.data, arguments.index or Path(scratch) / "index")
        for name, (file, goal) in SETS.items():
            tasks = [t for t in read_tasks(arguments.data / file) if t.hints["exact"]]
            if name == "webqsp train":
                tasks = [t for t in tasks if t.hints["split"] == "train"]
            start = time.perf_counter()
            traces = compiled(graph, relabeled(tasks, graph))
            print(summary(name, traces, goal, time.perf_counter() - start), flush=True)
            for trace in traces.kept if arguments.traces else ():
                records.append(arguments.traces / f"{name.split()[0]}.jsonl", trace.to_json())


def indexed(data: Path, folder: Path) -> HopIndex:
    """Return the graph of all layers, built in the folder unless it stands there."""
    if not folder.exists():
        sources = [data / "freebase-mini" / f"{layer}.nt.gz" for layer in LAYERS]
        build_index(sources, folder, namespace="http://rdf.freebase.com/ns/")
    return HopIndex(folder)


def compiled(graph: HopIndex, tasks: list[Task]) -> Traces:
    """Return the traces that the gold queries of the tasks become, played live."""
    environment = Environment(
        prompt=lambda task: task.question,
        tools=(OneHopSearch(graph),),
        dialect=ToolCalls(),
        max_turns=15,  # [SoG-R1 App. B]
    )
    compiler = Compiler(graph, environment.dialect, tasks, gold_query)
    return teach(compiler, environment, tasks, keep=[exact_match, all_calls_ran])


def summary(name: str, traces: Traces, goal: float, seconds: float) -> str:
    """Return the table of one question set under a line with its totals."""
    calls = mean(num_calls(trace) for trace in traces.kept)
    return (
        f"{name}: {len(traces.kept)} kept, {traces.retention:.1%} (goal {goal:.0%}), "
        f"{calls:.2f} calls, T_d {traces.free_calls:g}, {seconds:.0f} s\n{traces.table()}\n"
    )


if __name__ == "__main__":
    main()
