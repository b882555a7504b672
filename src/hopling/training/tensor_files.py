"""Reads `.pt` files of others as data: tensors, numbers, texts, lists; nothing in them is run.

It stands here since torch lives here; `graphs.text_readers.from_arrays` takes what it returns.
"""

from pathlib import Path
from pickle import UnpicklingError
from typing import Any

import torch

from hopling.errors import DataError, SettingsError


class _Held:
    """Stands in for a container of PyG, which is not needed then: it holds what the file says."""


# the classes that a saved torch_geometric.data.Data names
_PYG: list[Any] = [
    (type(name, (_Held,), {}), f"torch_geometric.data.{module}.{name}")
    for module, name in (
        ("data", "Data"),
        ("data", "DataEdgeAttr"),
        ("data", "DataTensorAttr"),
        ("storage", "GlobalStorage"),
    )
]


def read_tensors(path: Path) -> Any:
    """Return what a `.pt` file holds: a dictionary, for PyG's `Data` as well.

    Raises SettingsError where the file asks for any other class, since building one could run code,
    and DataError for what is no such file.
    """
    try:
        with torch.serialization.safe_globals(_PYG):
            held = torch.load(path, map_location="cpu", weights_only=True)
    except UnpicklingError as error:
        first = str(error).split("\n")[0]
        raise SettingsError(
            f"{path} is not read: it holds more than tensors, numbers, texts, lists and "
            f"dictionaries, and building it could run code ({first}). Save it as a dictionary of "
            "edge_index, raw_texts, y, label_names and the masks."
        ) from error
    except (OSError, RuntimeError, EOFError) as error:
        raise DataError(f"{path} is no file of torch.save: {error}") from error
    if isinstance(held, tuple) and held:
        held = held[0]  # PyG's datasets save the data, its slices and its class
    while isinstance(held, _Held):
        held = vars(held).get("_store") or vars(held).get("_mapping") or vars(held)
    return held
