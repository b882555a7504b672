"""Published text graphs in their own files: Wikispeedia, WN18RR, FB15k-237, ExplaGraphs, WebQSP.

Each function takes the folder that holds the files, whose names and columns its docstring gives;
all may be compressed (`.gz`).
"""

import gzip
import json
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from hopling.data.tasks import read_tasks, relabeled
from hopling.data.text_graphs import LabeledGraph
from hopling.data.text_tasks import (
    STANCES,
    Stance,
    Triple,
    edge_tasks,
    node_tasks,
    open_tasks,
    stance_tasks,
)
from hopling.episode import Task
from hopling.errors import DataError
from hopling.graphs import HopIndex, build_index
from hopling.graphs.text import TextGraph
from hopling.graphs.text_readers import TextGraphFile

_SPLITS = ("train", "valid", "test")
_FREEBASE = "http://rdf.freebase.com/ns/"


def wikispeedia(folder: Path, *, name: str = "wikispeedia") -> LabeledGraph:
    """Return Wikipedia's articles for schools; a class is the first part of the first subject.

    `articles.jsonl` has id, title, categories and text, `links.tsv` two ids. Ids become numbers,
    since a title would tell a neighbor's topic; splits follow from the ids.
    """
    rows = list(_objects(folder, "articles.jsonl"))
    ids = {row["id"]: str(number) for number, row in enumerate(rows)}
    texts = {ids[row["id"]]: f"{row['title']}: {row['text']}" for row in rows}
    links = [(ids[a], ids[b]) for a, b in _cells(folder, "links.tsv", 2) if a in ids and b in ids]
    graph = TextGraph.of(
        texts,
        links,
        names={ids[row["id"]]: row["title"] for row in rows},
        classes={
            ids[row["id"]]: row["categories"][0].split(".")[0].replace("_", " ")
            for row in rows
            if row["categories"]
        },
    )
    return node_tasks(name, TextGraphFile(graph, {}))


def wordnet(folder: Path, *, name: str = "wn18rr", max_tasks: int | None = None) -> LabeledGraph:
    """Return WN18RR as edges to classify; a node's text is its lemma and gloss.

    `entities.tsv` has id, lemma and gloss, `relations.tsv` a relation and its text; `train.tsv`,
    `valid.tsv` and `test.tsv` have head, relation and tail. Only train's edges can be walked.
    """
    rows = list(_cells(folder, "entities.tsv", 3))
    texts = {node: f"{lemma}: {gloss}" for node, lemma, gloss in rows}
    names = {node: lemma for node, lemma, _ in rows}
    return _relations(name, folder, texts, names, max_tasks=max_tasks)


def freebase(folder: Path, *, name: str = "fb15k237", max_tasks: int | None = None) -> LabeledGraph:
    """Return FB15k-237 as edges to classify; a node's text is its name and description.

    Files as `wordnet` has them, but `entities.tsv` begins with a header: mid, name, wikidata_id,
    wikidata_label, wikidata_description and more.
    """
    rows = list(_cells(folder, "entities.tsv", 7))[1:]
    names = {row[0]: row[1] or row[3] for row in rows}
    texts = {row[0]: f"{names[row[0]]}: {row[4]}" if row[4] else names[row[0]] for row in rows}
    return _relations(name, folder, texts, names, max_tasks=max_tasks)


def explagraphs(folder: Path, *, name: str = "explagraphs") -> LabeledGraph:
    """Return ExplaGraphs' beliefs and arguments as stances; the published dev set is the test.

    `train.jsonl` and `dev.jsonl` have belief, argument, label and triples.
    """
    files = {"train.jsonl": "train", "dev.jsonl": "test"}
    return stance_tasks(
        name, (_stance(row, split) for f, split in files.items() for row in _objects(folder, f))
    )


def webqsp(
    folder: Path,
    *,
    name: str = "webqsp-fragment",
    splits: Sequence[str] = _SPLITS,
    hops: int = 2,
    max_nodes: int = 200,
) -> LabeledGraph:
    """Return WebQSP's questions, each on its own part of Freebase, as `open_tasks` cuts it.

    `webqsp-fragment.nt` has the triples, `questions.jsonl` the questions as `read_tasks` reads
    them, with the split as a hint.
    """
    tasks: dict[str, list[Task]] = defaultdict(list)
    with tempfile.TemporaryDirectory() as scratch:
        index = Path(scratch) / "index"
        build_index([_path(folder, "webqsp-fragment.nt")], index, namespace=_FREEBASE)
        graph = HopIndex(index)
        for task in relabeled(read_tasks(_path(folder, "questions.jsonl")), graph):
            if task.hints["split"] in splits:
                tasks[str(task.hints["split"])].append(task)
        return open_tasks(name, graph, tasks, hops=hops, max_nodes=max_nodes)


def _stance(row: Any, split: str) -> Stance:
    if row["label"] not in STANCES:
        raise DataError(f"label {row['label']!r} is none of {', '.join(STANCES)}.")
    triples = tuple((head, relation, tail) for head, relation, tail in row["triples"])
    return Stance(row["belief"], row["argument"], row["label"], triples, split)


def _relations(
    name: str,
    folder: Path,
    texts: dict[str, str],
    names: dict[str, str],
    *,
    max_tasks: int | None,
) -> LabeledGraph:
    relations = {relation: text for relation, text in _cells(folder, "relations.tsv", 2)}
    edges: dict[str, list[Triple]] = {
        split: [
            (head, relation, tail) for head, relation, tail in _cells(folder, f"{split}.tsv", 3)
        ]
        for split in _SPLITS
    }
    for own in edges.values():
        for head, relation, tail in own:
            texts.setdefault(head, head)
            texts.setdefault(tail, tail)
            relations.setdefault(relation, relation)
    graph = TextGraph.of(texts, [(head, tail) for head, _, tail in edges["train"]], names=names)
    return edge_tasks(name, graph, edges, relations, max_tasks=max_tasks)


def _path(folder: Path, name: str) -> Path:
    for path in (folder / name, folder / f"{name}.gz"):
        if path.exists():
            return path
    raise DataError(f"{folder} holds neither {name} nor {name}.gz.")


def _lines(folder: Path, name: str) -> Iterator[tuple[str, str]]:
    path = _path(folder, name)
    data = path.read_bytes()
    text = (gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data).decode("utf-8")
    for number, line in enumerate(text.split("\n"), start=1):
        if line:
            yield f"{path}, line {number}", line


def _cells(folder: Path, name: str, num_columns: int) -> Iterator[list[str]]:
    for place, line in _lines(folder, name):
        row = line.split("\t")
        if len(row) != num_columns:
            raise DataError(f"{place} has {len(row)} columns; expected {num_columns}.")
        yield row


def _objects(folder: Path, name: str) -> Iterator[Any]:
    for place, line in _lines(folder, name):
        try:
            yield json.loads(line)
        except ValueError as error:
            raise DataError(f"{place} is no JSON: {error}.") from error
