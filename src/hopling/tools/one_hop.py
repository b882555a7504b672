"""SoG-R1's `Search`: every edge of some entities in one direction, as a Markdown table.

Edges are counted before any is read, so a hub costs no more than its summary. What the paper leaves
open is ours: pages are asked for as a property named "page 2", so the schema stays the paper's; a
call that already names properties gets its first page of rows instead of a summary; long labels
are shortened until a table fits `max_chars`. Ids are never shortened.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from hopling.episode import Episode, Observation
from hopling.errors import SettingsError, ToolError, nearest
from hopling.graphs.base import Direction, Edge, Graph

MAX_ENTITIES = 100  # [ours]
_PAGE = re.compile(r"page\s+([1-9]\d{0,8})", re.IGNORECASE)
_MEANT = {
    "out": "outgoing",
    "forward": "outgoing",
    "subject": "outgoing",
    "head": "outgoing",
    "in": "incoming",
    "backward": "incoming",
    "object": "incoming",
    "tail": "incoming",
}


@dataclass(frozen=True)
class Asked:
    """The arguments of a call, checked in form but not yet against the graph."""

    entities: tuple[str, ...]
    direction: Direction
    properties: tuple[str, ...]
    page: int


@dataclass(frozen=True)
class OneHopSearch:
    """Lists the edges of entities, or their properties with counts when more than `max_rows`.

    An observation's nodes are the values shown, literals by their text; its names are what the
    table prints for them, or a node's id where it has no label. [SoG-R1 4.1, App. A]
    """

    graph: Graph
    max_rows: int = 50  # [SoG-R1 4.1]
    max_chars: int = 12_000  # [ours] about 4,000 tokens
    name: str = "Search"

    def __post_init__(self) -> None:
        if self.max_rows < 1:
            raise SettingsError(
                f"max_rows is {self.max_rows}; expected at least 1 (the paper: 50)."
            )

    @property
    def schema(self) -> Mapping[str, Any]:
        """The tool's description in OpenAI's function form."""
        return _schema(self.name)

    def __call__(
        self,
        episode: Episode,
        /,
        entities: object = None,
        direction: object = None,
        properties: object = None,
        **others: object,
    ) -> Observation:
        """Return the rows, the summary, or what exists instead.

        Raises ToolError for unknown ids and for arguments that cannot be understood.
        """
        asked = read_arguments(entities, direction, properties, others)
        nodes = self._resolved(asked.entities, episode)
        counts = [dict(sorted(one.items())) for one in self.graph.counts(nodes, asked.direction)]
        chosen, unknown = self._chosen(asked, counts)
        if asked.properties:
            counts = [{p: n for p, n in one.items() if p in chosen} for one in counts]
        total = sum(sum(one.values()) for one in counts)
        if total == 0:
            seen = Observation(self._nothing(nodes, asked))
        elif total <= self.max_rows or asked.properties:
            seen = self._rows(nodes, asked, counts)
        else:
            seen = self._summary(asked, counts)
        notes = ["You asked this before."] if self._repeats(episode, asked) else []
        if unknown and total:
            notes.append(f"No {asked.direction} edges with {_quoted(unknown)}.")
        return Observation("\n".join([*notes, seen.text]), seen.nodes, seen.names)

    def _resolved(self, entities: Sequence[str], episode: Episode) -> list[str]:
        ids = self.graph.resolve(entities)
        unknown = [name for name, id in zip(entities, ids, strict=True) if id is None]
        if unknown:
            raise ToolError(" ".join(self._unknown(name, episode) for name in unknown[:5]))
        return list(dict.fromkeys(id for id in ids if id is not None))

    def _unknown(self, name: str, episode: Episode) -> str:
        similar = self.graph.find(name, limit=3)
        if similar:
            labels = self.graph.labels(similar)
            meant = ", ".join(
                f"{id} ({_shortened(label, 100)})" if label else id
                for id, label in zip(similar, labels, strict=True)
            )
            return f"There is no entity {_quoted([name])}. Similar: {meant}. Write the id."
        known = [*episode.task.start, *(n for o in episode.observations for n in o.nodes)]
        like = f", like {known[0]}" if known else ""
        return f"There is no entity {_quoted([name])}. Copy an id exactly as it was given{like}."

    def _chosen(
        self, asked: Asked, counts: Sequence[Mapping[str, int]]
    ) -> tuple[set[str], list[str]]:
        """Return the properties that occur among those asked for, and the names of the others."""
        have = {relation for one in counts for relation in one}
        strange = [name for name in asked.properties if name not in have]
        found = self.graph.resolve(strange) if strange else []
        renamed = dict(zip(strange, found, strict=True))
        chosen = {renamed.get(name) or name for name in asked.properties} & have
        return chosen, [name for name in strange if renamed[name] not in have]

    def _rows(
        self, nodes: Sequence[str], asked: Asked, counts: Sequence[Mapping[str, int]]
    ) -> Observation:
        totals = [sum(one.values()) for one in counts]
        first, last = self._window(asked.page, sum(totals), "row")
        parts: list[tuple[str, int, int]] = []
        passed = 0
        for node, size in zip(nodes, totals, strict=True):
            begin, stop = max(0, first - passed), min(size, last - passed)
            passed += size
            if begin < stop:
                parts.append((node, begin, stop))
        relations = sorted({p for one in counts for p in one}) if asked.properties else None
        limit = max(stop for _, _, stop in parts)
        edges = self.graph.neighbors(
            [node for node, _, _ in parts], asked.direction, relations, limit
        )
        rows = [
            (node, edge)
            for (node, begin, stop), some in zip(parts, edges, strict=True)
            for edge in some[begin:stop]
        ]
        table, names = self._table(rows, batched=len(nodes) > 1)
        if last - first < sum(totals):
            table += f"\nRows {first + 1}-{last} of {sum(totals)}."
            if last < sum(totals):
                table += f' Name fewer properties or entities, or add "page {asked.page + 1}".'
        return Observation(table, tuple(names), tuple(names.values()))

    def _table(
        self, rows: Sequence[tuple[str, Edge]], *, batched: bool
    ) -> tuple[str, dict[str, str]]:
        """Return the table, and the name printed for each value."""
        ids = [edge.value for _, edge in rows if not edge.literal]
        known = list(dict.fromkeys([*ids, *(node for node, _ in rows)] if batched else ids))
        labels = dict(zip(known, self.graph.labels(known), strict=True))
        relations = self._relation_labels({edge.relation: None for _, edge in rows})
        head = ["entity", "entityLabel"] if batched else []
        width = 400
        while True:
            names: dict[str, str] = {}
            body = []
            for node, edge in rows:
                value = lexical(edge.value) if edge.literal else edge.value
                label = None if edge.literal else labels[edge.value]
                shown = _shortened(value, width) if edge.literal else value
                named = _shortened(label, width) if label else "-"
                names[value] = shown if edge.literal else (label and named) or value
                whose = [node, _shortened(labels[node] or "-", width)] if batched else []
                relation = edge.relation, _shortened(relations[edge.relation], width)
                body.append([*whose, *relation, shown, named])
            table = _markdown([*head, "property", "propertyLabel", "value", "valueLabel"], body)
            if len(table) <= self.max_chars or width <= 20:
                return table, names
            width //= 2

    def _summary(self, asked: Asked, counts: Sequence[Mapping[str, int]]) -> Observation:
        totals = _added(counts)
        first, last = self._window(asked.page, len(totals), "property")
        page = list(totals.items())[first:last]
        labels = self._relation_labels(dict(page))
        body = [[relation, labels[relation], str(count)] for relation, count in page]
        table = _markdown(["property", "propertyLabel", "rows"], body)
        more = f' Add "page {asked.page + 1}" to properties for more.' if last < len(totals) else ""
        text = (
            f"{sum(totals.values())} rows are too many to show. "
            "Ask again with properties: name the ones that you need.\n"
            f"{table}\nProperties {first + 1}-{last} of {len(totals)}.{more}"
        )
        return Observation(text)

    def _window(self, page: int, total: int, what: str) -> tuple[int, int]:
        first = (page - 1) * self.max_rows
        if first >= total:
            pages = -(-total // self.max_rows)
            raise ToolError(f"There is no page {page}: the last {what} is on page {pages}.")
        return first, min(total, first + self.max_rows)

    def _nothing(self, nodes: Sequence[str], asked: Asked) -> str:
        other: Direction = "incoming" if asked.direction == "outgoing" else "outgoing"
        here = _added(self.graph.counts(nodes, asked.direction))
        there = _added(self.graph.counts(nodes, other))
        who = nodes[0] if len(nodes) == 1 else f"None of the {len(nodes)} entities"
        verb = "has no" if len(nodes) == 1 else "has"
        lines = []
        if asked.properties:
            hint = nearest(asked.properties[0], here)
            names = _quoted(asked.properties)
            lines.append(f"{who} {verb} {asked.direction} edges with {names}.{hint}")
        else:
            lines.append(f"{who} {verb} {asked.direction} edges.")
        for direction, found in ((asked.direction, here), (other, there)):
            if found:
                lines.append(f"{direction.capitalize()} properties: {_listed(found)}.")
        if not here and not there:
            lines.append("There are no edges in the other direction either.")
        return "\n".join(lines)

    def _relation_labels(self, relations: Mapping[str, object]) -> dict[str, str]:
        labels = self.graph.labels(list(relations))
        return {
            relation: label or spelled(relation)
            for relation, label in zip(relations, labels, strict=True)
        }

    def _repeats(self, episode: Episode, asked: Asked) -> bool:
        for turn in episode.turns:
            for call in turn.calls:
                if call.tool == self.name and _same(asked, call.arguments):
                    return True
        return False


def read_arguments(
    entities: object, direction: object, properties: object, others: Mapping[str, object]
) -> Asked:
    """Return a call's arguments in order, each name once; a string counts as a list of one.

    Raises ToolError, which says what to write instead.
    """
    if others:
        name = next(iter(others))
        hint = nearest(name, ("entities", "direction", "properties"))
        raise ToolError(
            f"There is no argument {name!r}.{hint} Arguments: entities, direction, properties."
        )
    names = _strings(entities, "entities")
    if not names:
        raise ToolError("entities is missing or empty; give at least one id, as a list.")
    if len(names) > MAX_ENTITIES:
        raise ToolError(f"{len(names)} entities in one call; ask for at most {MAX_ENTITIES}.")
    if direction not in get_args(Direction):
        meant = _MEANT.get(str(direction).strip().casefold()) or nearest_direction(direction)
        hint = f" Did you mean {meant!r}?" if meant else ""
        found = "missing" if direction is None else _quoted([direction])
        raise ToolError(f'direction is {found}; write "outgoing" or "incoming".{hint}')
    asked = [] if properties is None else _strings(properties, "properties")
    pages = [match for match in map(_PAGE.fullmatch, asked) if match]
    if len(pages) > 1:
        raise ToolError("Ask for one page at a time.")
    kept = tuple(name for name in asked if not _PAGE.fullmatch(name))
    way: Direction = "outgoing" if direction == "outgoing" else "incoming"
    return Asked(tuple(names), way, kept, int(pages[0][1]) if pages else 1)


def nearest_direction(direction: object) -> Literal["outgoing", "incoming"] | None:
    """Return the direction that a misspelled one begins like, None when it is like neither."""
    text = str(direction).strip().casefold()
    return "outgoing" if text[:3] == "out" else "incoming" if text[:3] == "inc" else None


def lexical(literal: str) -> str:
    """Return a literal's text without quotes, language and datatype; bare text stays as it is.

    >>> lexical('"05"^^<http://www.w3.org/2001/XMLSchema#integer>'), lexical('"Zoe"@en')
    ('05', 'Zoe')
    """
    match = _LITERAL.fullmatch(literal)
    return _ESCAPE.sub(_unescaped, match[1]) if match else literal


def spelled(relation: str) -> str:
    """Return a label for a relation that has none: its last part, in words. [ours]

    >>> spelled("film.actor.film_roles"), spelled("http://t.example/born#in_place")
    ('film roles', 'in place')
    """
    last = re.split(r"[./#:]", relation.rstrip("./#:"))[-1]
    return last.replace("_", " ").strip() or relation


_LITERAL = re.compile(r'"(.*)"(?:@[A-Za-z0-9-]+|\^\^\S+)?', re.DOTALL)
_ESCAPE = re.compile(r'\\(?:u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|[tbnrf"\'\\])')
_ESCAPED = {"t": "\t", "b": "\b", "n": "\n", "r": "\r", "f": "\f"}


def _unescaped(match: re.Match[str]) -> str:
    code = match[0][1:]
    if code[0] in "uU":
        point = int(code[1:], 16)
        return chr(point) if point < 0x110000 else match[0]
    return _ESCAPED.get(code, code)


def _strings(value: object, name: str) -> list[str]:
    listed = [value] if isinstance(value, str) else value
    if listed is None:
        return []
    if not isinstance(listed, list | tuple) or not all(isinstance(one, str) for one in listed):
        raise ToolError(f"{name} must be a list of strings, not {_quoted([value])}.")
    return list(dict.fromkeys(one.strip() for one in listed if one.strip()))


def _same(asked: Asked, arguments: Mapping[str, object]) -> bool:
    given = dict(arguments)
    try:
        before = read_arguments(
            given.pop("entities", None),
            given.pop("direction", None),
            given.pop("properties", None),
            given,
        )
    except ToolError:
        return False
    return (
        set(before.entities) == set(asked.entities)
        and set(before.properties) == set(asked.properties)
        and (before.direction, before.page) == (asked.direction, asked.page)
    )


def _added(counts: Sequence[Mapping[str, int]]) -> dict[str, int]:
    totals: dict[str, int] = {}
    for one in counts:
        for relation, count in one.items():
            totals[relation] = totals.get(relation, 0) + count
    return dict(sorted(totals.items()))


def _listed(counts: Mapping[str, int], most: int = 20) -> str:
    shown = [f"{relation} ({count})" for relation, count in list(counts.items())[:most]]
    more = f" and {len(counts) - most} more" if len(counts) > most else ""
    return ", ".join(shown) + more


def _quoted(values: Sequence[object], most: int = 5) -> str:
    shown = ", ".join(_shortened(repr(value), 100) for value in values[:most])
    return shown + (f" and {len(values) - most} more" if len(values) > most else "")


def _shortened(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 3] + "..."


def _markdown(head: Sequence[str], body: Sequence[Sequence[str]]) -> str:
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    lines += [f"| {' | '.join(map(_cell, row))} |" for row in body]
    return "\n".join(lines)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _schema(name: str) -> dict[str, Any]:
    entities = "Ids of the entities, such as ['m.04yd0fh']; several ids are asked about together."
    direction = "'outgoing': the entity is the subject of the edge; 'incoming': it is the object."
    properties = "Keep only edges with these properties, such as ['film.actor.film']."
    return {
        "name": name,
        "description": "List what one hop in the knowledge graph leads to: the properties of one "
        "or more entities in one direction, with their values and the labels of both.",
        "parameters": {
            "type": "object",
            "properties": {
                "entities": {
                    "type": "array",
                    "items": {"type": "string"},
                    "description": entities,
                },
                "direction": {
                    "type": "string",
                    "enum": ["incoming", "outgoing"],
                    "description": direction,
                },
                "properties": {
                    "type": "array",
                    "items": {"type": "string"},
                    "description": properties,
                },
            },
            "required": ["entities", "direction"],
        },
    }
