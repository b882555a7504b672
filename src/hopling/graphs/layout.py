"""The folder that a hop index is: a manifest and one array a file, written whole or not at all."""

import errno
import fcntl
import io
import json
import mmap
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np

from hopling.errors import SettingsError

FORMAT = "hopling hop index"
VERSION = 2
MANIFEST = "manifest.json"

_HEAD_BYTES = 128
_BLOCK = 1 << 20


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

    A kill, an error or a full disk leaves what stood at `folder` as it was; what killed builds
    left beside it is removed. Raises SettingsError when the disk is full.
    """
    if folder.exists() and not (folder / MANIFEST).is_file() and any(folder.iterdir()):
        raise SettingsError(
            f"{folder} holds files that are not a graph's. Name a new or empty folder."
        )
    folder.parent.mkdir(parents=True, exist_ok=True)
    _clear_left_overs(folder)
    fresh = folder.with_name(f".{folder.name}.building-{os.getpid()}")
    old = folder.with_name(f".{folder.name}.old-{os.getpid()}")
    fresh.mkdir()
    lock = _locked(fresh)
    try:
        yield fresh
        if folder.exists():
            folder.rename(old)
        fresh.rename(folder)
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        raise SettingsError(
            f"The disk of {folder.parent} is full; what stood at {folder} is as it was. "
            "Free some space, or write to a folder on another disk."
        ) from error
    finally:
        if old.exists() and not folder.exists():
            old.rename(folder)
        shutil.rmtree(fresh, ignore_errors=True)
        shutil.rmtree(old, ignore_errors=True)
        if lock is not None:
            os.close(lock)


def _locked(folder: Path) -> int | None:
    """Return a descriptor that holds the folder's lock, None where another process has it."""
    lock = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(lock)
        return None
    return lock


def _clear_left_overs(folder: Path) -> None:
    """Put back what a killed build moved away, and remove what it left; the system freed its lock.

    A build that is still running keeps its folder.
    """
    for old in sorted(folder.parent.glob(f".{folder.name}.old-*")):
        if not folder.exists():
            old.rename(folder)
        else:
            shutil.rmtree(old, ignore_errors=True)
    for left in folder.parent.glob(f".{folder.name}.building-*"):
        lock = _locked(left)
        if lock is not None:
            shutil.rmtree(left, ignore_errors=True)
            os.close(lock)


class ArrayFile:
    """An array on disk that grows at its end; its length is written when it is closed."""

    def __init__(self, path: Path, dtype: str):
        self.path, self.length = path, 0
        self._dtype = np.dtype(dtype)
        self._crc = 0
        self._file = path.open("wb")
        self._file.write(bytes(_HEAD_BYTES))

    def append(self, values: np.ndarray) -> None:
        """Add values, converted to the array's type."""
        array = np.ascontiguousarray(values, self._dtype)
        data = array.data.cast("B") if len(array) else b""
        self._crc = crc32(data, self._crc)
        self._file.write(data)
        self.length += len(array)

    def close(self) -> None:
        """Close the file; without `finish` it stays cut."""
        with suppress(OSError):
            self._file.close()

    def finish(self) -> dict[str, Any]:
        """Write the header, and return the file's entry in the manifest."""
        described = np.lib.format.header_data_from_array_1_0(np.empty(0, self._dtype))
        described["shape"] = (self.length,)
        head = io.BytesIO()
        np.lib.format.write_array_header_1_0(head, described)
        assert len(head.getvalue()) == _HEAD_BYTES
        self._file.seek(0)
        self._file.write(head.getvalue())
        self._file.close()
        return {
            "bytes": _HEAD_BYTES + self.length * self._dtype.itemsize,
            "start": _HEAD_BYTES,
            "type": self._dtype.char,
            "crc32": self._crc,
        }


class IndexWriter:
    """Writes the arrays of an index one after the other, or several side by side."""

    def __init__(self, folder: Path):
        self.folder, self.work = folder, folder / "work"  # `work` is gone in the end
        self.work.mkdir()
        self._files: dict[str, dict[str, Any]] = {}

    @contextmanager
    def array(self, name: str, dtype: str) -> Iterator[ArrayFile]:
        """Give an array to append to."""
        file = ArrayFile(self.folder / f"{name}.npy", dtype)
        try:
            yield file
            self._files[name] = file.finish()
        finally:
            file.close()

    def put(self, name: str, values: np.ndarray) -> None:
        """Write a whole array."""
        with self.array(name, values.dtype.char) as file:
            file.append(values)

    def put_texts(self, name: str, texts: Sequence[str]) -> None:
        """Write texts as `NAME_text`, with where each starts in `NAME_start`."""
        encoded = [text.encode() for text in texts]
        sizes = np.array([len(text) for text in encoded], np.int64)
        self.put(f"{name}_start", np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64))
        self.put(f"{name}_text", np.frombuffer(b"".join(encoded), np.uint8))

    def read(self, name: str) -> np.ndarray:
        """Return an array written before, mapped."""
        file = self._files[name]
        return _mapped(self.folder / f"{name}.npy", file)

    def content_hash(self) -> str:
        """Return a hash of all arrays so far."""
        rows = sorted((name, file["bytes"], file["crc32"]) for name, file in self._files.items())
        return sha256(json.dumps(rows).encode()).hexdigest()[:16]

    def finish(self, manifest: Mapping[str, Any]) -> None:
        """Write the manifest, which makes the folder valid."""
        shutil.rmtree(self.work)
        _write_manifest(self.folder, manifest, self._files)


def _mapped(path: Path, file: Mapping[str, Any]) -> np.ndarray:
    dtype = np.dtype(file["type"])
    if file["bytes"] == file["start"]:
        return np.empty(0, dtype)
    return np.memmap(path, dtype, "r", offset=file["start"])


def write_arrays(
    folder: Path, arrays: Mapping[str, np.ndarray], manifest: Mapping[str, Any]
) -> None:
    """Write the arrays, then the manifest, which makes the folder valid."""
    files = {}
    for name, array in arrays.items():
        path = folder / f"{name}.npy"
        np.save(path, array, allow_pickle=False)
        size = path.stat().st_size
        files[name] = {
            "bytes": size,
            "start": size - array.nbytes,
            "type": array.dtype.char,
            "crc32": crc32(array.tobytes()),
        }
    _write_manifest(folder, manifest, files)


def _write_manifest(folder: Path, manifest: Mapping[str, Any], files: Mapping[str, Any]) -> None:
    arrays = dict(sorted(files.items()))  # in one order, whichever was written first
    whole = {"format": FORMAT, "version": VERSION, **manifest, "arrays": arrays}
    (folder / MANIFEST).write_text(json.dumps(whole, indent=1), encoding="utf-8")


def check_arrays(folder: Path) -> list[str]:
    """Return the arrays whose content is not what was written; all of them are read.

    Raises SettingsError for a folder that is not a whole index of this version.
    """
    damaged = []
    for name, file in read_manifest(folder)["arrays"].items():
        crc = 0
        with (folder / f"{name}.npy").open("rb") as stream:
            stream.seek(file["start"])
            while block := stream.read(_BLOCK):
                crc = crc32(block, crc)
        if crc != file["crc32"]:
            damaged.append(name)
    return damaged


def read_manifest(folder: Path) -> dict[str, Any]:
    """Return the manifest of a whole index of this version.

    Raises SettingsError for any other folder.
    """
    again = "Build it again: hopling graph build SOURCE --out FOLDER."
    manifest = own_manifest(folder, FORMAT, version=VERSION, other="not a hop index", again=again)
    for name, file in manifest["arrays"].items():
        refuse_cut(folder / f"{name}.npy", file["bytes"], again=again)
    return manifest


def own_manifest(
    folder: Path, format: str, *, version: int, other: str, again: str
) -> dict[str, Any]:
    """Return a folder's manifest if it is of this format and version.

    Raises SettingsError for any other folder; it is `other`, and `again` says what to do.
    """
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    except OSError as error:
        raise SettingsError(f"{folder} is {other}: no {MANIFEST}. {again}") from error
    except ValueError as error:
        raise SettingsError(f"{folder / MANIFEST} is damaged ({error}). {again}") from error
    if not isinstance(manifest, dict) or manifest.get("format") != format:
        raise SettingsError(f"{folder} is {other}: its manifest is another's. {again}")
    if (found := manifest.get("version")) != version:
        raise SettingsError(f"{folder} has version {found}; this hopling reads {version}. {again}")
    return manifest


def refuse_cut(path: Path, size: int, *, again: str) -> None:
    """Raise SettingsError if a file has not the bytes that its manifest tells."""
    found = path.stat().st_size if path.is_file() else 0
    if found != size:
        raise SettingsError(f"{path} has {found} bytes, not {size}: it was cut short. {again}")


def map_arrays(folder: Path, manifest: Mapping[str, Any]) -> dict[str, memoryview]:
    """Return each array as a view of its file; nothing is read until it is indexed."""
    views = {}
    for name, file in manifest["arrays"].items():
        with (folder / f"{name}.npy").open("rb") as stream:
            mapped = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
        views[name] = memoryview(mapped)[file["start"] :].cast(file["type"])
    return views
