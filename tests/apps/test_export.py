import json
from pathlib import Path

import pytest

from apps.conftest import Hopling, player
from hopling import apps

RIGHT = {"t1": ["Ann Lee"], "t2": ["Dale, Jr."], "t3": ["Cy"]}


@pytest.fixture
def run(
    hopling: Hopling, films: Path, tasks: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Path:
    """Return the folder of an evaluation of three tasks in two stages."""
    monkeypatch.setattr(apps.evaluate, "open_model", lambda asked: player(RIGHT))
    given = "--model", "scripted", "--graph", films, "--tasks", tasks, "--out", "run"
    assert hopling("eval", *given, "--closed-book").code == 0
    return tmp_path / "run"


@pytest.mark.parametrize(("format", "key"), [("messages", "messages"), ("sharegpt", "system")])
def test_each_episode_becomes_a_row(hopling: Hopling, run: Path, format: str, key: str) -> None:
    """USERS.md 4.3."""
    ran = hopling("export", run, "--format", format, "--out", "x.jsonl")
    assert ran.out == "x.jsonl: 6 episodes\n"
    rows = [json.loads(line) for line in Path("x.jsonl").read_text().splitlines()]
    assert len(rows) == 6
    assert all(key in row for row in rows)


def test_inspect_gets_a_log_with_scores(hopling: Hopling, run: Path) -> None:
    """USERS.md 4.5: Inspect's log format."""
    stage = "--stage", "With the graph"
    assert hopling("export", run, "--format", "inspect", "--out", "x.json", *stage).code == 0
    log = json.loads(Path("x.json").read_text())
    assert log["eval"]["model"] == "With the graph"
    assert [sample["id"] for sample in log["samples"]] == ["t1", "t2", "t3"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("nowhere", "--out", "x"), "There are no episodes at nowhere"),
        (("run", "--out", "x", "--stage", "RL"), "no episodes of stage 'RL'"),
        (("run", "--out", "x.eval", "--format", "inspect"), "does not end in .json"),
    ],
)
def test_what_cannot_be_exported_is_said(
    hopling: Hopling, run: Path, arguments: tuple[str, ...], said: str
) -> None:
    """CONVENTIONS, "Errors"."""
    ran = hopling("export", *arguments)
    assert (ran.code, said in ran.err) == (2, True), ran.err
