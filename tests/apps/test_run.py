import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import hopling.recipes
from apps.conftest import Hopling

RECIPE = '''"""Teach nothing, but leave a report.

More about it.
"""

from dataclasses import dataclass

from hopling.dialects import ToolCalls, braced
from hopling.environment import Environment
from hopling.episode import Answer, Task
from hopling.errors import SettingsError
from hopling.evaluation.evaluate import evaluate
from hopling.evaluation.report import Report
from hopling.evaluation.run import Run
from hopling.policies.scripted import Scripted
from hopling.settings import setting

SCALES = {"small": {"pool": 10, "stage.steps": 2}}
SWEEP = "pool"


@dataclass(frozen=True)
class Stage:
    steps: int = setting(100, "paper 4.4", "Updates.")


@dataclass(frozen=True)
class Settings:
    pool: int | None = setting(None, "paper 5.3", "How many tasks.")
    url: str = setting("", "ours", "Where.")
    stage: Stage = Stage()


def run(settings, folder, console):
    run = Run(folder, settings)
    console.print(f"pool {settings.pool}, {settings.stage.steps} steps, {settings.url}")
    if settings.pool == 666 and run.done("half") is None:
        run.mark("half")
        raise KeyboardInterrupt
    text = ToolCalls().write([Answer(braced(["Ann"]))])
    world = Environment(lambda task: task.question, (), ToolCalls(), max_turns=1)
    tasks = [Task("t1", "Who is [there]?", answers=("Ann",))]
    done = evaluate(Scripted({"t1": [text]}), world, tasks, seed=0)
    return Report("Toy", {"SFT": done}, settings)
'''


@pytest.fixture(autouse=True)
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Put a recipe, and a module that is none, among the shipped ones."""
    folder = tmp_path / "recipes"
    folder.mkdir()
    (folder / "toy.py").write_text(RECIPE)
    (folder / "broken.py").write_text('"""Needs torch."""\nimport torch_\n' + RECIPE)
    (folder / "words.py").write_text('"""No recipe."""\n')
    monkeypatch.setattr(hopling.recipes, "__path__", [*hopling.recipes.__path__, str(folder)])
    yield
    for name in ("toy", "broken"):
        sys.modules.pop(f"hopling.recipes.{name}", None)


def test_run_alone_lists_the_recipes_without_importing_them(hopling: Hopling) -> None:
    """The issue: `hopling run` alone lists recipes with the first docstring line."""
    ran = hopling("run")
    assert ran.code == 0
    assert "Teach nothing, but leave a report." in ran.out
    assert "broken" in ran.out
    assert "words" not in ran.out


def test_help_shows_each_setting_with_value_source_and_help(hopling: Hopling) -> None:
    """The issue."""
    out = hopling("run", "toy", "--help", "--scale", "small", "--url", "x").out
    assert out.startswith("Teach nothing")
    row = next(line for line in out.splitlines() if "--stage-steps" in line)
    assert row.split() == ["--stage-steps", "2", "paper", "4.4", "Updates."]
    assert "--resume" in out
    assert "Scales: small." in out


def test_run_help_shows_its_usage_and_the_recipes(hopling: Hopling) -> None:
    """Ours."""
    out = hopling("run", "--help").out
    assert "Usage: hopling run" in out
    assert "Teach nothing" in out


def test_a_run_ends_with_table_episode_and_page(hopling: Hopling, tmp_path: Path) -> None:
    """The issue: one table, one example episode, report.html and report.json."""
    ran = hopling("run", "toy", "--pool", "7")
    assert ran.code == 0, ran.err
    order = ["pool 7, 100 steps", "Exact match", "100.0 [", "Who is [there]?", "report.html"]
    places = [ran.out.index(text) for text in order]
    assert places == sorted(places)
    folder = tmp_path / "runs" / "toy"
    assert (folder / "report.html").exists()
    assert json.loads((folder / "settings.json").read_text())["pool"] == 7


def test_flags_win_over_the_file_and_that_over_the_scale(hopling: Hopling, tmp_path: Path) -> None:
    """USERS.md 3.2: flags override; the scale stands above the defaults only."""
    (tmp_path / "my.toml").write_text('pool = 20\nurl = "file"\n')
    config = "--config", "my.toml", "--scale", "small"
    assert "pool 20, 2 steps, file" in hopling("run", "toy", *config).out
    ran = hopling("run", "toy", *config, "--url=flag", "--name", "b")
    assert "pool 20, 2 steps, flag" in ran.out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("toi",), "There is no recipe 'toi'. Did you mean 'toy'?"),
        (("toy", "--pol", "7"), "no setting 'pol' in Settings. Did you mean 'pool'?"),
        (("toy", "--pool", "x"), "pool is 'x'; expected a whole number"),
        (("toy", "--scale", "smal"), "There is no scale 'smal'. Did you mean 'small'?"),
        (("toy", "--config", "absent.toml"), "cannot read the settings file absent.toml"),
        (("toy", "--resume"), "runs/toy holds no run. Leave out --resume"),
        (("--pool", "7", "toy"), "'--pool' stands where the recipe's name is due"),
    ],
)
def test_what_cannot_be_run_is_said_with_what_to_do(
    hopling: Hopling, arguments: tuple[str, ...], said: str
) -> None:
    """The issue, "Bad input"."""
    ran = hopling("run", *arguments)
    assert (ran.code, said in ran.err) == (2, True), ran.err


def test_a_folder_with_a_run_is_not_written_over(hopling: Hopling) -> None:
    """The issue: the error names both ways out."""
    hopling("run", "toy")
    ran = hopling("run", "toy")
    assert (ran.code, "--resume" in ran.err, "--name" in ran.err) == (2, True, True)


def test_a_stopped_run_says_how_to_go_on_and_does(hopling: Hopling) -> None:
    """USERS.md 3.2: Ctrl-C prints the exact resume command."""
    ran = hopling("run", "toy", "--pool", "666", "--url", "a b", "--name", "x")
    again = "hopling run toy --name x --resume --pool 666 --url 'a b'"
    assert (ran.code, ran.err.splitlines()[-1].strip()) == (130, again)
    assert hopling(*["run", "toy", "--name", "x", "--resume"]).code == 0


def test_a_resumed_run_keeps_the_settings_that_it_was_begun_with(hopling: Hopling) -> None:
    """USERS.md 3.2: resume by pointing at the folder."""
    hopling("run", "toy", "--pool", "666", "--scale", "small")
    ran = hopling("run", "toy", "--resume")
    assert "pool 666, 2 steps" in ran.out


def test_a_secret_that_was_cut_from_the_settings_is_not_taken_for_one(
    hopling: Hopling, tmp_path: Path
) -> None:
    """BUGS B35: settings.json holds *** in its place."""
    hopling("run", "toy", "--pool", "666", "--url", "http://me:secret@t.example/")
    assert "secret" not in (tmp_path / "runs" / "toy" / "settings.json").read_text()
    ran = hopling("run", "toy", "--resume")
    assert (ran.code, "url differ" in ran.err) == (2, True)


def test_a_list_of_pools_runs_one_after_another(hopling: Hopling, tmp_path: Path) -> None:
    """The issue: Figure 2 is `--pool 500,1000,2000`."""
    ran = hopling("run", "toy", "--pool", "5,10", "--name", "figure")
    assert ran.out.index("pool 5,") < ran.out.index("pool 10,")
    last = ran.out[ran.out.rindex("report.html") :]
    assert last.index("runs/figure-5") < last.index("runs/figure-10")
    assert last.count("Exact match") == 2
    assert sorted(f.name for f in (tmp_path / "runs").iterdir()) == ["figure-10", "figure-5"]


def test_json_is_the_report_s_numbers_and_nothing_else(hopling: Hopling) -> None:
    """USERS.md 3.2; progress goes to standard error."""
    ran = hopling("run", "toy", "--pool", "5", "--json")
    assert ran.json["stages"]["SFT"]["outcomes"]["correct"] == 1
    assert "pool 5" in ran.err
    titles = [report["title"] for report in hopling("run", "toy", "--pool", "6,7", "--json").json]
    assert titles == ["Toy", "Toy"]


def test_a_recipe_without_its_packages_says_what_is_missing(
    hopling: Hopling, tmp_path: Path
) -> None:
    """The issue: a base install without torch."""
    path = tmp_path / "recipes" / "broken.py"
    path.write_text(path.read_text().replace("import torch_", "import torch.absent"))
    ran = hopling("run", "broken")
    assert (ran.code, "pip install 'hopling[train]'" in ran.err) == (2, True)
