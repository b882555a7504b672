"""GraphML, read as a stream and written so that it can be read again.

A node's label is its attribute of that name, and its other attributes are literals. An edge's
relation is its attribute `relation`, `label` or `type`. XML has no control characters: in what is
written the replacement character stands for them.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree
from xml.sax.saxutils import escape

from hopling.graphs.formats import LABEL, LINK, RELATION_NAMES, Bad, Source
from hopling.graphs.sources import opened
from hopling.graphs.terms import Triple

_LABELS = ("label", "name", "title")
_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_KEPT = {'"': "&quot;", "\t": "&#9;", "\n": "&#10;", "\r": "&#13;"}  # a parser would change them


def read(source: Source, scope: str) -> Iterator[Triple | Bad]:
    """Yield the edges of a file, and the attributes of its nodes; parallel edges stay."""
    names: dict[str, str] = {}
    with opened(source.path) as stream:
        try:
            for _, element in ElementTree.iterparse(stream):
                kind = element.tag.rpartition("}")[2]
                if kind == "key":
                    names[element.get("id", "")] = element.get("attr.name", element.get("id", ""))
                elif kind == "node":
                    yield from _node(element, names)
                elif kind == "edge":
                    yield _edge(element, names)
                if kind in ("node", "edge"):
                    element.clear()
        except ElementTree.ParseError as error:
            yield Bad(error.position[0], "not XML from here on", str(error))


class Node(NamedTuple):
    """A node to write; `literals` are pairs of relation and value."""

    id: str
    label: str
    literals: Sequence[tuple[str, str]] = ()


def write(
    path: Path, relations: Sequence[str], nodes: Iterable[Node], edges: Iterable[Triple]
) -> int:
    """Write nodes, and the edges between them; return how many texts lost a character.

    `relations` are those of literals, and may be more. What stood at the path stays until the file
    is whole.
    """
    changed = 0

    def safe(text: str) -> str:
        nonlocal changed
        clean = _FORBIDDEN.sub("\ufffd", text)
        changed += clean != text
        return escape(clean, _KEPT)

    keys = {relation: f"p{place}" for place, relation in enumerate(relations)}
    beside = path.with_name(f".{path.name}.part")
    with beside.open("w", encoding="utf-8", newline="\n") as file:
        file.write('<?xml version="1.0" encoding="UTF-8"?>\n')
        file.write('<graphml xmlns="http://graphml.graphdrawing.org/xmlns">\n')
        named = [("edge", "relation", "relation"), ("node", "label", "label")]
        for kind, key, name in [*named, *(("node", key, name) for name, key in keys.items())]:
            named_key = f'id="{key}" for="{kind}" attr.name="{safe(name)}" attr.type="string"'
            file.write(f"<key {named_key}/>\n")
        file.write('<graph edgedefault="directed">\n')
        for node in nodes:
            cells = [("label", node.label), *((keys[name], text) for name, text in node.literals)]
            data = "".join(f'<data key="{key}">{safe(text)}</data>' for key, text in cells)
            file.write(f'<node id="{safe(node.id)}">{data}</node>\n')
        for edge in edges:
            data = f'<data key="relation">{safe(edge.relation)}</data>'
            ends = f'source="{safe(edge.head)}" target="{safe(edge.tail)}"'
            file.write(f"<edge {ends}>{data}</edge>\n")
        file.write("</graph>\n</graphml>\n")
    beside.replace(path)
    return changed


def _data(element: Any, names: dict[str, str]) -> list[tuple[str, str]]:
    return [
        (names.get(child.get("key", ""), child.get("key", "")), child.text or "")
        for child in element
        if child.tag.rpartition("}")[2] == "data"
    ]


def _node(element: Any, names: dict[str, str]) -> Iterator[Triple | Bad]:
    node = element.get("id")
    if not node:
        yield Bad(0, "a node has no id", str(dict(element.attrib)))
        return
    found = _data(element, names)
    given = dict(reversed(found))  # of several values the first
    name = next((name for name in _LABELS if name in given), "")
    label = (name, given.get(name, ""))
    yield Triple(node, LABEL, label[1], "")
    if name:
        found.remove(label)
    for relation, value in found:
        yield Triple(node, relation, value, "")


def _edge(element: Any, names: dict[str, str]) -> Triple | Bad:
    head, tail = element.get("source"), element.get("target")
    if not head or not tail:
        return Bad(0, "an edge has no source or no target", str(dict(element.attrib)))
    found = dict(_data(element, names))
    wanted = (*RELATION_NAMES, "label", "name", "key")
    relation = next((found[name] for name in wanted if found.get(name)), LINK)
    return Triple(head, relation, tail)
