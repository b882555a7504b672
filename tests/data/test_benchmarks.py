"""Splits are the same everywhere, and no group is divided between train and validation."""

import gzip
import json
import os
from pathlib import Path
from typing import Any

import pytest

from hopling.data.benchmarks import Benchmark, benchmark
from hopling.errors import DataError, SettingsError

SHARED = Path(
    os.environ.get("HOPLING_SHARED_DATA") or Path(__file__).parents[3] / "shared" / "data"
)


def cwq_row(number: int, parent: int) -> dict[str, Any]:
    return {
        "id": f"q{number}",
        "split": "test",
        "question": "?",
        "compositionality_type": "composition",
        "webqsp_id": f"w{parent}",
        "topic_entities": {"m.1": "One"},
        "sparql": "ASK {}",
        "answers": [{"label": "Two", "id": "m.2", "value": None}],
        "pattern_class": "plain",
        "check_mini": "exact",
    }


def metaqa_row(number: int, topic: str, split: str) -> dict[str, Any]:
    return {
        "id": f"{split}-{number}",
        "hops": 1,
        "split": split,
        "question": "?",
        "topic": topic,
        "answers": ["x"],
        "qtype": "q",
        "path": ["r"],
        "check": "exact",
    }


def write(path: Path, rows: list[dict[str, Any]]) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(gzip.compress("\n".join(map(json.dumps, rows)).encode()))


def ids(found: Benchmark) -> list[set[str]]:
    return [{task.id for task in split} for split in (found.train, found.valid, found.test)]


def test_one_part_of_cwq_is_divided_by_parent_question_whatever_its_order(tmp_path: Path) -> None:
    """Ours: 30 % of the parents to test, a tenth of the rest's questions to validation."""
    rows = [cwq_row(number, number // 4) for number in range(400)]
    write(tmp_path / "one" / "cwq_questions.jsonl.gz", rows)
    write(tmp_path / "two" / "cwq_questions.jsonl.gz", rows[::-1])
    first, second = benchmark("cwq", tmp_path / "one"), benchmark("cwq", tmp_path / "two")
    assert ids(first) == ids(second)
    assert [len(part) for part in ids(first)] == [252, 28, 120]
    parents = [
        {task.hints["webqsp_id"] for task in split}
        for split in (first.train, first.valid, first.test)
    ]
    assert sum(map(len, parents)) == len(set.union(*parents)) == 100


def test_metaqa_trains_on_no_walk_that_is_tested(tmp_path: Path) -> None:
    """Ours: held-out means unseen (topic, path) pairs."""
    dev = [metaqa_row(number, f"t{number}", "dev") for number in range(100)]
    test = [metaqa_row(number, f"t{number}", "test") for number in range(95, 120)]
    write(tmp_path / "questions-1hop-dev.jsonl.gz", dev)
    write(tmp_path / "questions-1hop-test.jsonl.gz", test)
    found = benchmark("metaqa", tmp_path)
    assert [len(part) for part in ids(found)] == [86, 9, 25]
    assert found.dropped == {"also in test": 5}
    tested = {task.start for task in found.test}
    assert not tested & {task.start for task in found.train + found.valid}


def test_movies_need_no_folder() -> None:
    """The issue: the movie graph ships with the package."""
    found = benchmark("movies")
    assert [len(part) for part in ids(found)] == [8400, 300, 3300]
    assert len(found.unseen) == 119


def test_an_unknown_name_and_an_empty_folder_say_what_to_write(tmp_path: Path) -> None:
    """CONVENTIONS: unknown names name the nearest one."""
    with pytest.raises(SettingsError, match=r"no benchmark 'webqps'. Did you mean 'webqsp'\?"):
        benchmark("webqps", tmp_path)
    with pytest.raises(SettingsError, match="needs the folder"):
        benchmark("cwq")
    with pytest.raises(DataError, match=r"holds no files of grailqa; expected .*_train\.json"):
        benchmark("grailqa", tmp_path)


def test_a_bad_line_stops_a_benchmark(tmp_path: Path) -> None:
    """The issue: a task file's bad line is named by file, line and rule."""
    write(tmp_path / "cwq_questions.jsonl.gz", [cwq_row(1, 1), {"id": "q2"}])
    with pytest.raises(DataError, match=r"line 2: field '.*' is missing"):
        benchmark("cwq", tmp_path)


@pytest.mark.parametrize(
    ("name", "sizes"),
    [
        (name, sizes)
        for name, sizes in [
            ("webqsp", [2771, 300, 1628]),
            ("cwq", [1213, 134, 385]),
            ("grailqa", [624, 69, 295]),
        ]
        if SHARED.is_dir()
    ],
)
def test_real_sets_have_fixed_splits(name: str, sizes: list[int]) -> None:
    """SoG-R1 5.1: WebQSP holds out 300 questions and is tested on 1,628; others are ours."""
    found = benchmark(name, SHARED)
    assert [len(part) for part in ids(found)] == sizes
    train, valid, test = ids(found)
    assert len(train | valid | test) == sum(sizes)
