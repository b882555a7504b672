import json
import pkgutil
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

import hopling.recipes
from hopling.errors import SettingsError
from hopling.settings import (
    describe,
    from_json,
    load,
    parse_flags,
    read_file,
    setting,
    to_json,
    untagged,
)


@dataclass(frozen=True)
class GRPO:
    group_size: int = setting(8, "paper App. B", "Episodes per task.")
    kl: float = setting(0.05, "paper 4.4")
    clip_low: float = setting(0.2, "paper App. B")
    clip_high: float = setting(0.3, "paper App. B")

    def __post_init__(self) -> None:
        if self.clip_low > self.clip_high:
            raise SettingsError(f"clip_low {self.clip_low} is over clip_high {self.clip_high}.")


@dataclass(frozen=True)
class Recipe:
    benchmark: Literal["cwq", "webqsp"] = setting("cwq", "paper 5.1")
    pool: tuple[int, ...] = setting((500, 1000), "paper Fig. 2")
    max_tasks: int | None = setting(None, "ours")
    merge: bool = setting(False, "ours")
    folder: Path = setting(Path("runs"), "ours")
    grpo: GRPO = setting(GRPO(group_size=5), "code train.sh")


@dataclass(frozen=True)
class Untagged:
    seed: int = 0
    grpo: GRPO = setting(GRPO(), "ours")


def test_a_flag_wins_over_the_file_and_the_file_over_the_default(tmp_path: Path) -> None:
    """USERS 3.2, point 3."""
    file = tmp_path / "run.toml"
    file.write_text('benchmark = "webqsp"\n[grpo]\nkl = 0.1\ngroup_size = 4\n', encoding="utf-8")
    made = load(Recipe, {"grpo-kl": "0.2"}, file=file)
    assert (made.benchmark, made.grpo.kl, made.grpo.group_size) == ("webqsp", 0.2, 4)
    assert made.pool == (500, 1000)


def test_json_files_are_read_too(tmp_path: Path) -> None:
    """Ours: a run folder's settings.json can be given back."""
    file = tmp_path / "settings.json"
    made = load(Recipe, {"pool": "1,2", "max_tasks": "7", "folder": "x"})
    file.write_text(json.dumps(to_json(made)), encoding="utf-8")
    assert load(Recipe, {}, file=file) == made


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"grpo.kl_coef": 1}, "no setting 'kl_coef' in GRPO. Did you mean 'kl'?"),
        ({"kl": 1}, "no setting 'kl' in Recipe. Did you mean 'grpo.kl'?"),
        ({"bench": "cwq"}, "no setting 'bench' in Recipe. Did you mean 'benchmark'?"),
        ({"benchmark": "cqw"}, "is 'cqw'; expected one of cwq, webqsp. Did you mean 'cwq'?"),
        ({"grpo.group_size": "many"}, "'many'; expected a whole number, such as 8."),
        ({"grpo.group_size": 2.5}, "2.5; expected a whole number"),
        ({"grpo.group_size": True}, "True; expected a whole number"),
        ({"grpo.kl": "nan"}, "'nan'; expected a number, such as 0.05."),
        ({"merge": "maybe"}, "'maybe'; expected true or false"),
        ({"pool": 3}, "3; expected a list, such as a,b."),
        ({"pool": "1,x"}, "'x'; expected a whole number"),
        ({"grpo": 3}, "no setting 'grpo' in Recipe"),
        ({"grpo.clip_low": 0.9}, "clip_low 0.9 is over clip_high 0.3"),
    ],
)
def test_a_wrong_setting_is_refused_with_what_to_write(
    overrides: dict[str, object], message: str
) -> None:
    """CONVENTIONS, "Errors"."""
    with pytest.raises(SettingsError) as refused:
        load(Recipe, overrides)
    assert message in str(refused.value)


def test_settings_that_only_fit_together_can_be_changed_together() -> None:
    """Ours: a check never sees half of a change."""
    made = load(Recipe, {"grpo.clip_low": "0.5", "grpo.clip_high": "0.6"})
    assert (made.grpo.clip_low, made.grpo.clip_high) == (0.5, 0.6)


def test_flags_are_read_as_written_on_a_command_line() -> None:
    """Ours."""
    given_flags = ["--grpo-kl=0.1", "--merge", "--pool", "5,6", "--max-tasks", "none"]
    given_flags += ["--grpo.group_size", "3"]
    made = load(Recipe, parse_flags(Recipe, given_flags))
    assert (made.grpo.kl, made.merge, made.pool, made.max_tasks) == (0.1, True, (5, 6), None)
    assert made.grpo.group_size == 3
    assert parse_flags(Recipe, ["--no-merge"]) == {"merge": "false"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["cwq"], "'cwq' is no flag"),
        (["--grpo-lk", "1"], "no setting 'grpo-lk' in Recipe. Did you mean 'grpo.kl'?"),
        (["--pool", "--merge"], "--pool needs a value, such as --pool"),
    ],
)
def test_a_wrong_flag_is_refused(arguments: list[str], message: str) -> None:
    """Ours."""
    with pytest.raises(SettingsError) as refused:
        parse_flags(Recipe, arguments)
    assert message in str(refused.value)


def test_each_setting_tells_its_value_default_and_source() -> None:
    """Issue 2: each default is tagged paper, code or ours."""
    rows = {row.name: row for row in describe(load(Recipe, {"grpo.kl": 0.1}))}
    assert (rows["grpo.kl"].value, rows["grpo.kl"].default) == (0.1, 0.05)
    assert rows["grpo.kl"].source == "paper 4.4"
    assert rows["grpo.group_size"].source == "code train.sh"
    assert rows["grpo.group_size"].help == "Episodes per task."
    assert rows["grpo.group_size"].flag == "--grpo-group-size"


def test_a_setting_without_a_source_is_found() -> None:
    """Ours."""
    assert untagged(Untagged) == ["seed"]
    assert untagged(Recipe) == []


def test_every_setting_of_every_recipe_has_a_source() -> None:
    """Issue 2: each default is tagged paper, code or ours."""
    for found in pkgutil.iter_modules(hopling.recipes.__path__):
        module = import_module(f"hopling.recipes.{found.name}")
        if hasattr(module, "Settings"):
            assert untagged(module.Settings) == [], f"in {found.name}"


@given(
    st.builds(
        Recipe,
        benchmark=st.sampled_from(["cwq", "webqsp"]),
        pool=st.lists(st.integers()).map(tuple),
        max_tasks=st.none() | st.integers(),
        merge=st.booleans(),
        grpo=st.builds(GRPO, kl=st.floats(allow_nan=False), clip_low=st.floats(0, 0.2)),
    )
)
def test_settings_survive_json(made: Recipe) -> None:
    """Ours."""
    assert from_json(Recipe, json.loads(json.dumps(to_json(made)))) == made


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    """CONVENTIONS, "Errors"."""
    with pytest.raises(SettingsError, match="cannot read the settings file"):
        read_file(tmp_path / "absent.toml")
    (tmp_path / "bad.toml").write_text("a = ", encoding="utf-8")
    with pytest.raises(SettingsError, match=r"bad\.toml is not a settings file"):
        read_file(tmp_path / "bad.toml")
    (tmp_path / "list.json").write_text("[]", encoding="utf-8")
    with pytest.raises(SettingsError, match="holds a list; expected an object"):
        read_file(tmp_path / "list.json")
