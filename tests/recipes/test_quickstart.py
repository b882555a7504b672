"""The quickstart at a size for tests: every stage, its report, and a run that is taken up again."""

import io
import json
from pathlib import Path

import pytest
from rich.console import Console

from hopling import records
from hopling.errors import SettingsError
from hopling.evaluation.report import Report
from hopling.recipes import quickstart, sog_r1
from hopling.settings import load, untagged

SIZE = {
    "pool": 40,
    "valid": 4,
    "test": 4,
    "known": 4,
    "sft": {"max_steps": 3},
    "grpo": {"steps": 1, "batch_size": 2, "minibatch_size": 2, "micro_batch_size": 8},
}


def played(folder: Path, **changes: object) -> Report:
    """Run the quickstart in a folder."""
    settings = load(quickstart.Settings, SIZE | changes)
    return quickstart.run(settings, folder, Console(file=io.StringIO()))


def test_a_run_reports_each_stage_and_is_not_played_twice(tmp_path: Path) -> None:
    """Ours: the stages of SoG-R1's Table 3; a finished folder gives the same report again."""
    report = played(tmp_path, known=None)
    assert list(report.numbers["stages"]) == ["Base", "SFT", "SFT+RL"]
    assert json.loads((tmp_path / "report.json").read_text()) == report.numbers
    assert "<html" in (tmp_path / "report.html").read_text()
    num_episodes = len(records.read(tmp_path / "episodes.jsonl"))
    again = played(tmp_path, known=None)
    assert again.numbers["stages"] == report.numbers["stages"]
    assert len(records.read(tmp_path / "episodes.jsonl")) == num_episodes


def test_stages_can_be_left_out(tmp_path: Path) -> None:
    """SoG-R1 Table 3: SFT alone."""
    report = played(tmp_path, stages=("sft",))
    assert list(report.numbers["stages"]) == ["Base", "SFT"]


def test_the_closed_book_is_a_row_of_its_own(tmp_path: Path) -> None:
    """Issue 2: what the weights know without the tool, asked for by a flag."""
    report = played(tmp_path, stages=(), closed_book=True)
    assert list(report.numbers["stages"]) == ["Closed book", "Base"]
    assert report.stages["Closed book"].mean("calls").value == 0


def test_every_default_says_where_it_comes_from() -> None:
    """PAPERS.md: each default is tagged paper, code or ours."""
    assert untagged(sog_r1.Settings) == []
    assert untagged(quickstart.Settings) == []


def test_a_small_scale_sets_known_settings_only() -> None:
    """Ours: --scale small is a set of the recipe's own settings."""
    settings = load(sog_r1.Settings, {}, presets=sog_r1.SCALES["small"])
    assert settings.student == "tiny"
    assert settings.grpo.steps == quickstart.Settings().grpo.steps


def test_a_benchmark_without_a_graph_says_what_to_give(tmp_path: Path) -> None:
    """Ours: only the movies ship with their graph."""
    with pytest.raises(SettingsError, match="--graph"):
        sog_r1.run(load(sog_r1.Settings, {}), tmp_path, Console(file=io.StringIO()))
