import json
from pathlib import Path
from typing import Any

import pytest

from hopling.dialects.tool_calls import braced
from hopling.episode import Answer, Call, Completion, Episode, Task, View
from hopling.errors import SettingsError
from hopling.evaluation.episode_log import EpisodeLog
from hopling.evaluation.evaluate import METRICS, Outcome, closed_book, evaluate
from hopling.policies.scripted import Scripted
from hopling.rewards.conduct import num_calls


def even(view: View) -> bool:
    return int(view.task_id[1:]) % 2 == 0


def test_an_evaluation_names_every_metric_with_its_interval(world: Any) -> None:
    """Ours: the numbers of the issue's part 7."""
    found = evaluate(world.policy(even), world.environment, world.tasks(10), seed=0).summary()
    assert set(found.means) == set(METRICS) - {"tokens"}
    assert found.means["exact_match"].value == 0.5
    assert found.means["exact_match"].low < 0.5 < found.means["exact_match"].high
    assert found.means["observed"].value == 1.0
    assert found.means["calls"].value == 1.0
    assert found.means["turns"].value == 2.0
    assert found.outcomes["correct"] == found.outcomes["wrong"] == 5


def test_calls_per_correct_answer_leave_wrong_answers_out(world: Any) -> None:
    """SoG-R1 Table 4: calls on correctly answered questions."""

    def write(view: View) -> str:
        few = even(view)
        if len(view.turns) < (1 if few else 3):
            return str(world.environment.dialect.write([_call(view)]))
        return str(world.environment.dialect.write([_answer("Ann" if few else "Bob")]))

    found = evaluate(Scripted.from_function(write), world.environment, world.tasks(6), seed=0)
    assert found.calls_per_correct is not None
    assert found.calls_per_correct.value == 1.0
    assert found.mean("calls").value == 2.0  # type: ignore[union-attr]


def test_correct_answers_that_were_never_retrieved_are_counted(world: Any) -> None:
    """BUGS B26: t0 looks and errs, the others are right by heart; then one looks and is right."""

    def write(view: View) -> str:
        if view.task_id == "t0" and not view.turns:
            return str(world.environment.dialect.write([_call(view)]))
        return str(world.environment.dialect.write([_answer("Bob" if even(view) else "Ann")]))

    tasks = [Task(f"t{n}", "Who?", answers=("Bob" if n == 2 else "Ann",)) for n in range(4)]
    played = evaluate(Scripted.from_function(write), world.environment, tasks, seed=0)
    scores = [(row.scores["grounded"], row.scores["recalled"]) for row in played.rows]
    assert scores == [(0.0, 0.0), (0.0, 1.0), (0.0, 1.0), (0.0, 1.0)]
    found = evaluate(world.policy(lambda view: True), world.environment, tasks[:1], seed=0)
    assert found.rows[0].scores["grounded"] == 1.0
    assert found.rows[0].scores["recalled"] == 0.0


def test_repeated_calls_have_a_rate(world: Any) -> None:
    """BUGS B24: three equal calls, two of them repeats."""
    policy = world.policy(lambda view: True, num_calls=3)
    found = evaluate(policy, world.environment, world.tasks(2), seed=0)
    assert found.mean("repeats").value == pytest.approx(2 / 3)  # type: ignore[union-attr]


def test_an_episode_whose_world_failed_is_counted_and_in_no_mean(world: Any) -> None:
    """DESIGN law 5."""
    world.find.down = {"t0", "t2"}
    found = evaluate(world.policy(even), world.environment, world.tasks(4), seed=0)
    assert found.outcomes["world failure"] == 2
    assert found.mean("exact_match").value == 0.0  # type: ignore[union-attr]
    assert found.mean("exact_match").num == 2  # type: ignore[union-attr]
    assert found.num_tasks == 4


def test_without_any_scored_episode_there_are_no_means(world: Any) -> None:
    """Ours: no 0.0 stands for what is not known."""
    world.find.down = {"t0"}
    found = evaluate(world.policy(even), world.environment, world.tasks(1), seed=0).summary()
    assert found.means == {}
    assert found.calls_per_correct is None


@pytest.mark.parametrize(
    ("completion", "outcome"),
    [
        (Completion("Final answer: {Ann}"), Outcome.CORRECT),
        (Completion("Final answer: {Ann}, {Bob}"), Outcome.WRONG),
        (Completion("I do not know."), Outcome.NO_ANSWER),
        (Completion("Let me", cut=True), Outcome.CUT),
    ],
)
def test_every_ending_has_its_outcome(world: Any, completion: Completion, outcome: Outcome) -> None:
    """Issue 2, part 7: correct, wrong, no answer, cut, world failure."""

    class Same(Scripted):
        def generate(self, views: Any, stops: Any) -> list[Completion]:
            return [completion for _ in views]

    (row,) = evaluate(Same({}), world.environment, world.tasks(1), seed=0).rows
    assert row.outcome is outcome


def test_tasks_without_answers_are_refused_before_anything_is_played(world: Any) -> None:
    """Ours: an empty gold set, or one that normalizes to nothing, cannot be scored."""
    for answers in ((), (" ",)):
        with pytest.raises(SettingsError, match="task 'x' has no answers"):
            evaluate(world.policy(even), world.environment, [Task("x", "?", (), answers)], seed=0)


def test_thirty_results_come_out_of_three_interrupted_runs(world: Any, tmp_path: Path) -> None:
    """BUGS B36: 10 questions x 3 samples, killed after 13 results, resumed twice."""
    path, tasks = tmp_path / "episodes.jsonl", world.tasks(10) * 3
    whole = evaluate(world.policy(even), world.environment, tasks, seed=7)

    for stop_after in (13, 9):
        with pytest.raises(KeyboardInterrupt):
            evaluate(
                world.policy(even),
                world.environment,
                tasks,
                seed=7,
                log=EpisodeLog(path),
                on_end=_interrupt(after=stop_after),
            )
    resumed = evaluate(world.policy(even), world.environment, tasks, seed=7, log=EpisodeLog(path))

    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    assert len(rows) == 30
    assert len({(row["task"]["id"], row["copy"]) for row in rows}) == 30
    assert [e.seed for e in resumed.episodes] == [e.seed for e in whole.episodes]
    assert [e.to_json() for e in resumed.episodes] == [e.to_json() for e in whole.episodes]


def test_a_torn_last_line_costs_one_episode(world: Any, tmp_path: Path) -> None:
    """BUGS B34."""
    path, played = tmp_path / "episodes.jsonl", []
    evaluate(world.policy(even), world.environment, world.tasks(5), seed=0, log=EpisodeLog(path))
    path.write_bytes(path.read_bytes()[:-40])
    evaluate(
        world.policy(even),
        world.environment,
        world.tasks(5),
        seed=0,
        log=EpisodeLog(path),
        on_end=lambda episode: played.append(episode.task.id),
    )
    assert played == ["t4"]
    assert len(EpisodeLog(path).read()) == 5


def test_only_what_the_world_failed_is_played_again(world: Any, tmp_path: Path) -> None:
    """BUGS B36: transient errors retry, finished work does not."""
    log, played = EpisodeLog(tmp_path / "episodes.jsonl"), []
    world.find.down = {"t1"}
    evaluate(world.policy(even), world.environment, world.tasks(4), seed=0, log=log)
    world.find.down = set()
    found = evaluate(
        world.policy(even),
        world.environment,
        world.tasks(4),
        seed=0,
        log=log,
        on_end=lambda episode: played.append(episode.task.id),
    )
    assert played == ["t1"]
    assert found.outcomes["world failure"] == 0


def test_stages_share_a_file_and_keep_apart(world: Any, tmp_path: Path) -> None:
    """DESIGN 5: one episodes.jsonl a run."""
    path = tmp_path / "episodes.jsonl"
    for stage, right in (("Base", lambda view: False), ("SFT", lambda view: True)):
        log = EpisodeLog(path, stage=stage)
        found = evaluate(world.policy(right), world.environment, world.tasks(3), seed=0, log=log)
        assert found.mean("exact_match").value == float(right(None))  # type: ignore[union-attr]
    assert len(EpisodeLog(path, stage="Base").read()) == 3


def test_a_log_of_another_seed_is_refused(world: Any, tmp_path: Path) -> None:
    """Ours: a mean over two seeds' halves is neither's."""
    log = EpisodeLog(tmp_path / "episodes.jsonl")
    evaluate(world.policy(even), world.environment, world.tasks(2), seed=0, log=log)
    with pytest.raises(SettingsError, match="another seed than 1"):
        evaluate(world.policy(even), world.environment, world.tasks(2), seed=1, log=log)


def test_a_concurrent_policy_gives_the_same_numbers(world: Any, tmp_path: Path) -> None:
    """DESIGN law 1: interleaved episodes do not meet, nor do their lines in the log."""
    log = EpisodeLog(tmp_path / "episodes.jsonl")
    policy = world.policy(even)
    alone = evaluate(policy, world.environment, world.tasks(20), seed=0)
    policy.concurrent, policy.max_live = True, 8
    found = evaluate(policy, world.environment, world.tasks(20), seed=0, log=log)
    assert found.mean("exact_match") == alone.mean("exact_match")
    assert len(log.read()) == 20


def test_hops_and_question_types_are_told_apart(world: Any) -> None:
    """Issue 2: by hops; the unseen type apart."""
    one, two = world.tasks(4, hops=1, qtype="a"), world.tasks(6, hops=2, qtype="b", split="unseen")
    tasks = [*one, *two[4:]]
    found = evaluate(world.policy(even), world.environment, tasks, seed=0)
    assert list(found.summary().by_hops) == ["1", "2"]
    assert found.summary().by_qtype["a"]["exact_match"].num == 4
    assert found.where(lambda row: row.unseen).num_tasks == 2


def test_any_scorer_is_a_metric(world: Any) -> None:
    """DESIGN 1: scorers are functions of an episode."""
    found = evaluate(world.policy(even, num_calls=2), world.environment, world.tasks(3), seed=0)
    more = found.with_metric("twice", lambda episode: 2.0 * num_calls(episode))
    assert more.mean("twice").value == 4.0  # type: ignore[union-attr]


def test_the_closed_book_has_no_tools_and_one_turn(world: Any) -> None:
    """Ours: a baseline that shows what the weights know (USERS need 4)."""
    seen: list[View] = []

    def write(view: View) -> str:
        seen.append(view)
        return "Final answer: {Ann}"

    policy = Scripted.from_function(write)
    found = evaluate(policy, closed_book(world.environment), world.tasks(1), seed=0)
    assert seen[0].tools == ()
    assert "right away" in seen[0].prompt.user
    assert found.mean("exact_match").value == 1.0  # type: ignore[union-attr]
    assert found.mean("calls").value == 0.0  # type: ignore[union-attr]


def _answer(name: str) -> Answer:
    return Answer(braced([name]))


def _call(view: View) -> Any:
    return Call("find", {"what": view.task_id})


def _interrupt(*, after: int) -> Any:
    ended: list[Episode] = []

    def on_end(episode: Episode) -> None:
        ended.append(episode)
        if len(ended) == after:
            raise KeyboardInterrupt

    return on_end


def test_an_evaluation_can_be_judged_by_another_meaning_of_correct(world: Any) -> None:
    """Ours: GTA-RAG's answers are short texts with aliases, not sets of names."""
    tasks = world.tasks(3)
    first = evaluate(
        world.policy(lambda view: view.task_id == "t0"), world.environment, tasks, seed=0
    )
    said_bob = lambda episode: float(episode.answer.text == "{Bob}")  # noqa: E731
    second = first.judged_by(said_bob, {"twice": lambda episode: 2.0})
    assert [row.outcome for row in first.rows] == [Outcome.CORRECT, Outcome.WRONG, Outcome.WRONG]
    assert [row.outcome for row in second.rows] == [Outcome.WRONG, Outcome.CORRECT, Outcome.CORRECT]
    assert second.mean("exact_match").value == pytest.approx(2 / 3)
    assert second.mean("twice").value == 2.0


def test_an_unscored_episode_is_not_judged_again(world: Any) -> None:
    """DESIGN law 5."""
    world.find.down.add("t0")
    found = evaluate(world.policy(lambda view: True), world.environment, world.tasks(1), seed=0)
    again = found.judged_by(lambda episode: 1.0, {"twice": lambda episode: 2.0})
    assert again.rows == found.rows
