"""The command line: what may be typed, and what becomes of errors."""

import sys
import traceback
from collections.abc import Sequence
from importlib.metadata import version
from typing import Annotated

import typer

from hopling.apps import ask, check, doctor, evaluate, export, graph, run
from hopling.errors import HoplingError, WorldError
from hopling.records import redact

TRAINING_PACKAGES = frozenset(
    {"torch", "transformers", "trl", "peft", "accelerate", "datasets", "tokenizers", "safetensors"}
    | {"gguf", "rdflib"}
)
WELCOME = """\
hopling teaches compact language models to search graphs.
  hopling doctor           what this machine has, and what is missing
  hopling run quickstart   teach a small model to search 43,000 films and people, in minutes
  hopling graph build      make a graph of your own files searchable
  hopling --help           all commands; README.md shows them at work"""

app = typer.Typer(
    name="hopling",
    help="Teach compact language models to search graphs.",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.add_typer(graph.app, name="graph", help="Build a graph from files, look at it, search it.")
app.command()(ask.ask)
app.command("eval")(evaluate.evaluate_model)
app.command()(check.check)
app.command()(doctor.doctor)
app.command()(export.export)
app.command(context_settings=run.CONTEXT, add_help_option=False)(run.run)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"hopling {version('hopling')}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def start(
    context: typer.Context,
    show_version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Say which.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the trace of an error.")] = False,
) -> None:
    """Teach compact language models to search graphs."""
    if context.invoked_subcommand is None:
        print(WELCOME)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command and exit: 0 well, 1 something failed, 2 wrong input, 3 no answer."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    debug = "--debug" in given
    try:
        app(args=[a for a in given if a != "--debug"], prog_name="hopling")
    except ModuleNotFoundError as error:
        name = (error.name or "").partition(".")[0]
        if name not in TRAINING_PACKAGES:
            raise
        _fail(f"This needs {name}. Run: pip install 'hopling[train]'", debug=debug, code=2)
    except HoplingError as error:
        code = 3 if isinstance(error, WorldError) else 2
        _fail(f"{type(error).__name__}: {error}", debug=debug, code=code)
    except Exception as error:
        hint = "" if debug else " Add --debug for the trace."
        message = f"hopling itself failed: {type(error).__name__}: {error}.{hint}"
        _fail(message, debug=debug, code=1)


def _fail(message: str, *, debug: bool, code: int) -> None:
    if debug:
        traceback.print_exc()
    print(redact(message), file=sys.stderr)
    sys.exit(code)
