"""What SoG-R1's teacher model is told: the gold program and K worked examples [SoG-R1 App. A].

The examples lie beside this file as small invented graphs with questions. Their tables are printed
by the real tool, and their calls made by the compiler of `hopling.data`, so that they cannot drift
from what a live episode shows.
"""

import json
import re
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal

from hopling.data.compile import Compiler, gold_path
from hopling.data.hops import FREEBASE, gold_query
from hopling.data.questions import full_iris
from hopling.dialects.tool_calls import ToolCalls
from hopling.environment import Environment
from hopling.episode import Answer, Call, Episode, Prompt, Task
from hopling.graphs import Graph, HopIndex, build_index
from hopling.recipes.prompts import compact, dictionary, file, question
from hopling.rollout import rollout
from hopling.tools import OneHopSearch

Dataset = Literal["webqsp", "cwq", "grailqa", "metaqa"]
MAX_TURNS = 15  # [SoG-R1 App. B]


def teacher(graph: Graph, dataset: Dataset) -> Callable[[Task], Prompt]:
    """Return the prompt of a teacher model: rules, K worked examples, question and gold program.

    Works for tasks whose hints hold the gold `sparql` or the gold `path`.
    """
    examples = "\n\n".join(
        f"## Example {number}: {row['shows']}\n\n{_worked(row)}"
        for number, row in enumerate(exemplars(dataset), 1)
    )
    system = f"{file('teacher.md')}\n\n# Worked examples\n\n{examples}"
    return lambda task: Prompt(user=f"{question(task, graph)}\n\n{program(task)}", system=system)


def exemplars(dataset: Dataset) -> list[dict[str, Any]]:
    """Return the worked examples of a dataset: question, start, program, reading, and their graph.

    A line of `crowd` stands for many triples: "a r ? 60" gives a 60 objects, "? r a 60" subjects.
    """
    return json.loads(file(f"exemplars-{dataset}.json"))


def program(task: Task) -> str:
    """Return the gold program as the teacher reads it, the SPARQL with short names."""
    if "sparql" in task.hints:
        iri = re.escape(FREEBASE.iri)
        lines = re.sub(rf"<{iri}([^>]+)>", r"ns:\1", task.hints["sparql"]).splitlines()
        return "\n".join(["Gold SPARQL:", *(s for s in lines if not s.startswith("PREFIX "))])
    steps = ", ".join(task.hints["path"])
    return f"Gold path (^r is walked from object to subject; drop the start entity): {steps}"


def played(row: Mapping[str, Any]) -> Episode:
    """Return the episode in which the compiler plays a worked example over its own graph."""
    task = _task(row)
    with tempfile.TemporaryDirectory() as folder:
        graph = _graph(row, Path(folder))
        dialect = ToolCalls()
        environment = Environment(compact(graph), (OneHopSearch(graph),), dialect, MAX_TURNS)
        plan = gold_query if "sparql" in row else gold_path
        (episode,) = rollout(Compiler(graph, dialect, [task], plan), environment, [task])
    return episode


def _worked(row: Mapping[str, Any]) -> str:
    episode = played(row)
    parts = [
        f"Question: {row['question']}",
        dictionary({node: row["names"][node] for node in row["start"]}),
        program(episode.task),
        "Reading:\n" + "\n".join(f"{n}. {line}" for n, line in enumerate(row["reading"], 1)),
    ]
    for turn in episode.turns:
        for action in turn.actions:
            if isinstance(action, Call):
                call = {"name": action.tool, "arguments": dict(action.arguments)}
                parts.append(f"Call: {json.dumps(call, ensure_ascii=False)}")
            elif isinstance(action, Answer):
                parts.append(f"Final answer: {action.text}")
        parts += [observation.text for observation in turn.observations]
    return "\n\n".join(parts)


def _task(row: Mapping[str, Any]) -> Task:
    sparql = "\n".join(row.get("sparql", ()))
    hints = {"sparql": full_iris(sparql)} if sparql else {"path": row["path"]}
    return Task(row["question"], row["question"], start=tuple(row["start"]), hints=hints)


def _graph(row: Mapping[str, Any], folder: Path) -> HopIndex:
    triples = [line.split(" ", 2) for line in row["triples"]]
    for line in row["crowd"]:
        subject, relation, value, number = line.split(" ")
        for n in range(int(number)):
            some = f"m.0z{n:02}"
            ends = [some if end == "?" else end for end in (subject, value)]
            triples.append([ends[0], relation, ends[1]])
    lines = [f"{_term(s)} {_term(r)} {_term(o)} ." for s, r, o in triples]
    lines += [
        f"{_term(node)} {_term('type.object.name')} {json.dumps(name)}@en ."
        for node, name in row["names"].items()
    ]
    source = folder / "triples.nt"
    source.write_text("\n".join(lines) + "\n", encoding="utf-8")
    build_index(source, folder / "index", namespace=FREEBASE.iri)
    return HopIndex(folder / "index")


def _term(term: str) -> str:
    return term if term.startswith('"') else f"<{FREEBASE.expand(term)}>"
