import json
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import pytest

from hopling.errors import SettingsError
from hopling.evaluation.run import Run, manifest
from hopling.settings import setting


@dataclass(frozen=True)
class SFT:
    epochs: int = setting(5, "paper App. B")


@dataclass(frozen=True)
class Settings:
    endpoint: str = setting("http://localhost:8890/sparql", "ours")
    quiet: bool = setting(False, "ours")
    sft: SFT = setting(SFT(), "ours")


def test_a_folder_with_other_settings_is_refused_by_name(tmp_path: Path) -> None:
    """USERS 3.2, point 5: a folder is one run."""
    Run(tmp_path, Settings())
    with pytest.raises(SettingsError, match=r"other settings: quiet, sft\.epochs differ"):
        Run(tmp_path, Settings(quiet=True, sft=SFT(6)))


def test_settings_that_change_no_result_may_differ(tmp_path: Path) -> None:
    """Ours."""
    Run(tmp_path, Settings())
    run = Run(tmp_path, Settings(quiet=True), may_differ=["quiet"])
    assert run.checkpoint("sft") == tmp_path / "checkpoint" / "sft"


def test_a_stage_that_was_marked_is_done_after_a_restart(tmp_path: Path) -> None:
    """Issue 2: a killed recipe resumes at its stage."""
    Run(tmp_path, Settings()).mark("traces", {"free_calls": 3})
    Run(tmp_path, Settings()).mark("sft")
    run = Run(tmp_path, Settings())
    assert run.done("traces") == {"free_calls": 3}
    assert run.done("sft") == {}
    assert run.done("rl") is None


def test_no_secret_reaches_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """BUGS B35."""
    monkeypatch.setenv("TEACHER_API_KEY", "sk-test-DO-NOT-LOG-123")
    settings = Settings(endpoint="http://user:password@localhost/sparql")
    run = Run(tmp_path, settings)
    command = "hopling run sog_r1 --key sk-test-DO-NOT-LOG-123"
    date = datetime(2026, 11, 3, 12)
    run.write_manifest(manifest(settings, seed=0, graph_hash="ab", command=command, date=date))
    text = "".join(path.read_text(encoding="utf-8") for path in tmp_path.iterdir())
    assert "DO-NOT-LOG" not in text
    assert "user:password" not in text
    Run(tmp_path, settings)  # and it is still the same run


def test_a_manifest_says_what_is_needed_to_repeat_the_run() -> None:
    """USERS need 4."""
    date = datetime(2026, 11, 3, 12)
    row = manifest(Settings(), seed=3, graph_hash="ab", command="hopling quickstart", date=date)
    assert (row["seed"], row["graph_hash"], row["date"]) == (3, "ab", "2026-11-03T12:00:00")
    assert {"versions", "python", "platform", "command", "settings"} <= set(row)
    assert "numpy" in row["versions"]  # type: ignore[operator]
    json.dumps(row)
