"""PyG `Data` files, and folders of OGB (`raw/edge.csv.gz`, `mapping/`); nodes are their numbers.

A `.pt` is loaded by `Source.arrays`, since torch is not known here and nothing may be unpickled.
"""

import csv
import io
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from hopling.errors import DataError, SettingsError
from hopling.graphs.formats import LABEL, LINK, Bad, Source
from hopling.graphs.sources import opened
from hopling.graphs.terms import Triple

_NAMES = ("node_names", "titles", "title", "names", "raw_texts", "raw_text", "text")
_RELATIONS = ("relation_names", "edge_type_names", "relations")
_TYPES = ("edge_type", "edge_reltype")


def read(source: Source, scope: str) -> Iterator[Triple | Bad]:
    """Yield the edges, with relations where the file has types, and labels of the nodes."""
    yield from _ogb(source.path) if source.kind == "ogb" else _pyg(source)


def _pyg(source: Source) -> Iterator[Triple | Bad]:
    if source.arrays is None:
        raise SettingsError(
            f"{source.path} needs a loader: Source(path, arrays=read_tensors), from "
            "hopling.training.tensor_files; `hopling graph build` takes it by itself."
        )
    held = source.arrays(source.path)
    if not isinstance(held, Mapping) or held.get("edge_index") is None:
        raise DataError(f"{source.path} holds no edge_index; expected a PyG Data of one graph.")
    heads, tails = (list(map(int, row)) for row in held["edge_index"])
    kinds = _first(held, _TYPES)
    numbers = [LINK] * len(heads) if kinds is None else [str(int(kind)) for kind in kinds]
    names = _first(held, _RELATIONS)
    if names is not None:
        numbers = [str(names[int(number)]) for number in numbers]
    for head, relation, tail in zip(heads, numbers, tails, strict=True):
        yield Triple(str(head), relation, str(tail))
    for node, label in enumerate(_first(held, _NAMES) or ()):
        yield Triple(str(node), LABEL, str(label), "")


def _first(held: Mapping[str, Any], names: tuple[str, ...]) -> Any:
    return next((held[name] for name in names if held.get(name) is not None), None)


def _ogb(folder: Path) -> Iterator[Triple | Bad]:
    edges = folder / "raw" / "edge.csv.gz"
    if not edges.is_file():
        raise DataError(f"{folder} is no OGB data set of one graph: it has no raw/edge.csv.gz.")
    kinds = folder / "raw" / "edge_reltype.csv.gz"
    names = dict(_mapping(folder, "reltype2*.csv.gz"))
    types = (row[0] for row in _rows(kinds)) if kinds.is_file() else None
    for number, row in enumerate(_rows(edges), 1):
        kind = LINK if types is None else str(next(types, ""))
        if len(row) == 2 and all(row) and kind:
            yield Triple(row[0], names.get(kind, kind), row[1])
        else:
            yield Bad(number, "needs 2 fields (source, target)", ",".join(row))
    for node, label in _mapping(folder, "nodeidx2*.csv.gz"):
        yield Triple(node, LABEL, label, "")


def _mapping(folder: Path, pattern: str) -> Iterator[tuple[str, str]]:
    for path in sorted((folder / "mapping").glob(pattern)):
        rows = _rows(path)
        next(rows, None)  # a header, such as (node idx, paper id)
        yield from ((row[0], row[1]) for row in rows if len(row) > 1)


def _rows(path: Path) -> Iterator[list[str]]:
    with opened(path) as stream:
        yield from csv.reader(io.TextIOWrapper(stream, "utf-8-sig", newline=""))
