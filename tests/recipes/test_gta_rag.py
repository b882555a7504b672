"""GTA-RAG at a size for tests: every stage, an ablation, and a run that is taken up again."""

import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from hopling import records
from hopling.data.synthesis import Synthesis, hasty, replayed
from hopling.data.teach import Traces
from hopling.episode import Prompt, Task
from hopling.errors import SettingsError
from hopling.evaluation.report import Report
from hopling.graphs.documents import Retrieval
from hopling.recipes import corpora, gta_rag
from hopling.recipes.ablations import ablated
from hopling.recipes.prompts.searching import compact, searching
from hopling.recipes.trajectories import Material, Served, material
from hopling.rewards.evidence import gained
from hopling.rewards.squad import squad_em
from hopling.settings import load, untagged
from small_corpus import corpus, world

SIZE: dict[str, Any] = {
    "trajectories": 12,
    "held_out": 2,
    "max_paths": 400,
    "warm": 12,
    "sft": {"max_steps": 2},
    "stage1": {"steps": 1, "batch_size": 2, "minibatch_size": 2, "micro_batch_size": 10},
    "stage2": {"steps": 1, "batch_size": 2, "minibatch_size": 2, "micro_batch_size": 10},
}
GRAPH = corpus()


def _settings(**changes: Any) -> gta_rag.Settings:
    return load(gta_rag.Settings, SIZE | changes, presets=gta_rag.SCALES["small"])


def _played(folder: Path, monkeypatch: pytest.MonkeyPatch, **changes: Any) -> tuple[Report, str]:
    """Run the recipe in a folder, on few pages, and return what it printed too."""
    monkeypatch.setattr(corpora, "NUM_FILMS", 100)
    output = io.StringIO()
    report = gta_rag.run(_settings(**changes), folder, Console(file=output, width=200))
    return report, output.getvalue()


def test_a_run_reports_every_stage_and_is_not_played_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """GTA-RAG 3.5: trajectory reward, then EM on natural questions, which name no evidence."""
    rows = [{"id": f"q{n}", "question": "Who?", "answers": ["A", "B"]} for n in range(2)]
    file = tmp_path / "natural.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    how = {"without": ("tgr",), "questions": str(file), "test": str(file)}
    report, printed = _played(tmp_path / "run", monkeypatch, **how)

    names = ["Start", "GTA-RAG I", "GTA-RAG II", "tgr I", "tgr II"]
    stages = report.numbers["stages"]
    assert list(stages) == [stage for name in names for stage in (name, f"{name}, test")]
    assert stages["Start"]["num_tasks"] == 2
    assert "complete_chain" in stages["Start"]["means"]
    assert "complete_chain" not in stages["GTA-RAG II, test"]["means"]
    assert [line[:10].strip() for line in printed.splitlines()[-5:]] == names
    assert "12 tasks to train on, 2 held out." in printed

    num_episodes = len(records.read(tmp_path / "run" / "episodes.jsonl"))
    again, _ = _played(tmp_path / "run", monkeypatch, **how)
    assert again.numbers["stages"] == stages
    assert len(records.read(tmp_path / "run" / "episodes.jsonl")) == num_episodes


def test_each_ablation_changes_one_thing() -> None:
    """GTA-RAG 4.3: all variants retain backbone, scale and start."""
    tasks = tuple(Task(id, "Q?") for id in "abcd")
    made = Material(Synthesis(Traces((), {}), ()), tasks[:2], tasks[2:], ())
    here = world(replace(GRAPH, retrieval=Retrieval(num_graph=2, num_passages=1)))
    reward = lambda episode: 0.5  # noqa: E731
    assert ablated("GTA-RAG", here, made, reward) == (here, tasks[:2], reward)
    assert ablated("tgr", here, made, reward) == (here, tasks[:2], squad_em)
    assert ablated("tv", here, made, reward) == (here, tasks[2:], reward)
    blind, same_tasks, same_reward = ablated("gr", here, made, reward)
    assert (same_tasks, same_reward) == (tasks[:2], reward)
    assert blind.tools[0].retriever.retrieval == Retrieval(num_graph=0, num_passages=3)  # type: ignore[attr-defined]


def test_a_share_of_what_is_imitated_answers_after_one_search(tmp_path: Path) -> None:
    """Ours: a student that saw one habit only has nothing to choose from."""
    asked = _settings(student="smollm2", trajectories=5, held_out=1)
    made = material(asked, GRAPH, world(GRAPH), tmp_path / "drafts.jsonl")
    for share, num_searches in ((0.0, [2, 2, 2]), (0.5, [2, 1, 2]), (1.0, [1, 1, 1])):
        episodes = replayed(hasty(made.train[:3], share), world(GRAPH))
        assert [len(gained(episode)) for episode in episodes] == num_searches
        assert all(squad_em(episode) for episode in episodes)
    with pytest.raises(SettingsError, match="hasty is 2"):
        hasty(made.train[:3], 2)


def test_no_held_out_task_is_trained_on(tmp_path: Path) -> None:
    """GTA-RAG 4.4: held-out questions; with and without validation."""
    asked = _settings(student="smollm2", hops=(2, 3), trajectories=6, held_out=2)
    made = material(asked, GRAPH, world(GRAPH), tmp_path / "drafts.jsonl")
    away = {task.id for task in made.held_out}
    assert len(away) == 2
    assert not away & {task.id for task in (*made.train, *made.unvalidated)}
    assert {episode.task.id for episode in made.replays} == {task.id for task in made.train}
    with pytest.raises(SettingsError, match="none is left"):
        material(replace(asked, held_out=99), GRAPH, world(GRAPH), tmp_path / "drafts.jsonl")


def test_a_generator_needs_both_prices(tmp_path: Path) -> None:
    """Ours."""
    served = Served("m", "http://t.example/v1", price=(1.0,), budget=1.0)
    with pytest.raises(SettingsError, match="READ,WRITTEN"):
        material(replace(_settings(), generator=served), GRAPH, world(GRAPH), tmp_path / "d")


def test_defaults_are_those_of_gta_rag() -> None:
    """GTA-RAG 4.1, Eq. 16; PAPERS.md: each default is tagged paper, code or ours."""
    settings = gta_rag.Settings()
    assert untagged(gta_rag.Settings) == []
    for stage, steps in ((settings.stage1, 20), (settings.stage2, 40)):
        assert (stage.steps, stage.batch_size, stage.group_size) == (steps, 128, 5)
    assert (settings.trajectories, settings.held_out) == (2000, 1000)
    assert (settings.gain, settings.miss) == (0.25, -0.10)


def test_a_prompt_holds_the_question_and_nothing_of_its_answer() -> None:
    """DESIGN law 3."""
    task = Task("t", "Where?", answers=("Oslo",), evidence=("d1",), hints={"queries": ["q1"]})
    for prompt in (compact(task), searching(task)):
        assert isinstance(prompt, Prompt)
        assert "Where?" in prompt.user
        assert not any(secret in prompt.user for secret in ("Oslo", "d1", "q1"))
