"""Text graphs from files: tables of nodes and links (CSV, TSV, JSONL, parquet), and GraphML.

Also from what PyG, OGB and the papers' `.pt` files hold once they are in memory: anything with
`edge_index`. Nothing here unpickles; `training.tensor_files` reads a `.pt` without running it.
"""

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from hopling.errors import DataError, SettingsError
from hopling.graphs.formats import Bad
from hopling.graphs.readers.rows import placed_rows
from hopling.graphs.sources import opened
from hopling.graphs.text import TextGraph

csv.field_size_limit(1 << 30)  # a text may be long

_TEXTS = ("raw_texts", "raw_text", "node_texts", "texts", "text")
_LABELS = ("y", "label_idx")
_LABEL_NAMES = ("label_names", "label_name", "label_texts", "label_text")
_NAMES = ("node_names", "titles", "title", "names")
_MASKS = {"train": "train_mask", "valid": "val_mask", "test": "test_mask"}
_GRAPHML = "{http://graphml.graphdrawing.org/xmlns}"


@dataclass(frozen=True)
class Columns:
    """The names of a table's columns; those of name, class and split may be absent."""

    id: str = "id"
    text: str = "text"
    name: str = "name"
    kind: str = "class"
    split: str = "split"
    source: str = "source"
    target: str = "target"


@dataclass(frozen=True)
class TextGraphFile:
    """A graph that was read, with the split of the nodes that have one."""

    graph: TextGraph
    splits: Mapping[str, str]


def read_tables(
    nodes: Path, links: Path, *, columns: Columns | None = None, directed: bool = False
) -> TextGraphFile:
    """Return the graph of a table of nodes and a table of links.

    A table is `.csv`, `.tsv` or `.jsonl`, each also with `.gz`, or `.parquet`; the first two have a
    header. Raises DataError for a row without an id or an end, and for an id that comes twice.
    """
    at = columns or Columns()
    texts: dict[str, str] = {}
    names: dict[str, str] = {}
    classes: dict[str, str] = {}
    splits: dict[str, str] = {}
    for place, row in _rows(nodes):
        node = _cell(row, at.id, nodes, place)
        if node in texts:
            raise DataError(f"{nodes}, {place}: id {node!r} is taken by an earlier node.")
        texts[node] = _text(row.get(at.text))
        for column, held in ((at.name, names), (at.kind, classes), (at.split, splits)):
            if value := _text(row.get(column)):
                held[node] = value
    pairs = [
        (_cell(row, at.source, links, place), _cell(row, at.target, links, place))
        for place, row in _rows(links)
    ]
    graph = TextGraph.of(texts, pairs, names=names, classes=classes, directed=directed)
    return TextGraphFile(graph, splits)


def read_graphml(path: Path, *, columns: Columns | None = None) -> TextGraphFile:
    """Return the graph of a GraphML file, directed if it says so.

    A node's text, name, class and split are its data of the columns' names.
    Raises DataError for what is no GraphML.
    """
    at = columns or Columns()
    keys: dict[str, str] = {}
    texts: dict[str, str] = {}
    names: dict[str, str] = {}
    classes: dict[str, str] = {}
    splits: dict[str, str] = {}
    pairs, directed = [], False
    try:
        with opened(path) as stream:
            content = io.BytesIO(stream.read())
        for _, element in ElementTree.iterparse(content, events=("end",)):
            kind = element.tag.removeprefix(_GRAPHML)
            if kind == "key":
                keys[element.attrib["id"]] = element.get("attr.name", element.attrib["id"])
            elif kind == "edge":
                pairs.append((element.attrib["source"], element.attrib["target"]))
            elif kind == "graph":
                directed = element.get("edgedefault") == "directed"
            elif kind == "node":
                data = {keys.get(d.get("key", ""), ""): d.text or "" for d in element}
                node = element.attrib["id"]
                texts[node] = data.get(at.text, "")
                for column, held in ((at.name, names), (at.kind, classes), (at.split, splits)):
                    if data.get(column):
                        held[node] = data[column]
                element.clear()
    except (ElementTree.ParseError, KeyError) as error:
        raise DataError(f"{path} is no GraphML: {error}.") from error
    graph = TextGraph.of(texts, pairs, names=names, classes=classes, directed=directed)
    return TextGraphFile(graph, splits)


def from_arrays(
    data: object, *, texts: Sequence[str] | None = None, class_names: Sequence[str] | None = None
) -> TextGraphFile:
    """Return the graph of PyG's `Data`, OGB's dictionary, or a dictionary of arrays and lists.

    Needed are `edge_index` of shape (2, E) and the texts of the nodes (`raw_texts`, `node_texts`,
    `texts` or `text`), unless given; `y`, `label_names` and the three masks are read if there.
    Node k is called str(k). Raises SettingsError for what is missing or has another length.
    """
    edges = _list(_field(data, ("edge_index",)))
    own_texts = texts if texts is not None else _list(_field(data, _TEXTS))
    if not isinstance(edges, list) or len(edges) != 2 or own_texts is None:
        known = ", ".join(sorted(data if isinstance(data, Mapping) else vars(data)))
        raise SettingsError(
            f"no graph with texts: expected edge_index of shape (2, E) and one of "
            f"{', '.join(_TEXTS)}; found {known}."
        )
    ids = [str(k) for k in range(len(own_texts))]
    named = class_names or _list(_field(data, _LABEL_NAMES)) or ()
    labels = _flat(_list(_field(data, _LABELS)), ids, "y")
    titles = _flat(_list(_field(data, _NAMES)), ids, "names")
    masks = {s: _flat(_list(_field(data, (m,))), ids, m) for s, m in _MASKS.items()}
    graph = TextGraph.of(
        {node: _text(text) for node, text in zip(ids, own_texts, strict=True)},
        [(str(a), str(b)) for a, b in zip(*edges, strict=True)],
        names={node: _text(title) for node, title in zip(ids, titles, strict=False)},
        classes={
            node: _class(label, named)
            for node, label in zip(ids, labels, strict=False)
            if label == label and not (isinstance(label, (int, float)) and label < 0)
        },
    )
    splits = {n: s for s, mask in masks.items() for n, on in zip(ids, mask, strict=False) if on}
    return TextGraphFile(graph, splits)


def _class(label: Any, names: Sequence[Any]) -> str:
    return str(names[int(label)]) if isinstance(label, (int, float)) and names else str(label)


def _field(data: object, names: Sequence[str]) -> Any:
    for name in names:
        value = data.get(name) if isinstance(data, Mapping) else getattr(data, name, None)
        if value is not None:
            return value
    return None


def _list(value: Any) -> Any:
    """Return tensors and arrays as plain lists."""
    return value.tolist() if hasattr(value, "tolist") else value


def _flat(values: Any, ids: Sequence[str], name: str) -> list[Any]:
    if values is None:
        return []
    flat = [v[0] if isinstance(v, list) and len(v) == 1 else v for v in values]
    if len(flat) != len(ids):
        raise SettingsError(
            f"{name} has {len(flat)} values for {len(ids)} texts; expected one each."
        )
    return flat


def _rows(path: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    suffix = Path(path.name.removesuffix(".gz")).suffix
    if suffix in (".csv", ".tsv"):
        yield from _delimited(path, "," if suffix == ".csv" else "\t")
    elif suffix in (".jsonl", ".parquet"):
        for place, row in placed_rows(path):
            if isinstance(row, Bad):
                raise DataError(f"{path}, {place}: {row.rule}: {row.text[:200]!r}. Mend it.")
            yield place, row
    else:
        raise SettingsError(f"{path} is no .csv, .tsv, .jsonl or .parquet, also with .gz.")


def _delimited(path: Path, delimiter: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    with opened(path) as stream:
        reader = csv.DictReader(
            io.TextIOWrapper(stream, "utf-8-sig", newline=""), delimiter=delimiter
        )
        try:
            for row in reader:
                yield f"line {reader.line_num}", row
        except UnicodeDecodeError as error:
            raise DataError(f"{path} is not UTF-8 ({error}). Save it as UTF-8.") from error


def _cell(row: Mapping[str, Any], column: str, path: Path, place: str) -> str:
    value = _text(row.get(column))
    if not value:
        held = ", ".join(str(name) for name in row)
        raise DataError(f"{path}, {place}: no {column!r}; columns: {held}.")
    return value


def _text(value: object) -> str:
    return "" if value is None else str(value).strip()
