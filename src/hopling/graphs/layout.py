"""The folder that a hop index is: a manifest and one array a file, written whole or not at all."""

import json
import mmap
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hopling.errors import SettingsError

FORMAT = "hopling hop index"
VERSION = 1
MANIFEST = "manifest.json"


@dataclass(frozen=True)
class LoadReport:
    """What went into a graph, and what was left out.

    `triples` are distinct and without labels; `entities` have an edge or a label; `duplicates`
    were read and dropped; `isolated` entities have a label and no edge. `labels` counts by
    language, `bad_lines` by rule; the lines themselves are in `bad_lines.tsv` in the folder.
    `hubs` are the entities with the most edges. `graph_hash` depends on the content alone, not on
    the order in which it was read.
    """

    graph_hash: str
    namespace: str
    triples: int
    entities: int
    relations: int
    literals: int
    labels: dict[str, int]
    labelled: int
    duplicates: int
    self_loops: int
    isolated: int
    hubs: dict[str, int]
    bad_lines: dict[str, int]
    examples: tuple[str, ...] = ()


@contextmanager
def replaced(folder: Path) -> Iterator[Path]:
    """Give an empty folder beside `folder`, which takes its place when the block ends well.

    A kill or an error leaves what stood at `folder` as it was.
    """
    if folder.exists() and not (folder / MANIFEST).is_file() and any(folder.iterdir()):
        raise SettingsError(
            f"{folder} holds files that are not a graph's. Name a new or empty folder."
        )
    folder.parent.mkdir(parents=True, exist_ok=True)
    fresh = folder.with_name(f".{folder.name}.building-{os.getpid()}")
    old = folder.with_name(f".{folder.name}.old-{os.getpid()}")
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir()
    try:
        yield fresh
        if folder.exists():
            folder.rename(old)
        fresh.rename(folder)
    finally:
        if old.exists() and not folder.exists():
            old.rename(folder)
        shutil.rmtree(fresh, ignore_errors=True)
        shutil.rmtree(old, ignore_errors=True)


def write_arrays(
    folder: Path, arrays: Mapping[str, np.ndarray], manifest: Mapping[str, Any]
) -> None:
    """Write the arrays, then the manifest, which makes the folder valid."""
    files = {}
    for name, array in arrays.items():
        path = folder / f"{name}.npy"
        np.save(path, array, allow_pickle=False)
        size = path.stat().st_size
        files[name] = {"bytes": size, "start": size - array.nbytes, "type": array.dtype.char}
    whole = {"format": FORMAT, "version": VERSION, **manifest, "arrays": files}
    (folder / MANIFEST).write_text(json.dumps(whole, indent=1), encoding="utf-8")


def read_manifest(folder: Path) -> dict[str, Any]:
    """Return the manifest of a whole index of this version.

    Raises SettingsError for any other folder.
    """
    again = "Build it again: hopling graph build SOURCE --out FOLDER."
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    except OSError as error:
        raise SettingsError(f"{folder} is not a hop index: no {MANIFEST}. {again}") from error
    except ValueError as error:
        raise SettingsError(f"{folder / MANIFEST} is damaged ({error}). {again}") from error
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise SettingsError(f"{folder} is not a hop index: its manifest is another's. {again}")
    if manifest["version"] != VERSION:
        raise SettingsError(
            f"{folder} has version {manifest['version']}; this hopling reads {VERSION}. {again}"
        )
    for name, file in manifest["arrays"].items():
        path = folder / f"{name}.npy"
        found = path.stat().st_size if path.is_file() else 0
        if found != file["bytes"]:
            raise SettingsError(
                f"{path} has {found} bytes, not {file['bytes']}: it was cut short. {again}"
            )
    return manifest


def map_arrays(folder: Path, manifest: Mapping[str, Any]) -> dict[str, memoryview]:
    """Return each array as a view of its file; nothing is read until it is indexed."""
    views = {}
    for name, file in manifest["arrays"].items():
        with (folder / f"{name}.npy").open("rb") as stream:
            mapped = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
        views[name] = memoryview(mapped)[file["start"] :].cast(file["type"])
    return views
