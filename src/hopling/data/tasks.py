"""Tasks in files, and the movie tasks that ship with the package.

Our own format is one JSON object a line (`.jsonl`, or `.jsonl.gz`) with `Task`'s fields; any other
field goes into `hints`.
"""

import gzip
import json
from collections.abc import Mapping
from dataclasses import fields
from importlib import resources
from pathlib import Path
from typing import Any, Literal

from hopling.episode import Task, task_from_json

Split = Literal["train", "valid", "test", "unseen"]

_FIELDS = tuple(field.name for field in fields(Task))


def movies(split: Split | None = None) -> list[Task]:
    """Return the movie tasks that ship with the package, those of one split or all of them.

    `hints` hold the gold `path` (`^r` walks r backwards; the topic is dropped after every hop),
    `hops`, `qtype` and `split`. A topic of `train` is no topic of another split; the one question
    type of `unseen` is in no other. [MetaQA, Zhang et al. 2018]
    """
    with gzip.open(_movie_folder() / "tasks.jsonl.gz", "rt", encoding="utf-8") as lines:
        tasks = [_task(json.loads(line)) for line in lines]
    return [task for task in tasks if split in (None, task.hints["split"])]


def movie_files() -> tuple[Path, Path]:
    """Return the paths of the shipped triples (head, relation, tail) and names (id, name)."""
    folder = _movie_folder()
    return folder / "triples.tsv.gz", folder / "names.tsv.gz"


def _movie_folder() -> Path:
    return Path(str(resources.files("hopling.data") / "movies"))


def _task(row: Mapping[str, Any]) -> Task:
    known = {name: row[name] for name in _FIELDS if name in row}
    others = {name: value for name, value in row.items() if name not in _FIELDS}
    return task_from_json({**known, "hints": {**known.get("hints", {}), **others}})
