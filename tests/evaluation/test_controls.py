"""The controls of walking: by hand on a few episodes."""

from io import StringIO

import pytest
from rich.console import Console

import walking
from hopling.episode import Answer, Completion, Ending, Episode, Prompt
from hopling.evaluation.controls import (
    by_walks,
    likeliest,
    table_of_settings,
    table_of_walks,
    voted,
    walk_statistics,
    walked,
    with_metrics,
    without_walks,
)
from hopling.evaluation.episode_log import Played
from hopling.evaluation.evaluate import Evaluation, judged
from hopling.policies.scripted import Scripted
from hopling.rollout import rollout

RIGHT, WRONG = "<answer>tree</answer>", "<answer>bird</answer>"
TO_ONE, TO_TWELVE, OFF = "<walk>1</walk>", "<walk>12</walk>", "<walk>9</walk>"


class Bytes:
    """Each character is a token, so that lengths can be counted by hand."""

    def encode(self, pieces):
        return [ord(character) for piece in pieces for character in piece]

    def decode(self, tokens):
        return "".join(map(chr, tokens))


def evaluation(**scripts: list[str]) -> Evaluation:
    """Return the judged episodes of the scripts, by task."""
    policy = Scripted(scripts, Bytes())
    tasks = [walking.task(name) for name in scripts]
    episodes = rollout(policy, walking.world("$"), tasks)
    return judged([Played(e, 0, 1.0) for e in episodes], seed=0)


def copies(*turns: tuple[str, float]) -> Evaluation:
    """Return samples of one task that answer in one turn, with a log-probability a token."""
    made = []
    for copy, (text, logprob) in enumerate(turns):
        episode = Episode(walking.task(), Prompt("?"))
        episode.read("prompt", "?", (0,))
        tokens = tuple(map(ord, text))
        walking.world("$").step(episode, Completion(text, tokens, (logprob,) * len(tokens)))
        made.append(Played(episode, copy, 1.0))
    return judged(made, seed=0)


def test_walks_are_those_that_were_carried_out():
    """CNY Eq. 2: off the frontier nothing is read; attempts count all."""
    (row,) = with_metrics(evaluation(t=[OFF, TO_ONE, TO_TWELVE, RIGHT])).rows
    assert (row.scores["walks"], row.scores["walk_attempts"]) == (2.0, 3.0)
    assert (row.scores["answer_rate"], row.scores["out_of_budget"]) == (1.0, 0.0)


def test_an_episode_without_an_answer_is_out_of_budget():
    """CNY Table 6: the budget's share, and the answer rate."""
    (row,) = with_metrics(evaluation(t=[TO_ONE, TO_ONE, TO_TWELVE, TO_ONE])).rows
    assert (row.scores["answer_rate"], row.scores["out_of_budget"]) == (0.0, 1.0)


def test_a_control_has_one_turn_and_no_tool():
    """CNY 5.3: the same policy with the walk disabled."""
    world = without_walks(walking.world("$"), lambda task: "other")
    (episode,) = rollout(Scripted({"t": [TO_ONE, RIGHT]}), world, [walking.task()])
    assert episode.ending is Ending.OUT_OF_TURNS
    assert episode.observations[0].error
    assert episode.prompt.user == "other"


def test_tasks_are_split_by_their_walks_and_differences_are_paired():
    """CNY Table 2, by hand: one walk 1/2 -> 2/2, two walks 0/1 -> 1/1."""
    walk = evaluation(a=[TO_ONE, RIGHT], b=[TO_ONE, RIGHT], c=[TO_ONE, TO_TWELVE, RIGHT])
    direct = evaluation(a=[RIGHT], b=[WRONG], c=[WRONG])
    rows = {row.walks: row for row in by_walks(walk, direct)}
    assert list(rows) == ["1 walk", ">=2 walks", "all"]
    one = rows["1 walk"]
    assert (one.direct.value, one.walk.value, one.difference.value) == (0.5, 1.0, 0.5)
    assert one.share == pytest.approx(2 / 3)
    assert rows[">=2 walks"].difference.value == 1.0
    assert rows["all"].difference.value == pytest.approx(2 / 3)


def test_the_most_frequent_answer_wins_and_all_samples_are_paid_for():
    """CNY 5.3: self-consistency; the answer that came first wins a tie."""
    samples = copies((WRONG, -0.1), (RIGHT, -1.0), (RIGHT, -1.0), ("no tag", -0.1))
    chosen = voted(samples)
    assert chosen.episodes[0].answer == Answer("tree")
    assert chosen.rows[0].scores["exact_match"] == 1.0
    assert chosen.rows[0].scores["all_tokens"] == sum(len(e.tokens) for e in samples.episodes)
    assert voted(copies((WRONG, -0.1), (RIGHT, -1.0))).episodes[0].answer == Answer("bird")


def test_the_likeliest_answer_wins():
    """CNY 5.3: best of n; a sample without an answer never does."""
    chosen = likeliest(copies((WRONG, -0.5), (RIGHT, -0.2), ("no tag", -0.1)))
    assert chosen.rows[0].scores["exact_match"] == 1.0


def test_walk_statistics_by_hand():
    """CNY 5.3: of two picks one has the target's class, of the three neighbors one has."""
    first, second = ("a", [TO_ONE, RIGHT]), ("b", [TO_TWELVE, RIGHT])
    walk = evaluation(**dict([first, second]))
    labels = {"40": "tree", "1": "tree", "12": "bird", "117": "herb"}
    texts = {"40": "a tall oak", "1": "a tall tree", "12": "a sea bird", "117": "a small herb"}
    found = walk_statistics(
        walk.episodes,
        label=labels.get,
        neighbors=lambda _: ["1", "12", "117"],
        text=texts.__getitem__,
    )
    assert [walked(e) for e in walk.episodes] == [["1"], ["12"]]
    assert found.walks == 1.0
    assert found.same_class == 0.5
    assert found.homophily == pytest.approx(1 / 3)
    assert found.top_similar == 0.5
    assert found.mean_rank == 1.5


def test_no_walk_at_all_leaves_the_statistics_open():
    """Ours: a share of nothing is no number."""
    found = walk_statistics(
        evaluation(a=[RIGHT]).episodes, label=lambda _: None, neighbors=lambda _: [], text=str
    )
    assert found.walks == 0.0
    assert found.same_class is found.mean_rank is None


def test_the_tables_show_shares_with_intervals():
    """CNY Tables 2, 3 and 6."""
    walk, direct = evaluation(a=[TO_ONE, RIGHT]), evaluation(a=[WRONG])
    console = Console(file=StringIO(), width=120)
    console.print(table_of_walks(by_walks(walk, direct)))
    console.print(table_of_settings({"walk": with_metrics(walk), "direct": with_metrics(direct)}))
    text = console.file.getvalue()
    assert "+100.0 [+100.0, +100.0]" in text
    assert "1.00" in text
