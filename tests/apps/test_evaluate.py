import json
from pathlib import Path

import pytest

from apps.conftest import Hopling, player, write_tasks
from hopling import apps
from hopling.episode import View
from hopling.errors import WorldError
from hopling.policies.scripted import Scripted
from hopling.rollout import Policy

RIGHT = {"t1": ["Ann Lee"], "t2": ["Dale, Jr."], "t3": ["Cy"]}


@pytest.fixture
def asked(hopling: Hopling, films: Path, tasks: Path, monkeypatch: pytest.MonkeyPatch) -> Hopling:
    """Return `hopling eval` of a policy on the films."""

    def run(policy: Policy, *arguments: object) -> object:
        monkeypatch.setattr(apps.evaluate, "open_model", lambda asked: policy)
        given = "--model", "scripted", "--graph", films, "--tasks", tasks, "--out", "run"
        return hopling("eval", *given, *arguments)

    return run  # type: ignore[return-value]


def test_eval_prints_a_table_and_writes_a_report(asked: Hopling, tmp_path: Path) -> None:
    """The issue: table and report; two of three are right."""
    ran = asked(player(RIGHT))
    assert ran.code == 0, ran.err
    assert "66.7 [" in ran.out
    assert "Report: run/report.html" in ran.out
    numbers = json.loads((tmp_path / "run" / "report.json").read_text())
    assert numbers["stages"]["With the graph"]["outcomes"]["correct"] == 2


def test_json_is_all_of_standard_output(asked: Hopling) -> None:
    """USERS.md 3.2."""
    numbers = asked(player(RIGHT), "--json").json
    assert numbers["stages"]["With the graph"]["means"]["exact_match"]["value"] == pytest.approx(
        2 / 3
    )


def test_a_second_eval_plays_only_what_is_missing(asked: Hopling, tmp_path: Path) -> None:
    """BUGS B34, B36: the third record is torn."""
    whole = asked(player(RIGHT), "--json").json
    path = tmp_path / "run" / "episodes.jsonl"
    path.write_bytes(path.read_bytes()[:-40])
    turns: list[str] = []
    again = asked(player(RIGHT, turns=turns), "--json").json
    assert turns == ["t3", "t3"]
    assert (
        again["stages"]["With the graph"]["outcomes"]
        == whole["stages"]["With the graph"]["outcomes"]
    )


def test_a_folder_of_other_settings_is_not_mixed_up(asked: Hopling) -> None:
    """Ours."""
    asked(player(RIGHT))
    ran = asked(player(RIGHT), "--max-turns", "3")
    assert (ran.code, "max_turns differ" in ran.err) == (2, True)


def test_closed_book_is_a_stage_of_its_own_without_the_tool(asked: Hopling) -> None:
    """USERS.md need 4: the closed-book baseline beside the headline."""
    stages = asked(player(RIGHT), "--closed-book", "--json").json["stages"]
    assert list(stages) == ["Closed book", "With the graph"]
    assert stages["Closed book"]["means"]["calls"]["value"] == 0


def test_limit_takes_the_first_tasks(asked: Hopling) -> None:
    """Ours."""
    assert (
        asked(player(RIGHT), "--limit", "2", "--json").json["stages"]["With the graph"]["num_tasks"]
        == 2
    )
    assert asked(player(RIGHT), "--limit", "0").code == 2


def test_unscored_episodes_make_the_exit_code_3(asked: Hopling) -> None:
    """USERS.md 3.2: non-zero whenever anything is incomplete."""

    def fail(view: View) -> str:
        raise WorldError("the server did not answer.")

    ran = asked(Scripted.from_function(fail))
    assert (ran.code, "3 episodes are unscored" in ran.err) == (3, True)


def test_a_saved_model_is_evaluated(
    hopling: Hopling, films: Path, tasks: Path, student: Path, tmp_path: Path
) -> None:
    """Ours: tokens are counted, so the model itself has played."""
    given = "--model", student, "--graph", films, "--tasks", tasks
    limits = "--max-turns", "2", "--max-turn-tokens", "8"
    ran = hopling("eval", *given, *limits, "--json")
    assert ran.code == 0, ran.err
    assert ran.json["stages"]["With the graph"]["means"]["tokens"]["value"] > 0
    assert (tmp_path / "runs" / "eval-sft-tasks.jsonl" / "report.html").exists()


def test_a_bad_task_is_named_by_file_and_line(hopling: Hopling, tmp_path: Path) -> None:
    """The issue, "Bad input"."""
    write_tasks(tmp_path / "bad.jsonl", {"t1": {"question": "?", "answers": []}})
    ran = hopling("eval", "--tasks", "bad.jsonl", "--model", "x")
    assert (ran.code, "bad.jsonl has 1 bad line" in ran.err, "line 1" in ran.err) == (2, True, True)


def test_answers_are_named_as_the_graph_names_them(
    asked: Hopling, tasks: Path, tmp_path: Path
) -> None:
    """Ours, as the recipes do: the file says "A. Lee", the graph "Ann Lee"."""
    row = {"question": "?", "start": ["m.1"], "answers": ["A. Lee"], "answer_ids": ["m.3"]}
    write_tasks(tasks, {"t1": row})
    numbers = asked(player(RIGHT), "--json").json
    assert numbers["stages"]["With the graph"]["outcomes"]["correct"] == 1
