"""Tables: triples, edge lists and tables of nodes, as CSV, TSV, JSON lines or parquet.

Named columns say what a row is. With a source and a target it is an edge, whose relation is a
column or `linked_to`. With an id it is a node: its label is one, and every other column a literal
of that relation. Without a header, three columns are a triple and two an edge. Values stay text.
"""

import csv
import io
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

from hopling.errors import DataError, SettingsError
from hopling.graphs.formats import (
    HEAD_NAMES,
    LABEL,
    LINK,
    RELATION_NAMES,
    TAIL_NAMES,
    Bad,
    Source,
    table_triple,
)
from hopling.graphs.readers.rows import Row, numbered_rows
from hopling.graphs.sources import opened
from hopling.graphs.terms import Triple

_ID_NAMES = ("id", "node", "node_id", "node_index", "entity")
_LABEL_NAMES = ("label", "name", "title", "labels", "node_name")

csv.field_size_limit(1 << 30)  # a description may be long


class _Columns(NamedTuple):
    """The columns of edges, or of nodes where there is no tail."""

    head: str
    relation: str = ""
    tail: str = ""
    label: str = ""


def read(source: Source, scope: str) -> Iterator[Triple | Bad]:
    """Yield the triples of a table, and the labels of its nodes."""
    if source.kind in ("jsonl", "parquet"):
        yield from _named(source, numbered_rows(source.path, source.kind))
        return
    with opened(source.path) as stream:
        text = io.TextIOWrapper(stream, "utf-8-sig", errors="backslashreplace", newline="")
        yield from _delimited(source, text)


def _delimited(source: Source, text: Iterable[str]) -> Iterator[Triple | Bad]:
    quoting: Literal[0, 3] = csv.QUOTE_MINIMAL if source.kind == "csv" else csv.QUOTE_NONE
    delimiter = source.delimiter or ("," if source.kind == "csv" else "\t")
    if len(delimiter) != 1:
        raise SettingsError(f"delimiter is {delimiter!r}; expected one character, such as ';'.")
    rows = csv.reader(text, delimiter=delimiter, quoting=quoting, strict=True)
    names: list[str] | None = None
    while True:
        number = rows.line_num + 1
        try:
            row = next(rows)
        except StopIteration:
            return
        except csv.Error as error:
            yield Bad(number, f"not a row of {source.kind} ({error})", "")
            continue
        if not row:
            continue
        if source.header and names is None:
            names = row
            _columns(source, names)  # raises before rows are read
        elif names is None:
            yield _bare(number, row)
        elif len(row) != len(names):
            rule = f"has {len(row)} fields under a header of {len(names)}"
            yield Bad(number, rule, delimiter.join(row))
        else:
            yield from _triples(source, number, dict(zip(names, row, strict=True)))


def _bare(number: int, row: Sequence[str]) -> Triple | Bad:
    try:
        return table_triple(number, [row[0], LINK, row[1]] if len(row) == 2 else row)
    except ValueError as error:
        return Bad(number, str(error).replace("tab-separated ", ""), ",".join(row))


def _named(source: Source, rows: Iterable[tuple[int, Row | Bad]]) -> Iterator[Triple | Bad]:
    for number, row in rows:
        if isinstance(row, Bad):
            yield row
            continue
        written = {name: _text(value) for name, value in row.items() if value is not None}
        yield from _triples(source, number, written)


def _triples(source: Source, number: int, row: Mapping[str, str]) -> Iterator[Triple | Bad]:
    at = _columns(source, row)
    head = row.get(at.head, "")
    if at.tail:
        relation = row.get(at.relation, "") if at.relation else LINK
        tail = row.get(at.tail, "")
        if head and relation and tail:
            yield Triple(head, relation, tail)
        else:
            yield Bad(number, "a field is empty", str(dict(row)))
        return
    if not head:
        yield Bad(number, "a field is empty", str(dict(row)))
        return
    if not at.label or not row.get(at.label):
        yield Triple(head, LABEL, "", "")  # the node is there all the same
    for name, value in row.items():
        if name == at.label:
            yield Triple(head, LABEL, value, "")
        elif name != at.head and value:
            yield Triple(head, name, value, "")


def _columns(source: Source, names: Iterable[str]) -> _Columns:
    by_key = {name.strip().lower().replace(" ", "_").lstrip(":~"): name for name in names}

    def first(wanted: Iterable[str]) -> str:
        return next((by_key[key] for key in wanted if key in by_key), "")

    head, tail = first(HEAD_NAMES), first(TAIL_NAMES)
    if head and tail:
        others = (*RELATION_NAMES, "label", "edge_type", "name")
        return _Columns(head, first(others), tail)
    node = first(_ID_NAMES)
    if node:
        return _Columns(node, label=first(_LABEL_NAMES))
    listed = ", ".join(map(repr, by_key.values()))
    raise DataError(
        f"{source.path} has the columns {listed}, which are neither an edge's (source, target, "
        "and perhaps relation) nor a node's (id, and perhaps label). Rename them."
    )


def _text(value: object) -> str:
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, default=str)
