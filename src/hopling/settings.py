"""Settings are frozen dataclasses with a source for each default, read from flags, TOML or JSON.

A recipe's settings may hold the settings of a stage (`sft: SFT`); names of nested ones are joined
by a dot in files (`sft.epochs`) and by a dash in flags (`--sft-epochs`). Nothing here knows a
recipe or a command line program.
"""

import json
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from pathlib import Path
from types import MappingProxyType, NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from hopling.errors import SettingsError, nearest

Settings = TypeVar("Settings")
Value = TypeVar("Value")
Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]


def setting(default: Value, source: str, help: str = "") -> Value:
    """Return a dataclass field with a default, where that default comes from, and a line of help.

    `source` starts with "paper", "code" or "ours": `setting(0.05, "paper 4.4", "Price of a call.")`
    """
    return field(default=default, metadata={"source": source, "help": help})


@dataclass(frozen=True)
class Described:
    """One setting, with its nested name; `kind` is the type that its values have."""

    name: str
    value: object
    default: object
    source: str
    help: str
    kind: object

    @property
    def flag(self) -> str:
        """The setting's name on a command line.

        >>> Described("sft.batch_size", 8, 8, "ours", "", int).flag
        '--sft-batch-size'
        """
        return "--" + _key(self.name).replace("_", "-")


def load(
    cls: type[Settings],
    overrides: Mapping[str, object],
    *,
    file: Path | None = None,
    presets: Mapping[str, object] = MappingProxyType({}),
) -> Settings:
    """Return settings in which `overrides` win over the file, that over `presets` and defaults.

    Values may be strings, which are converted. The file is TOML, or JSON if its name ends so.
    Raises SettingsError for an unknown name, with the nearest known one, and for a bad value.
    """
    changes: dict[str, object] = {}
    for layer in (presets, read_file(file) if file else {}, overrides):
        wins = dict(_flat(layer))
        won = {_key(name) for name in wins}
        changes = {n: v for n, v in changes.items() if _key(n) not in won} | wins
    return _with(cls(), changes)


def describe(settings: object) -> list[Described]:
    """Return every setting with its value, default, source and help, in the order declared.

    Where a recipe gives a stage another default than the stage's own, the recipe's source counts.
    """
    return list(_described(settings, type(settings)(), ""))


def untagged(cls: type) -> list[str]:
    """Return the settings whose default has no source that starts with paper, code or ours."""
    tags = ("paper", "code", "ours")
    return [entry.name for entry in describe(cls()) if not entry.source.startswith(tags)]


def parse_flags(cls: type, arguments: Sequence[str]) -> dict[str, str]:
    """Return the overrides that command line arguments ask for.

    `--name value` and `--name=value` set a value; `--name` and `--no-name` set a yes/no one.
    Raises SettingsError for what is no flag, an unknown flag, or a flag without a value.
    """
    known = {_key(entry.name): entry for entry in describe(cls())}
    found: dict[str, str] = {}
    waiting = list(reversed(arguments))
    while waiting:
        argument = waiting.pop()
        if not argument.startswith("--"):
            raise SettingsError(f"{argument!r} is no flag; settings are written --name value.")
        name, equals, value = argument[2:].partition("=")
        key = _key(name)
        entry = known.get(key) or known.get(key.removeprefix("no_"))
        if entry is None:
            raise SettingsError(_unknown(cls, name))
        if equals:
            found[entry.name] = value
        elif entry.kind is bool:
            found[entry.name] = "true" if key in known else "false"
        elif waiting and not waiting[-1].startswith("--"):
            found[entry.name] = waiting.pop()
        else:
            raise SettingsError(f"{argument} needs a value, such as {entry.flag} {entry.default}.")
    return found


def to_json(settings: object) -> dict[str, Json]:
    """Return the settings as plain JSON, nested as they are declared."""
    return {f.name: _plain(getattr(settings, f.name)) for f in _fields(settings)}


def from_json(cls: type[Settings], row: Mapping[str, object]) -> Settings:
    """Return the settings that `to_json` wrote.

    Raises SettingsError as `load` does.
    """
    return load(cls, row)


def read_file(path: Path) -> dict[str, object]:
    """Return the settings that a TOML or JSON file holds.

    Raises SettingsError if there is no such file or it cannot be parsed.
    """
    try:
        text = path.read_text(encoding="utf-8")
        row = json.loads(text) if path.suffix == ".json" else tomllib.loads(text)
    except OSError as error:
        raise SettingsError(f"cannot read the settings file {path}: {error.strerror}.") from error
    except ValueError as error:
        raise SettingsError(f"{path} is not a settings file: {error}.") from error
    if not isinstance(row, dict):
        raise SettingsError(f"{path} holds a {type(row).__name__}; expected an object of settings.")
    return row


def _fields(settings: object) -> tuple[Any, ...]:
    assert is_dataclass(settings), f"{settings!r} is not a dataclass"
    return fields(settings)


def _key(name: str) -> str:
    return name.replace("-", "_").replace(".", "_")


def _flat(row: Mapping[str, object], prefix: str = "") -> Iterator[tuple[str, object]]:
    for name, value in row.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield prefix + name, value


def _described(settings: object, default: object, prefix: str) -> Iterator[Described]:
    hints = get_type_hints(type(settings))
    for f in _fields(settings):
        value, usual = getattr(settings, f.name), getattr(default, f.name)
        name, source = prefix + f.name, f.metadata.get("source", "")
        if not is_dataclass(usual):
            text = f.metadata.get("help", "")
            yield Described(name, value, usual, source, text, hints[f.name])
            continue
        stage: Any = type(usual)
        own = {entry.name: entry.default for entry in describe(stage())}
        for entry in _described(value, usual, ""):
            changed = own[entry.name] != entry.default
            yield replace(
                entry,
                name=f"{name}.{entry.name}",
                source=source if changed and source else entry.source,
            )


def _with(settings: Settings, changes: Mapping[str, object]) -> Settings:
    """Return the settings with values replaced all at once, so that each is checked only whole."""
    cls = type(settings)
    hints = get_type_hints(cls)
    new: dict[str, object] = {}
    inner: dict[str, dict[str, object]] = {}
    for name, value in changes.items():
        field_name, rest = _place(settings, name)
        if rest:
            inner.setdefault(field_name, {})[rest] = value
        else:
            default = cls.__dataclass_fields__[field_name].default  # type: ignore[attr-defined]
            new[field_name] = _converted(value, hints[field_name], name=name, default=default)
    for field_name, values in inner.items():
        new[field_name] = _with(getattr(settings, field_name), values)
    return replace(settings, **new)  # type: ignore[type-var]


def _place(settings: object, name: str) -> tuple[str, str]:
    """Return the field that a name stands for and, in a nested one, the rest of the name."""
    key = _key(name)
    for f in _fields(settings):
        nested = is_dataclass(getattr(settings, f.name))
        if nested and key.startswith(f.name + "_"):
            return f.name, name[len(f.name) + 1 :]
        if key == f.name and not nested:
            return f.name, ""
    raise SettingsError(_unknown(type(settings), name))


def _unknown(cls: type, name: str) -> str:
    known = [entry.name for entry in describe(cls())]
    hint = nearest(_key(name), known)
    for full in known:
        if not hint and nearest(_key(name), [full.rpartition(".")[2]]):
            hint = f" Did you mean {full!r}?"
    return f"no setting {name!r} in {cls.__name__}.{hint}"


def _converted(value: object, kind: Any, *, name: str, default: object) -> object:
    if get_origin(kind) in (Union, UnionType):
        inner = [part for part in get_args(kind) if part is not NoneType]
        if value is None or (isinstance(value, str) and value.lower() == "none"):
            return None
        return _converted(value, inner[0], name=name, default=default)
    if get_origin(kind) is Literal:
        if value not in get_args(kind):
            names = ", ".join(map(str, get_args(kind)))
            hint = nearest(str(value), map(str, get_args(kind)))
            raise SettingsError(f"{name} is {value!r}; expected one of {names}.{hint}")
        return value
    if get_origin(kind) is tuple:
        parts = _parts(value)
        if parts is None:
            raise SettingsError(f"{name} is {value!r}; expected a list, such as a,b.")
        return tuple(_converted(p, get_args(kind)[0], name=name, default="") for p in parts)
    words = {bool: "true or false", int: "a whole number", float: "a number", str: "text"}
    try:
        return _scalar(value, kind)
    except ValueError:
        example = f", such as {default}" if isinstance(default, (int, float)) else ""
        expected = words.get(kind, f"a {kind.__name__}")
        raise SettingsError(f"{name} is {value!r}; expected {expected}{example}.") from None


def _parts(value: object) -> list[object] | None:
    if isinstance(value, str):
        return [part.strip() for part in value.split(",") if part.strip()]
    return list(value) if isinstance(value, (list, tuple)) else None


def _scalar(value: Any, kind: Any) -> object:
    if kind is bool:
        words = {"true": True, "yes": True, "on": True, "1": True}
        words |= {"false": False, "no": False, "off": False, "0": False}
        if isinstance(value, str) and value.lower() in words:
            return words[value.lower()]
        if isinstance(value, bool):
            return value
        raise ValueError
    if isinstance(value, bool) or value is None or isinstance(value, (list, dict)):
        raise ValueError
    if kind is int and isinstance(value, float):
        if not value.is_integer():
            raise ValueError
        return int(value)
    if kind is float:
        number = float(value)
        if number != number:
            raise ValueError
        return number
    if kind is str and not isinstance(value, str):
        raise ValueError
    return kind(value)


def _plain(value: object) -> Json:
    if is_dataclass(value):
        return to_json(value)
    if isinstance(value, (list, tuple)):
        return [_plain(part) for part in value]
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return str(value)
