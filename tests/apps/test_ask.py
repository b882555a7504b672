import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from apps.conftest import Hopling, player
from hopling import apps
from hopling.apps.ask import named
from hopling.apps.world import weights
from hopling.episode import Completion, View
from hopling.errors import SettingsError, WorldError
from hopling.graphs import HopIndex
from hopling.policies.scripted import Scripted


@pytest.fixture
def played_by(monkeypatch: pytest.MonkeyPatch) -> object:
    """Return a function that lets a policy play in place of the model that is named."""
    return lambda policy: monkeypatch.setattr(apps.ask, "open_model", lambda asked: policy)


def test_the_turns_are_shown_by_source_and_the_answer_last(
    hopling: Hopling, films: Path, played_by: object
) -> None:
    """The issue: one question, live turns on screen."""
    played_by(player({"ask": ["Ann Lee"]}))  # type: ignore[operator]
    ran = hopling("ask", "who directed Kismet?", "--graph", films)
    assert ran.code == 0
    order = [
        "Starting from Kismet: m.1",
        "prompt",
        "Let me look.",
        "| m.3 | Ann Lee |",
        "{Ann Lee}",
    ]
    places = [ran.out.index(text) for text in order]
    assert places == sorted(places)
    assert ran.out.endswith("{Ann Lee}\n")


def test_a_segment_is_shown_before_the_next_turn_is_written(
    hopling: Hopling,
    films: Path,
    played_by: object,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Ours: live means that nobody waits for the end."""
    seen: list[str] = []
    inner = player({"ask": ["Ann Lee"]})

    class Listening(Scripted):
        def generate(self, views: Sequence[View], stops: Sequence[str]) -> list[Completion]:
            seen.append(capsys.readouterr().out)
            return inner.generate(views, stops)

    played_by(Listening({}))  # type: ignore[operator]
    hopling("ask", "who directed Kismet?", "--graph", films)
    assert "who directed Kismet?" in seen[0]
    assert "| m.3 | Ann Lee |" in seen[1]


def test_control_characters_of_a_model_move_no_cursor(
    hopling: Hopling, films: Path, played_by: object
) -> None:
    """BUGS B20."""
    hostile = "\x1b[2J\x07Final answer: {Ann}"
    played_by(Scripted.from_function(lambda view: hostile))  # type: ignore[operator]
    ran = hopling("ask", "who?", "--start", "m.1", "--graph", films)
    assert not {"\x1b", "\x07"} & set(ran.out)


def test_the_longest_label_in_the_question_is_where_the_search_starts(films: Path) -> None:
    """The issue; `Night` is a film too."""
    graph = HopIndex.open(films)
    assert named(graph, "Who acts in the long night?") == (("m.2",), "the long night")
    assert named(graph, "who played in Night's end?") == (("m.6",), "Night")
    assert named(graph, 'films of "Ann Lee".') == (("m.3",), "Ann Lee")


def test_a_question_that_names_nothing_asks_for_a_start(films: Path) -> None:
    """CONVENTIONS, "Errors"."""
    with pytest.raises(SettingsError, match="--start ID"):
        named(HopIndex.open(films), "why?")


def test_an_unknown_start_is_refused_with_ids_of_that_label(hopling: Hopling, films: Path) -> None:
    """BUGS B26: near labels."""
    ran = hopling("ask", "who?", "--start", "Ann Lee", "--graph", films)
    assert (ran.code, "Like it by label: m.3" in ran.err) == (2, True)


def test_an_episode_without_an_answer_exits_with_1(
    hopling: Hopling, films: Path, played_by: object
) -> None:
    """USERS.md 3.2."""
    played_by(Scripted.from_function(lambda view: "Hm."))  # type: ignore[operator]
    ran = hopling("ask", "Kismet", "--graph", films, "--max-turns", "2")
    assert (ran.code, ran.out.splitlines()[-1]) == (1, "No answer: out of turns.")


def test_a_model_that_does_not_answer_exits_with_3(
    hopling: Hopling, films: Path, played_by: object
) -> None:
    """DESIGN law 5: the world failed."""

    def fail(view: View) -> str:
        raise WorldError("the server did not answer (3 tries).")

    played_by(Scripted.from_function(fail))  # type: ignore[operator]
    assert hopling("ask", "Kismet", "--graph", films).code == 3


def test_a_run_s_one_checkpoint_plays(hopling: Hopling, films: Path, student: Path) -> None:
    """Ours: a random model says nothing right, but every turn of it is shown with its tokens."""
    arguments = "--graph", films, "--max-turns", "2", "--max-turn-tokens", "8"
    ran = hopling("ask", "who directed Kismet?", "--model", student.parents[1], *arguments)
    assert ran.code == 1, ran.err
    assert "policy, 8 tokens" in ran.out
    assert "No answer" in ran.out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "No model was named"),
        (("--model", "http://localhost:1/v1"), "Name one: --served NAME"),
        (("--model", "."), "Found: none"),
        (("--temperature", "-1", "--model", "x"), "temperature is -1.0"),
    ],
)
def test_a_model_that_cannot_be_opened_is_named(
    hopling: Hopling, films: Path, arguments: tuple[str, ...], said: str
) -> None:
    """CONVENTIONS, "Errors"."""
    ran = hopling("ask", "Kismet", "--graph", films, *arguments)
    assert (ran.code, said in ran.err) == (2, True), ran.err


@pytest.mark.parametrize(
    ("stages", "marked", "last"),
    [
        (["SFT", "SFT+RL"], ["SFT", "SFT+RL"], "SFT+RL"),
        (["SFT", "SFT+RL", "RL only"], ["SFT", "SFT+RL", "RL only"], "SFT+RL"),
        (["HotpotQA I", "HotpotQA II"], ["HotpotQA I", "HotpotQA II"], "HotpotQA II"),
        (["SFT", "Odd"], [], "SFT"),
        (["One", "Two"], [], None),
    ],
)
def test_of_a_run_with_several_checkpoints_the_last_stage_plays(
    stages: list[str],
    marked: list[str],
    last: str | None,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Ours: SFT+RL, else what ended last, else SFT; the choice is said."""
    for stage in stages:
        (tmp_path / "checkpoint" / stage).mkdir(parents=True)
        (tmp_path / "checkpoint" / stage / "config.json").write_text("{}")
    if marked:
        (tmp_path / "stages.json").write_text(json.dumps({stage: {} for stage in marked}))
    if last is None:
        with pytest.raises(SettingsError, match="exactly one is needed"):
            weights(str(tmp_path))
        return
    assert weights(str(tmp_path)) == (str(tmp_path / "checkpoint" / last), None)
    assert "the last stage" in " ".join(capsys.readouterr().err.split())
