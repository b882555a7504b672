import io
import json
import re
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from hopling.evaluation.charts import Curve
from hopling.evaluation.console import show_episode, table
from hopling.evaluation.evaluate import Evaluation, evaluate
from hopling.evaluation.page import page
from hopling.evaluation.report import Report
from hopling.rewards.answers import exact_match
from hopling.settings import setting

HOSTILE = "</pre></script><script>alert(1)</script><img src=x onerror=alert(1)>\x1b[2J"


@dataclass(frozen=True)
class Settings:
    epochs: int = setting(5, "paper App. B", "Passes over the traces.")
    student: str = setting("tiny", "ours")


class Tags(HTMLParser):
    """Collects the tags that a browser would see."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: set[str] = set()
        self.attributes: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.add(tag)
        self.attributes |= {name for name, _ in attrs}


def make_report(world: Any, *, question: str = "Who?") -> Report:
    hints = [{"hops": 1 + n % 2, "qtype": "a", "split": "test"} for n in range(8)]
    hints += [{"hops": 2, "qtype": "b", "split": "unseen"}] * 4
    tasks = [
        type(task)(task.id, question, answers=("Ann",), hints=hint)
        for task, hint in zip(world.tasks(12), hints, strict=True)
    ]
    stages = {
        name: played(world, tasks, num_right=num_right, num_calls=num_calls)
        for name, num_right, num_calls in (("Base", 1, 3), ("SFT", 4, 2), ("SFT + RL", 7, 1))
    }
    curve = Curve("rl", "reward", ((0, 0.1), (1, 0.5)))
    return Report("movies", stages, Settings(epochs=3), {"seed": 0, "date": "2026"}, (curve,))


def played(world: Any, tasks: Any, *, num_right: int, num_calls: int) -> Evaluation:
    policy = world.policy(lambda view: int(view.task_id[1:]) < num_right, num_calls=num_calls)
    return evaluate(policy, world.environment, tasks, seed=0)


def test_the_json_holds_every_number_by_stage(world: Any, tmp_path: Path) -> None:
    """Issue 2: the same numbers as report.json."""
    make_report(world).write(tmp_path)
    numbers = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))
    sft = numbers["stages"]["SFT"]
    assert sft["means"]["exact_match"]["value"] == 0.5
    assert sft["num_tasks"] == 8
    assert sft["unseen"]["means"]["exact_match"]["value"] == 0.0
    assert sft["calls_per_correct"]["value"] == 2.0
    assert sft["by_hops"]["1"]["exact_match"]["num"] == 4
    rows = [(c["before"], c["after"], c["fixed"]) for c in numbers["comparisons"]]
    assert rows[0] == ("Base", "SFT", 3)
    assert ("Base", "SFT + RL", 6) in rows
    assert numbers["settings"][0]["source"] == "paper App. B"


def test_the_page_shows_the_numbers_of_the_json(world: Any, tmp_path: Path) -> None:
    """Issue 2: report.html has the same numbers."""
    report = make_report(world)
    html = report.write(tmp_path).read_text(encoding="utf-8")
    for stage in report.numbers["stages"].values():
        for metric in ("exact_match", "hits_first", "hits_any", "f1", "observed"):
            row = stage["means"][metric]
            shown = f"{100 * row['value']:.1f} <span"
            assert shown in html
            assert f"{100 * row['low']:.1f} to {100 * row['high']:.1f}" in html
    for text in ("Hits@1, first", "Hits@1, any", "set here; default 5, paper App. B", "polyline"):
        assert text in html


def test_the_page_loads_nothing_and_runs_nothing(world: Any, tmp_path: Path) -> None:
    """USERS 3.2, point 8: offline; USERS need 12: hostile text is inert wherever it comes from."""
    world.environment.tools[0].name = "find"
    report = make_report(world, question=HOSTILE)
    hostile = Report(HOSTILE, {HOSTILE: report.stages["SFT"]}, Settings(student=HOSTILE), {})
    tags = Tags()
    html = hostile.write(tmp_path).read_text(encoding="utf-8")
    tags.feed(html)
    assert not tags.seen & {"script", "img", "link", "iframe", "object"}
    assert not {name for name in tags.attributes if name.startswith("on")}
    assert not re.search(r"(?:src|href)\s*=|url\(|@import", html.replace("src=x", ""))


def test_examples_show_one_question_in_all_stages(world: Any) -> None:
    """USERS 3.2, point 8: side by side."""
    first, *_ = make_report(world).examples
    assert [example.stage for example in first] == ["SFT + RL", "Base", "SFT"]
    assert first[0].outcome == "correct"
    assert len({example.episode.task.id for example in first}) == 1


def test_calls_stand_with_their_full_results(world: Any, tmp_path: Path) -> None:
    """USERS 3.2, point 8: a call's arguments and its full result."""
    html = make_report(world).write(tmp_path).read_text(encoding="utf-8")
    assert "call find(what=&#x27;t0&#x27;)" in html
    assert "Ann of t0" in html
    assert "policy, trained" in html


def test_a_report_of_unscored_episodes_is_written(world: Any, tmp_path: Path) -> None:
    """DESIGN law 5: a run whose graph was down is reported as that, not as zero."""
    world.find.down = {"t0", "t1"}
    found = evaluate(world.policy(lambda view: True), world.environment, world.tasks(2), seed=0)
    report = Report("down", {"Base": found}, Settings())
    assert "none" in report.write(tmp_path).read_text(encoding="utf-8")
    assert report.numbers["stages"]["Base"]["outcomes"]["world failure"] == 2
    assert "none" in printed(report)


def test_a_report_without_stages_is_written(tmp_path: Path) -> None:
    """Ours."""
    assert Report("empty", {}, Settings()).write(tmp_path).exists()


def printed(report: Report) -> str:
    out = io.StringIO()
    Console(file=out, width=80).print(table(report))
    return out.getvalue()


def test_the_table_fits_in_80_columns_and_is_plain_without_a_terminal(world: Any) -> None:
    """USERS 3.2, point 4: plain lines when not a TTY."""
    text = printed(make_report(world))
    line = next(line for line in text.splitlines() if "SFT + RL" in line)
    assert "87.5 [62.5, 100.0]" in line
    assert "\x1b" not in text
    assert max(map(len, text.splitlines())) <= 80


@pytest.mark.parametrize("terminal", [True, False])
def test_an_episode_is_shown_whole_and_moves_no_cursor(world: Any, terminal: bool) -> None:
    """USERS need 12: control characters in text of a graph reach no terminal."""
    episode = make_report(world, question=HOSTILE).stages["SFT"].episodes[0]
    out = io.StringIO()
    show_episode(episode, Console(file=out, width=120, force_terminal=terminal))
    text = out.getvalue()
    assert "\x1b[2J" not in text
    assert ("\x1b[" in text) is terminal
    for part in ("policy, trained", "environment", "Ann of t0", "gold: Ann"):
        assert part in text


def test_a_recipes_own_metrics_are_on_the_page(world: Any) -> None:
    """Ours: GTA-RAG's coverage stands beside the metrics that every report has."""
    found = played(world, world.tasks(4), num_right=2, num_calls=1)
    judged = found.judged_by(exact_match, {"chain_found": lambda episode: 0.25})
    shown = page(Report("r", {"SFT": judged}, Settings()).numbers, [])
    assert "Chain found" in shown
    assert "0.25" in shown
    assert "own metrics" not in page(Report("r", {"SFT": found}, Settings()).numbers, [])
