"""The arguments of `Search`, read from whatever a policy wrote."""

import re
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, get_args

from hopling.errors import ToolError, nearest
from hopling.graphs.base import Direction
from hopling.tools.tables import quoted

MAX_ENTITIES = 100  # [ours]
_DIRECTIONS = get_args(Direction)
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


class Asked(NamedTuple):
    """The arguments of a call, checked in form but not yet against the graph."""

    entities: tuple[str, ...]
    direction: Direction
    properties: tuple[str, ...]
    page: int


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
    if direction not in _DIRECTIONS:
        meant = _MEANT.get(str(direction).strip().casefold()) or _nearest_direction(direction)
        hint = f" Did you mean {meant!r}?" if meant else ""
        found = "missing" if direction is None else quoted([direction])
        raise ToolError(f'direction is {found}; write "outgoing" or "incoming".{hint}')
    way: Direction = "outgoing" if direction == "outgoing" else "incoming"
    asked = () if properties is None else _strings(properties, "properties")
    if not asked:
        return Asked(names, way, (), 1)
    pages = [match for match in map(_PAGE.fullmatch, asked) if match]
    if len(pages) > 1:
        raise ToolError("Ask for one page at a time.")
    kept = tuple(name for name in asked if not _PAGE.fullmatch(name))
    return Asked(names, way, kept, int(pages[0][1]) if pages else 1)


def _nearest_direction(direction: object) -> Literal["outgoing", "incoming"] | None:
    """Return the direction that a misspelled one begins like, None when it is like neither."""
    text = str(direction).strip().casefold()
    return "outgoing" if text[:3] == "out" else "incoming" if text[:3] == "inc" else None


def _strings(value: object, name: str) -> tuple[str, ...]:
    listed = [value] if isinstance(value, str) else value
    if listed is None:
        return ()
    try:
        if not isinstance(listed, (list, tuple)):
            raise TypeError
        stripped = dict.fromkeys(map(str.strip, listed))
    except TypeError:
        raise ToolError(f"{name} must be a list of strings, not {quoted([value])}.") from None
    stripped.pop("", None)
    return tuple(stripped)


def is_same(asked: Asked, arguments: Mapping[str, object]) -> bool:
    """Return whether a call's arguments ask the same, in whatever order the names stand."""
    listed = arguments.get("entities")
    names = listed if isinstance(listed, (list, tuple)) else [listed]
    if not any(asked.entities[0] in name for name in names if isinstance(name, str)):
        return False  # most calls, told apart without reading them
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


def search_schema(name: str) -> dict[str, Any]:
    """Return the tool's description in OpenAI's function form. [SoG-R1 App. A, wording ours]"""
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
