"""GraphML, read as a stream and written so that it can be read again.

A node's label is its attribute of that name, and its other attributes are literals. An edge's
relation is its attribute `relation`, `label` or `type`. XML has no control characters: in what is
written the replacement character stands for them.
"""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree
from xml.sax.saxutils import escape, quoteattr

from hopling.graphs.formats import LABEL, LINK, RELATION_NAMES, Bad, Source
from hopling.graphs.sources import unpacked
from hopling.graphs.terms import Triple

_LABELS = ("label", "name", "title")
_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def read(source: Source, scope: str) -> Iterator[Triple | Bad]:
    """Yield the edges of a file, and the attributes of its nodes; parallel edges stay."""
    names: dict[str, str] = {}
    with source.path.open("rb") as raw, unpacked(source.path, raw) as stream:
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


def write(path: Path, labels: Iterable[tuple[str, str]], edges: Iterable[Triple]) -> int:
    """Write nodes with their labels, and edges; return how many texts lost a character."""
    changed = 0

    def safe(text: str) -> str:
        nonlocal changed
        clean = _FORBIDDEN.sub("\ufffd", text)
        changed += clean != text
        return clean

    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.write('<?xml version="1.0" encoding="UTF-8"?>\n')
        file.write('<graphml xmlns="http://graphml.graphdrawing.org/xmlns">\n')
        for kind, name in (("node", "label"), ("edge", "relation")):
            file.write(f'<key id="{name}" for="{kind}" attr.name="{name}" attr.type="string"/>\n')
        file.write('<graph edgedefault="directed">\n')
        for node, label in labels:
            data = f'<data key="label">{escape(safe(label))}</data>'
            file.write(f"<node id={quoteattr(safe(node))}>{data}</node>\n")
        for edge in edges:
            ends = f"source={quoteattr(safe(edge.head))} target={quoteattr(safe(edge.tail))}"
            relation = escape(safe(edge.relation))
            file.write(f'<edge {ends}><data key="relation">{relation}</data></edge>\n')
        file.write("</graph>\n</graphml>\n")
    return changed


def _data(element: Any, names: dict[str, str]) -> dict[str, str]:
    return {
        names.get(child.get("key", ""), child.get("key", "")): child.text or ""
        for child in element
        if child.tag.rpartition("}")[2] == "data"
    }


def _node(element: Any, names: dict[str, str]) -> Iterator[Triple | Bad]:
    node = element.get("id")
    if not node:
        yield Bad(0, "a node has no id", str(dict(element.attrib)))
        return
    found = _data(element, names)
    label = next((found.pop(name) for name in _LABELS if name in found), "")
    yield Triple(node, LABEL, label, "")
    for name, value in found.items():
        yield Triple(node, name, value, "")


def _edge(element: Any, names: dict[str, str]) -> Triple | Bad:
    head, tail = element.get("source"), element.get("target")
    if not head or not tail:
        return Bad(0, "an edge has no source or no target", str(dict(element.attrib)))
    found = _data(element, names)
    wanted = (*RELATION_NAMES, "label", "name", "key")
    relation = next((found[name] for name in wanted if found.get(name)), LINK)
    return Triple(head, relation, tail)
