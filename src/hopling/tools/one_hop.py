"""SoG-R1's `Search`: every edge of some entities in one direction, as a Markdown table.

Edges are counted before any is read, so a hub costs no more than its summary. What the paper leaves
open is ours: pages are asked for as a property named "page 2", so the schema stays the paper's; a
call that already names properties gets its first page of rows instead of a summary; long labels
are shortened until a table fits `max_chars`. Ids are never shortened.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from hopling.episode import Episode, Observation
from hopling.errors import SettingsError, ToolError, nearest
from hopling.graphs.base import Direction, Edge, Graph, TableForm
from hopling.tools.arguments import Asked, is_same, read_arguments, search_schema
from hopling.tools.tables import (
    WIDTH,
    cell,
    head,
    lexical,
    property_cells,
    quoted,
    row_cells,
    shortened,
)

_HEAD = head("property", "propertyLabel", "value", "valueLabel")
_BATCH_HEAD = head("entity", "entityLabel", "property", "propertyLabel", "value", "valueLabel")
_SUMMARY_HEAD = head("property", "propertyLabel", "rows")


@dataclass(frozen=True)
class OneHopSearch:
    """Lists the edges of entities, or their properties with counts when more than `max_rows`.

    `max_probe_rows` sums up sooner where no properties are named; None is the paper's one limit.

    An observation's nodes are the values shown, literals by their text; its names are what the
    table prints for them, or a node's id where it has no label. [SoG-R1 4.1, App. A]
    """

    graph: Graph
    max_rows: int = 50  # [SoG-R1 4.1]
    max_chars: int = 12_000  # [ours] about 4,000 tokens
    max_probe_rows: int | None = None  # [ours] the tool before SoG-R1 had two limits as well
    name: str = "Search"

    def __post_init__(self) -> None:
        if self.max_rows < 1:
            raise SettingsError(
                f"max_rows is {self.max_rows}; expected at least 1 (the paper: 50)."
            )

    @property
    def probe_limit(self) -> int:
        """How many rows a call without properties may show."""
        return self.max_rows if self.max_probe_rows is None else self.max_probe_rows

    @property
    def schema(self) -> Mapping[str, Any]:
        """The tool's description in OpenAI's function form."""
        return search_schema(self.name)

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
        seen = self._ready(asked) or self._composed(asked, episode)
        if not self._repeats(episode, asked):
            return seen
        return replace(seen, text=f"You asked this before.\n{seen.text}")

    def _ready(self, asked: Asked) -> Observation | None:
        """Return what the graph itself wrote, None where it does not write tables."""
        write = getattr(self.graph, "search_table", None)
        if write is None or asked.page > 1:
            return None
        table = write(asked.entities, asked.direction, asked.properties, self._form)
        if table is None:
            return None
        lines, total, num_shown, num_properties, nodes, names = table
        if num_properties:
            return Observation(_summary_text(lines, total, (0, num_shown, num_properties), 1))
        text = f"{_BATCH_HEAD if len(asked.entities) > 1 else _HEAD}\n{lines}"
        if len(text) > self.max_chars:
            return None
        return Observation(text + _cut_note(0, num_shown, total, asked.page), nodes, names)

    @cached_property
    def _form(self) -> TableForm:
        return TableForm(self.probe_limit, self.max_rows, property_cells)

    def _composed(self, asked: Asked, episode: Episode) -> Observation:
        nodes = self._resolved(asked.entities, episode)
        counts = [dict(sorted(one.items())) for one in self.graph.counts(nodes, asked.direction)]
        chosen, unknown = self._chosen(asked, counts)
        if asked.properties:
            counts = [{p: n for p, n in one.items() if p in chosen} for one in counts]
        total = sum(sum(one.values()) for one in counts)
        if total == 0:
            seen = Observation(self._nothing(nodes, asked))
        elif total <= self.probe_limit or asked.properties:
            seen = self._rows(nodes, asked, counts)
        else:
            seen = self._summary(asked, counts)
        if not unknown or total == 0:
            return seen
        note = f"No {asked.direction} edges with {quoted(unknown)}."
        return replace(seen, text=f"{note}\n{seen.text}")

    def _resolved(self, entities: Sequence[str], episode: Episode) -> list[str]:
        ids = self.graph.resolve(entities)
        unknown = [name for name, id in zip(entities, ids, strict=True) if id is None]
        if unknown:
            raise ToolError(" ".join(self._unknown(name, episode) for name in unknown[:5]))
        return list(dict.fromkeys(id for id in ids if id is not None))

    def _unknown(self, name: str, episode: Episode) -> str:
        similar = self.graph.find(name, limit=3) if len(name) <= 200 else []
        if similar:
            labels = self.graph.labels(similar)
            meant = ", ".join(
                f"{id} ({shortened(label, 100)})" if label else id
                for id, label in zip(similar, labels, strict=True)
            )
            return f"There is no entity {quoted([name])}. Similar: {meant}. Write the id."
        known = [*episode.task.start, *(n for o in episode.observations for n in o.nodes)]
        like = f", like {known[0]}" if known else ""
        return f"There is no entity {quoted([name])}. Copy an id exactly as it was given{like}."

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
        table += _cut_note(first, last, sum(totals), asked.page)
        return Observation(table, tuple(names), tuple(names.values()))

    def _table(
        self, rows: Sequence[tuple[str, Edge]], *, batched: bool
    ) -> tuple[str, dict[str, str]]:
        """Return the table, and the name printed for each value."""
        ids = [edge.value for _, edge in rows if not edge.literal]
        known = list(dict.fromkeys([*ids, *(node for node, _ in rows)] if batched else ids))
        labels = dict(zip(known, self.graph.labels(known), strict=True))
        relations = list({edge.relation: None for _, edge in rows})
        named = dict(zip(relations, self.graph.labels(relations), strict=True))
        width = WIDTH
        while True:
            names: dict[str, str] = {}
            whose = {node: _owner_cells(node, labels[node], width) for node, _ in rows if batched}
            kinds = {one: row_cells(one, label, width) for one, label in named.items()}
            lines = [_BATCH_HEAD if batched else _HEAD]
            for node, (relation, value, literal) in rows:
                start = f"| {whose[node]} | " if batched else "| "
                if literal:
                    value = lexical(value)
                    names[value] = shown = shortened(value, width)
                    lines.append(f"{start}{kinds[relation]} | {cell(shown)} | - |")
                elif label := labels[value]:
                    names[value] = shown = shortened(label, width)
                    lines.append(f"{start}{kinds[relation]} | {cell(value)} | {cell(shown)} |")
                else:
                    names[value] = value
                    lines.append(f"{start}{kinds[relation]} | {cell(value)} | - |")
            table = "\n".join(lines)
            if len(table) <= self.max_chars or width <= 20:
                return table, names
            width //= 2

    def _summary(self, asked: Asked, counts: Sequence[Mapping[str, int]]) -> Observation:
        totals = _added(counts)
        first, last = self._window(asked.page, len(totals), "property")
        page = list(totals.items())[first:last]
        labels = self.graph.labels([relation for relation, _ in page])
        lines = [
            f"| {property_cells(relation, label)[1]} | {count} |"
            for (relation, count), label in zip(page, labels, strict=True)
        ]
        shown = first, last, len(totals)
        return Observation(_summary_text("\n".join(lines), sum(totals.values()), shown, asked.page))

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
            names = quoted(asked.properties)
            lines.append(f"{who} {verb} {asked.direction} edges with {names}.{hint}")
        else:
            lines.append(f"{who} {verb} {asked.direction} edges.")
        for direction, found in ((asked.direction, here), (other, there)):
            if found:
                lines.append(f"{direction.capitalize()} properties: {_listed(found)}.")
        if not here and not there:
            lines.append("There are no edges in the other direction either.")
        return "\n".join(lines)

    def _repeats(self, episode: Episode, asked: Asked) -> bool:
        for turn in episode.turns:
            for call in turn.calls:
                if call.tool == self.name and is_same(asked, call.arguments):
                    return True
        return False


def _owner_cells(node: str, label: str | None, width: int) -> str:
    return f"{cell(node)} | {cell(shortened(label or '-', width))}"


def _cut_note(first: int, last: int, total: int, page: int) -> str:
    if last - first == total:
        return ""
    more = f' Name fewer properties or entities, or add "page {page + 1}".' if last < total else ""
    return f"\nRows {first + 1}-{last} of {total} shown.{more}"


def _summary_text(lines: str, num_rows: int, shown: tuple[int, int, int], page: int) -> str:
    first, last, total = shown
    more = f' Add "page {page + 1}" to properties for more.' if last < total else ""
    return (
        f"{num_rows} rows are too many to show. "
        "Ask again with properties: name the ones that you need.\n"
        f"{_SUMMARY_HEAD}\n{lines}\nProperties {first + 1}-{last} of {total} shown.{more}"
    )


def _added(counts: Sequence[Mapping[str, int]]) -> dict[str, int]:
    if len(counts) == 1:
        return dict(counts[0])
    totals: dict[str, int] = {}
    for one in counts:
        for relation, count in one.items():
            totals[relation] = totals.get(relation, 0) + count
    return dict(sorted(totals.items()))


def _listed(counts: Mapping[str, int], most: int = 20) -> str:
    shown = [f"{relation} ({count})" for relation, count in list(counts.items())[:most]]
    more = f" and {len(counts) - most} more" if len(counts) > most else ""
    return ", ".join(shown) + more
