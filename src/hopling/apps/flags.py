"""Options of a command from a settings dataclass, so that flags, files and help agree."""

import inspect
from collections.abc import Callable
from typing import Annotated, Any

import typer

from hopling.settings import Described, describe, load

Command = Callable[..., None]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON in place of the table.")]


def with_flags(cls: type) -> Callable[[Command], Command]:
    """Return a decorator that gives a command one option for each setting of `cls`.

    The command's parameter `settings` gets them; the options come after its own.
    """
    entries = {entry.name.replace(".", "_"): entry for entry in describe(cls())}

    def decorated(command: Command) -> Command:
        own = inspect.signature(command)

        def run(**given: Any) -> None:
            asked = {entry.name: given.pop(name) for name, entry in entries.items()}
            chosen = {name: value for name, value in asked.items() if value is not None}
            command(**given, settings=load(cls, chosen))

        parameters = [p for name, p in own.parameters.items() if name != "settings"]
        parameters += [_option(name, entry) for name, entry in entries.items()]
        run.__signature__ = own.replace(parameters=parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {p.name: p.annotation for p in parameters}
        run.__name__, run.__doc__ = command.__name__, command.__doc__
        return run

    return decorated


def _option(name: str, entry: Described) -> inspect.Parameter:
    kind: Any = bool if entry.kind is bool else str
    flag = f"{entry.flag}/--no-{entry.flag[2:]}" if entry.default is True else entry.flag
    default = "" if entry.default in (None, "", (), False) else f" Default: {entry.default}."
    option = typer.Option(flag, help=entry.help + default, show_default=False)
    return inspect.Parameter(
        name,
        inspect.Parameter.KEYWORD_ONLY,
        default=None,
        annotation=Annotated[kind | None, option],
    )
