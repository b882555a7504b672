import json
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import httpx
import pytest
from rich.console import Console

from hopling.data.teach import teach
from hopling.dialects import ToolCalls
from hopling.environment import Environment
from hopling.episode import Ending, Task
from hopling.errors import SettingsError
from hopling.evaluation.console import table
from hopling.evaluation.episode_log import EpisodeLog
from hopling.evaluation.evaluate import evaluate
from hopling.evaluation.report import Report
from hopling.evaluation.run import Run, manifest
from hopling.graphs import Connection, SparqlEndpoint
from hopling.policies.server import Server
from hopling.rewards.answers import exact_match
from hopling.settings import setting
from hopling.tools import OneHopSearch

KEY, PASSWORD = "sk-test-DO-NOT-LOG-123", "hunter22"


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


def _teacher() -> Server:
    """Return a server that is down for one question and searches for the others, key in hand."""

    def reply(request: httpx.Request) -> httpx.Response:
        assert request.headers["Authorization"] == f"Bearer {KEY}"
        if b"Is it down?" in request.content:
            return httpx.Response(503, text=f"no capacity for {KEY}")
        call = '{"name": "Search", "arguments": {"entities": ["m.1"], "direction": "outgoing"}}'
        text = "Final answer: {Ann}" if b"by heart" in request.content else call
        message = {"content": text if text != call else f"<tool_call>{call}</tool_call>"}
        return httpx.Response(200, json={"choices": [{"message": message}]})

    transport = httpx.MockTransport(reply)
    return Server("http://t.example/v1", "big", transport=transport, sleep=lambda seconds: None)


def test_a_run_with_failures_leaves_no_secret_in_its_folder_or_on_the_screen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """BUGS B35: a teacher's key, an endpoint with a password, failing requests; 0 hits."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    refuse = httpx.MockTransport(lambda request: httpx.Response(401, text=f"no {request.headers}"))
    connection = Connection(transport=refuse, sleep=lambda seconds: None)
    address = f"http://me:{PASSWORD}@graph.example/sparql"
    search = OneHopSearch(SparqlEndpoint(address, connection=connection))
    world = Environment(lambda task: task.question, (search,), ToolCalls(), max_turns=3)
    asked = [Task(q, q, answers=("Ann",)) for q in ("Is it down?", "Who?", "Who, by heart?")]
    settings = Settings(endpoint=address)
    run = Run(tmp_path, settings)
    date = datetime(2026, 11, 3, 12)
    row = manifest(settings, seed=0, graph_hash="ab", command=f"hopling {address}", date=date)
    run.write_manifest(row)
    teach(_teacher(), world, asked, keep=[exact_match], record=tmp_path / "traces.jsonl")
    log = EpisodeLog(run.episodes, stage="Teacher")
    found = evaluate(_teacher(), world, asked, seed=0, log=log)
    report = Report("A run", {"Teacher": found}, settings, row)
    report.write(tmp_path)
    Console().print(table(report), repr(run), repr(search), repr(_teacher()))

    endings = [episode.ending for episode in found.episodes]
    assert endings == [Ending.UNSCORED, Ending.UNSCORED, Ending.ANSWERED]
    files = [path.read_text(encoding="utf-8") for path in tmp_path.iterdir()]
    texts = [*files, *capsys.readouterr()]
    assert any("graph.example" in text and "status 401" in text for text in texts)
    assert [text for text in texts if KEY in text or PASSWORD in text] == []


def test_a_manifest_says_what_is_needed_to_repeat_the_run() -> None:
    """USERS need 4."""
    date = datetime(2026, 11, 3, 12)
    row = manifest(Settings(), seed=3, graph_hash="ab", command="hopling quickstart", date=date)
    assert (row["seed"], row["graph_hash"], row["date"]) == (3, "ab", "2026-11-03T12:00:00")
    assert {"versions", "python", "platform", "command", "settings"} <= set(row)
    assert "numpy" in row["versions"]  # type: ignore[operator]
    json.dumps(row)
