"""Writes a graph with classes into a folder that `text_graphs.labeled_graph` reads.

Several graphs share a folder; their nodes are numbered on, so that no two have one id.
"""

import gzip
from pathlib import Path

from hopling.data.text_graphs import LabeledGraph
from hopling.errors import SettingsError
from hopling.records import write_bytes

NODES, EDGES = "nodes.tsv.gz", "edges.tsv.gz"


def add_to_folder(labeled: LabeledGraph, folder: Path) -> int:
    """Add the graph to the folder's files, which are made if need be; return its number of nodes.

    White space inside a text becomes one space. Raises SettingsError for a name that is taken.
    """
    nodes, edges = _lines(folder / NODES), _lines(folder / EDGES)
    if any(line.split("\t")[1] == labeled.name for line in nodes):
        raise SettingsError(f"{folder} holds a graph {labeled.name!r}; give this one another name.")
    graph = labeled.graph
    number = {node: str(len(nodes) + k) for k, node in enumerate(graph.texts)}
    splits = {task.start[0]: split for split, own in labeled.tasks.items() for task in own}
    for node, text in graph.texts.items():
        kind, split = graph.classes.get(node, ""), splits.get(node, "")
        row = [number[node], labeled.name, kind, split, graph.name(node), text]
        nodes.append("\t".join(" ".join(cell.split()) for cell in row))
    edges += [f"{number[one]}\t{number[other]}" for one, other in graph.links]
    folder.mkdir(parents=True, exist_ok=True)
    for name, lines in ((NODES, nodes), (EDGES, edges)):
        data = "".join(f"{line}\n" for line in lines).encode("utf-8")
        write_bytes(folder / name, gzip.compress(data, mtime=0))
    return len(graph)


def _lines(path: Path) -> list[str]:
    if not path.exists():
        return []
    return gzip.decompress(path.read_bytes()).decode("utf-8").splitlines()
