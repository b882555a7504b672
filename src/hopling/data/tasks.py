"""Tasks in files, and the movie tasks that ship with the package.

Our own format is one JSON object a line (`.jsonl`, or `.jsonl.gz`) with `Task`'s fields; any other
field goes into `hints`. Published question sets (see `questions`) are known by their first record.
"""

import gzip
import json
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, fields, replace
from importlib import resources
from pathlib import Path
from typing import Any, Literal

from hopling.data.questions import Row, Unusable, reader
from hopling.episode import Task, task_from_json
from hopling.errors import DataError
from hopling.graphs.base import Graph
from hopling.records import write_bytes

Split = Literal["train", "valid", "test", "unseen"]

_FIELDS = tuple(field.name for field in fields(Task))
_LISTS = ("start", "answers", "answer_ids", "evidence")
_SHOWN = 5


class _BrokenRule(Exception):
    """A row of our own format that is no task; the message is the rule."""


@dataclass(frozen=True)
class BadLine:
    """A line that is no task, and the rule that it breaks; `place` is "line 3" or "record 3"."""

    place: str
    rule: str
    text: str


@dataclass(frozen=True)
class Audit:
    """What a file holds: its tasks, its bad lines, and how many questions it leaves open and why.

    A question is left open by the published set itself, such as one without a gold answer.
    """

    tasks: tuple[Task, ...]
    bad: tuple[BadLine, ...]
    dropped: Mapping[str, int]


def read_tasks(path: Path) -> list[Task]:
    """Return the tasks of a file, in its order.

    Raises DataError when a line is bad; the message names file, line and rule of the first five.
    `audit_tasks` gives the good ones all the same.
    """
    audit = audit_tasks(path)
    if audit.bad:
        shown = "".join(f"\n  {bad.place}: {bad.rule}: {bad.text}" for bad in audit.bad[:_SHOWN])
        more = len(audit.bad) - _SHOWN
        rest = f"\n  and {more} more" if more > 0 else ""
        raise DataError(
            f"{path} has {len(audit.bad)} bad lines beside {len(audit.tasks)} good tasks; "
            f"mend or delete them:{shown}{rest}"
        )
    return list(audit.tasks)


def audit_tasks(path: Path) -> Audit:
    """Return the good tasks of a file beside its bad lines; nothing is lost, nothing is hidden.

    Raises DataError when the file is absent, no UTF-8, or holds nothing.
    """
    tasks: dict[str, Task] = {}
    bad: list[BadLine] = []
    dropped: Counter[str] = Counter()
    read: Callable[[Row], Task] | None = None
    for place, text, row in _records(path):
        if not isinstance(row, dict):
            bad.append(BadLine(place, "a task is a JSON object", text))
            continue
        read = read or reader(row) or _task
        try:
            task = read(row)
        except Unusable as error:
            dropped[str(error)] += 1
        except KeyError as error:
            bad.append(BadLine(place, f"field {error} is missing", text))
        except _BrokenRule as error:
            bad.append(BadLine(place, str(error), text))
        except (AttributeError, TypeError, ValueError) as error:
            bad.append(BadLine(place, f"the record has another form ({error})", text))
        else:
            if task.id in tasks:
                bad.append(BadLine(place, f"id {task.id!r} is taken by an earlier task", text))
            tasks.setdefault(task.id, task)
    return Audit(tuple(tasks.values()), tuple(bad), dict(dropped))


def write_tasks(path: Path, tasks: Iterable[Task]) -> None:
    """Write the tasks as JSON lines, compressed when the name ends in `.gz`."""
    lines = [json.dumps(asdict(task), ensure_ascii=False) + "\n" for task in tasks]
    data = "".join(lines).encode("utf-8")
    write_bytes(path, gzip.compress(data, mtime=0) if path.suffix == ".gz" else data)


def relabeled(tasks: Iterable[Task], graph: Graph) -> list[Task]:
    """Return the tasks with their answers named as the graph names them, by id where it does not.

    Tasks without `answer_ids` stay as they are.
    """
    tasks = list(tasks)
    nodes = list(dict.fromkeys(node for task in tasks for node in task.answer_ids))
    names = dict(zip(nodes, graph.labels(nodes), strict=True))
    return [
        replace(task, answers=tuple(names[node] or node for node in task.answer_ids))
        if task.answer_ids
        else task
        for task in tasks
    ]


def movies(split: Split | None = None) -> list[Task]:
    """Return the movie tasks that ship with the package, those of one split or all of them.

    `hints` hold the gold `path` (`^r` walks r backwards; the topic is dropped after every hop),
    `hops`, `qtype` and `split`. A topic of `train` is no topic of another split; the one question
    type of `unseen` is in no other. [MetaQA, Zhang et al. 2018]
    """
    tasks = read_tasks(_movie_folder() / "tasks.jsonl.gz")
    return [task for task in tasks if split in (None, task.hints["split"])]


def movie_files() -> tuple[Path, Path]:
    """Return the paths of the shipped triples (head, relation, tail) and names (id, name)."""
    folder = _movie_folder()
    return folder / "triples.tsv.gz", folder / "names.tsv.gz"


def _movie_folder() -> Path:
    return Path(str(resources.files("hopling.data") / "movies"))


def _records(path: Path) -> Iterator[tuple[str, str, Any]]:
    """Yield place, start of the text and value of each record; a line that is no JSON is a str."""
    text = _text(path)
    lines = text.split("\n")
    head = next(line for line in lines if line.strip())
    if not isinstance(_parsed(head), dict) or "Questions" in _parsed(head):
        whole = _parsed(text)
        rows = whole.get("Questions") if isinstance(whole, dict) else whole
        if isinstance(rows, list):
            for number, row in enumerate(rows, 1):
                yield f"record {number}", _start(json.dumps(row, ensure_ascii=False)), row
            return
    for number, line in enumerate(lines, 1):
        if line.strip():
            yield f"line {number}", _start(line.strip()), _parsed(line)


def _text(path: Path) -> str:
    try:
        data = path.read_bytes()
        text = (gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data).decode("utf-8-sig")
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DataError(
            f"{path} is no whole gzip file ({error}); fetch or write it anew."
        ) from error
    except OSError as error:
        raise DataError(f"{path} cannot be read ({error.strerror}); expected tasks.") from error
    except UnicodeDecodeError as error:
        raise DataError(f"{path} is not UTF-8 at byte {error.start}; save it as UTF-8.") from error
    if not text.strip():
        raise DataError(f"{path} is empty; expected one task a line.")
    return text


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _start(text: str) -> str:
    return text if len(text) <= 80 else text[:77] + "..."


def _task(row: Row) -> Task:
    """Read a row of our own format."""
    for name in ("id", "question"):
        if not isinstance(row[name], str) or not row[name].strip():
            raise _BrokenRule(f"{name} is {row[name]!r}; expected some text")
    known = {name: row[name] for name in _FIELDS if name in row}
    for name in _LISTS:
        value = known.setdefault(name, [])
        if not isinstance(value, list) or not all(isinstance(v, str) and v.strip() for v in value):
            raise _BrokenRule(f"{name} is {value!r}; expected a list of texts, none of them empty")
    if not known["answers"]:
        raise _BrokenRule("answers is empty; a task without a gold answer cannot be scored")
    if known["answer_ids"] and len(known["answer_ids"]) != len(known["answers"]):
        raise _BrokenRule("answer_ids has another length than answers; expected one id each")
    hints = known.get("hints", {})
    if not isinstance(hints, dict):
        raise _BrokenRule(f"hints is {hints!r}; expected an object")
    others = {name: value for name, value in row.items() if name not in _FIELDS}
    return task_from_json({**known, "hints": {**hints, **others}})
