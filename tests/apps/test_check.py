from pathlib import Path
from typing import Any

import pytest

from apps.conftest import ASKED, Hopling, write_tasks
from hopling import apps
from hopling.apps.check import failures_of
from hopling.data.tasks import movie_files, movies
from hopling.episode import Task
from hopling.graphs import HopIndex, build_index
from small_graph import SmallGraph


def test_tasks_that_can_be_won_pass(hopling: Hopling, films: Path, tasks: Path) -> None:
    """The issue; `Dale, Jr.` is one name, so it is looked at before it is answered."""
    ran = hopling("check", "--tasks", tasks, "--graph", films)
    assert ran.code == 0, ran.out
    assert ran.out.count(" 3 ") >= 5


@pytest.mark.parametrize(
    ("changes", "check", "why"),
    [
        ({"start": []}, "start", "none is named"),
        ({"start": ["m.99"]}, "start", "'m.99'"),
        ({"answers": ["Nobody"]}, "present", "'Nobody'"),
        ({"answers": ["Far Off"]}, "reachable", "not within 4 hops: 'Far Off'"),
        ({"answers": ["Dale, Jr."], "hops": 1, "start": ["m.5"]}, "reachable", "not within 1"),
        ({"answers": ["Ann {Lee"]}, "gold", "does not read back"),
    ],
)
def test_what_a_task_fails_is_listed_by_its_id(
    hopling: Hopling, films: Path, tmp_path: Path, changes: dict[str, Any], check: str, why: str
) -> None:
    """The issue: `hopling check` lists what fails by task id, and exits with 1."""
    write_tasks(tmp_path / "t.jsonl", {"bad": ASKED["t1"] | changes, "good": ASKED["t2"]})
    ran = hopling("check", "--tasks", "t.jsonl", "--graph", films, "--json")
    failures = [failure for failure in ran.json["failures"] if failure["check"] == check]
    assert (ran.code, [failure["id"] for failure in failures]) == (1, ["bad"])
    assert why in failures[0]["why"]
    assert (ran.json["tasks"], ran.json["failed"]) == (2, 1)


def test_the_table_counts_failures_and_shows_the_first(
    hopling: Hopling, films: Path, tmp_path: Path
) -> None:
    """Ours."""
    lost = {f"t{i}": ASKED["t1"] | {"answers": ["Nobody"]} for i in range(3)}
    write_tasks(tmp_path / "t.jsonl", lost)
    ran = hopling("check", "--tasks", "t.jsonl", "--graph", films, "--show", "1")
    assert ran.code == 1
    assert "'Nobody'" in ran.out
    assert "2 more" in ran.out


def test_hops_bound_how_far_an_answer_may_be(hopling: Hopling, films: Path, tasks: Path) -> None:
    """The issue: gold answers reachable within k hops; t3's are two hops away."""
    ran = hopling("check", "--tasks", tasks, "--graph", films, "--hops", "1", "--json")
    assert {failure["id"] for failure in ran.json["failures"]} == {"t3"}


def test_a_literal_is_an_answer_like_any_other() -> None:
    """Ours: a year has no label and no edges of its own."""
    graph = SmallGraph([("m.1", "year", '"1999"'), ("m.2", "has", "m.1")], {"m.1": "Kismet"})
    task = Task("t", "?", start=("m.2",), answers=("1999",), answer_ids=("1999",))
    assert failures_of(task, graph, hops=2) == []
    assert [f.check for f in failures_of(task, graph, hops=1)] == ["present"]


def test_an_answer_on_a_later_page_is_looked_at_there(tmp_path: Path) -> None:
    """PAPERS.md 1.2: 50 rows a page; the comma needs the name observed."""
    graph = SmallGraph(
        [("m.0", "has", f"m.{i}") for i in range(100, 180)],
        {f"m.{i}": f"Name, {i}" for i in range(100, 180)},
    )
    task = Task("t", "?", start=("m.0",), answers=("Name, 179",), answer_ids=("m.179",))
    assert failures_of(task, graph) == []


def test_a_reward_that_pays_for_nothing_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """BUGS B32: an empty answer must earn nothing."""
    monkeypatch.setattr(apps.check, "sog_r1", lambda free_calls: lambda episode: 1.0)
    graph = SmallGraph([("m.1", "has", "m.2")], {"m.2": "Ann"})
    task = Task("t", "?", start=("m.1",), answers=("Ann",))
    assert [failure.check for failure in failures_of(task, graph)] == ["empty"]


def test_shipped_tasks_can_be_won(tmp_path: Path) -> None:
    """CONVENTIONS, "Tests": every shipped task's gold answer; here some of each type."""
    triples, names = movie_files()
    build_index(triples, tmp_path / "g", labels=names)
    graph = HopIndex.open(tmp_path / "g")
    assert [failure for task in movies()[::50] for failure in failures_of(task, graph)] == []
