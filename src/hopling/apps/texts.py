"""`hopling graph texts`: make a text graph of somebody's files walkable by `hopling run cny`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hopling.apps.flags import AsJson
from hopling.apps.tables import print_json, print_pairs
from hopling.errors import SettingsError

if TYPE_CHECKING:
    from hopling.graphs.text_readers import TextGraphFile

_FORMS = "one .pt or .graphml file, or two tables: nodes and links (.csv, .tsv, .jsonl, .parquet)"


def texts(
    sources: Annotated[list[Path], typer.Argument(help=f"Files: {_FORMS}.")],
    out: Annotated[Path, typer.Option(help="Folder to write, or to add to.")],
    name: Annotated[str, typer.Option(help="What the graph is called there.")],
    as_json: AsJson = False,
) -> None:
    """Add a graph of texts with classes to a folder for `hopling run cny --data FOLDER`."""
    from hopling.data.text_folders import add_to_folder
    from hopling.data.text_tasks import node_tasks

    labeled = node_tasks(name, _read(sources))
    if not labeled.classes:
        raise SettingsError(f"no node of {sources[0]} has a class, so there is nothing to predict.")
    add_to_folder(labeled, out)
    found = {
        "nodes": len(labeled.graph),
        "links": len(labeled.graph.links),
        "classes": len(labeled.classes),
        **{f"{split} tasks": len(own) for split, own in labeled.tasks.items()},
    }
    if as_json:
        print_json(found)
    else:
        print_pairs(found)


def _read(sources: list[Path]) -> "TextGraphFile":
    from hopling.graphs.text_readers import from_arrays, read_graphml, read_tables

    if len(sources) == 2:
        return read_tables(*sources)
    if len(sources) == 1 and sources[0].suffix == ".graphml":
        return read_graphml(sources[0])
    if len(sources) == 1 and sources[0].suffix == ".pt":
        from hopling.training.tensor_files import read_tensors

        return from_arrays(read_tensors(sources[0]))
    raise SettingsError(f"{', '.join(map(str, sources))}: expected {_FORMS}.")
