"""Question sets with their train, validation and test splits.

The splits are the published ones where the files have them. What is held out for validation, and
all splits of a set of which only one part is at hand, follow from hashes of the questions' ids or
groups, so that they are the same everywhere. [SoG-R1 5.1: a fixed validation set of 300 questions]
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

from hopling.data.tasks import audit_tasks, movies, read_tasks
from hopling.episode import Task
from hopling.errors import DataError, SettingsError, nearest

NUM_VALID = 300  # paper
VALID_SHARE = 0.1  # ours: a small pool gives at most this share to validation
TEST_SHARE = 0.3  # ours: of the groups, where only one part of a set is at hand


@dataclass(frozen=True)
class Benchmark:
    """The splits of a question set, and how many questions were dropped and why.

    `unseen` holds questions of a type that is in no other split.
    """

    train: tuple[Task, ...]
    valid: tuple[Task, ...]
    test: tuple[Task, ...]
    unseen: tuple[Task, ...] = ()
    dropped: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class _Layout:
    """File names of one published form; `part` files are divided by us.

    A file name may be a pattern; `group` names what must not be divided between splits.
    """

    train: tuple[str, ...] = ()
    test: tuple[str, ...] = ()
    part: tuple[str, ...] = ()
    group: Callable[[Task], str] = lambda task: task.id


def _parent(task: Task) -> str:
    return str(task.hints.get("webqsp_id", task.id))


def _program(task: Task) -> str:
    return str(task.hints["s_expression"])


def _walk(task: Task) -> str:
    return f"{task.start} {task.hints['path']}"


_LAYOUTS: dict[str, tuple[_Layout, ...]] = {
    "webqsp": (
        _Layout(part=("questions.jsonl.gz",)),
        _Layout(("WebQSP.train.json*",), ("WebQSP.test.json*",)),
    ),
    "cwq": (
        _Layout(part=("cwq_questions.jsonl.gz",), group=_parent),
        _Layout(
            ("ComplexWebQuestions_train.json*",), ("ComplexWebQuestions_test.json*",), group=_parent
        ),
    ),
    "grailqa": (
        _Layout(part=("grailqa_dev1000_questions.jsonl.gz",), group=_program),
        _Layout(("grailqa_v1.0_train.json*",), ("grailqa_v1.0_dev.json*",), group=_program),
    ),
    "metaqa": (
        _Layout(("questions-?hop-dev.jsonl.gz",), ("questions-?hop-test.jsonl.gz",), group=_walk),
    ),
}


def benchmark(name: str, folder: Path | None = None) -> Benchmark:
    """Return the splits of `movies` (shipped), `webqsp`, `cwq`, `grailqa` or `metaqa`.

    `folder` holds the files, or folders with them. The published test set is the test split
    (GrailQA: the dev set, since its test answers are not public). Validation takes 300 questions of
    train, at most a tenth. No group is divided between train and validation: CWQ questions made
    from one WebQSP question, GrailQA questions with one logical form, MetaQA questions with one
    topic and path; MetaQA's test walks are dropped from train.

    Ours: of CWQ and GrailQA, if only one part is at hand, 30 % of the groups become the test split.
    """
    if name == "movies":
        train, valid, test, unseen = (
            tuple(movies(split)) for split in ("train", "valid", "test", "unseen")
        )
        return Benchmark(train, valid, test, unseen)
    if name not in _LAYOUTS:
        known = ["movies", *_LAYOUTS]
        raise SettingsError(
            f"no benchmark {name!r}.{nearest(name, known)} Known: {', '.join(known)}."
        )
    if folder is None:
        raise SettingsError(f"benchmark {name!r} needs the folder with its files.")
    for layout in _LAYOUTS[name]:
        parts, train_files, test_files = (
            _found(folder, names) for names in (layout.part, layout.train, layout.test)
        )
        if parts or (train_files and test_files):
            return _split(layout, parts, train_files, test_files)
    wanted = " or ".join(
        " + ".join([*layout.part, *layout.train, *layout.test]) for layout in _LAYOUTS[name]
    )
    raise DataError(f"{folder} holds no files of {name}; expected {wanted}.")


def _found(folder: Path, names: Sequence[str]) -> list[Path]:
    return [
        path for name in names for path in sorted([*folder.glob(name), *folder.glob(f"*/{name}")])
    ]


def _split(
    layout: _Layout, parts: list[Path], train_files: list[Path], test_files: list[Path]
) -> Benchmark:
    dropped: Counter[str] = Counter()
    if parts:
        rows = _read(parts, dropped)
        if {row.hints.get("split") for row in rows} >= {"train", "test"}:
            pool = [row for row in rows if row.hints["split"] == "train"]
            test = [row for row in rows if row.hints["split"] == "test"]
        else:
            groups = _by_hash({layout.group(row) for row in rows})
            chosen = set(groups[: round(TEST_SHARE * len(groups))])
            pool = [row for row in rows if layout.group(row) not in chosen]
            test = [row for row in rows if layout.group(row) in chosen]
    else:
        pool, test = _read(train_files, dropped), _read(test_files, dropped)
        tested = {layout.group(row) for row in test} if layout.group is _walk else set()
        left = [row for row in pool if layout.group(row) not in tested]
        dropped["also in test"] = len(pool) - len(left)
        pool = left
    if not test:
        raise DataError(f"{[*parts, *test_files]} hold no answers to test with: {dict(dropped)}.")
    train, valid = _held_out(pool, layout.group)
    return Benchmark(train, valid, tuple(test), dropped={k: n for k, n in dropped.items() if n})


def _read(paths: Sequence[Path], dropped: Counter[str]) -> list[Task]:
    tasks: dict[str, Task] = {}
    for path in paths:
        audit = audit_tasks(path)
        for task in read_tasks(path) if audit.bad else audit.tasks:  # the former raises
            tasks.setdefault(task.id, task)
        dropped.update(audit.dropped)
    return list(tasks.values())


def _held_out(
    pool: Sequence[Task], group: Callable[[Task], str]
) -> tuple[tuple[Task, ...], tuple[Task, ...]]:
    """Return train and validation; groups go to validation in the order of their hashes."""
    members: dict[str, list[Task]] = {}
    for row in pool:
        members.setdefault(group(row), []).append(row)
    wanted = min(NUM_VALID, int(VALID_SHARE * len(pool)))
    chosen: set[str] = set()
    size = 0
    for name in _by_hash(members):
        if size + len(members[name]) <= wanted:
            chosen.add(name)
            size += len(members[name])
    train = tuple(row for row in pool if group(row) not in chosen)
    return train, tuple(row for row in pool if group(row) in chosen)


def _by_hash(names: set[str] | Mapping[str, object]) -> list[str]:
    return sorted(names, key=lambda name: sha256(name.encode()).digest())
