"""Practice: what reaches the loss, what is recorded, and what a resumed run ends with."""

from collections import Counter

import pytest
import torch

import asking
from hopling.episode import Ending, Episode
from hopling.errors import SettingsError, WorldError
from hopling.records import read
from hopling.rollout import rollout
from hopling.training.advantages import by_group, standardized
from hopling.training.grpo import grpo
from hopling.training.practice import Credited, Goal, Run


def weights(student):
    return torch.cat([p.detach().flatten() for p in student.model.parameters()])


def practiced(student, folder, *, world=None, goal=None, settings=None, **run):
    return grpo(
        student,
        world or asking.world(),
        tasks=asking.tasks(4),
        goal=goal or Goal(asking.right),
        settings=settings or asking.practice(),
        run=Run(folder, **run),
    )


def played(folder, step=1):
    rows = [row for row in read(folder / "episodes.jsonl") if row["step"] == step]
    return [Episode.from_json(row) for row in rows], [row["reward"] for row in rows]


def logprobs(model, episode):
    """The log-probability of each token given those before it, shape (T - 1,)."""
    tokens = torch.tensor(episode.tokens)
    logits = model(tokens[None]).logits[0, :-1]
    return logits.log_softmax(-1).gather(1, tokens[1:, None])[:, 0]


def gradient_norm(model, loss):
    grads = torch.autograd.grad(loss, list(model.parameters()), allow_unused=True)
    return torch.cat([g.flatten() for g in grads if g is not None]).norm().item()


def by_hand(episodes, advantages, trained):
    """Return the norm of GRPO's gradient: means over a sequence's own tokens, then over sequences.

    On-policy, the ratio is 1 and its gradient that of the log-probability.
    """
    model = asking.warm().model
    loss = torch.zeros(())
    for episode, advantage, is_trained in zip(episodes, advantages, trained, strict=True):
        mask = torch.tensor(episode.sampled[1:])
        if is_trained and mask.any():
            loss = loss - advantage * logprobs(model, episode)[mask].mean() / len(episodes)
    return gradient_norm(model, loss)


def test_the_update_is_that_of_the_equation(tmp_path):
    """SoG-R1 4.4, GTA-RAG Eq. 20: worked by hand; environment tokens leak nothing."""
    practiced(asking.warm(), tmp_path, settings=asking.practice(steps=1))
    episodes, rewards = played(tmp_path)
    advantages = by_group([e.task.id for e in episodes], rewards, standardized)
    expected = by_hand(episodes, advantages, [True] * len(episodes))
    (row,) = read(tmp_path / "metrics.jsonl")
    assert expected > 0.1
    assert row["grad_norm"] == pytest.approx(expected, rel=1e-3)


def test_an_unscored_episode_moves_nothing(tmp_path):
    """The fifth law: neither its tokens nor its group's mean and spread."""
    world = asking.world(down=("b",))
    practiced(asking.warm(), tmp_path, world=world, settings=asking.practice(steps=1))
    episodes, rewards = played(tmp_path)
    failed = [e.ending is Ending.UNSCORED for e in episodes]
    assert 0 < sum(failed) < len(failed)
    assert [r is None for r in rewards] == failed
    advantages = by_group([e.task.id for e in episodes], rewards, standardized)
    expected = by_hand(episodes, advantages, [not f for f in failed])
    (row,) = read(tmp_path / "metrics.jsonl")
    assert row["grad_norm"] == pytest.approx(expected, rel=1e-3)
    assert row["unscored"] == sum(failed) / len(failed)


def test_a_reward_that_cannot_be_had_leaves_the_episode_unscored(tmp_path):
    """The fifth law: a judge that does not answer is the world, not the policy."""

    def reward(episode):
        if episode.task.id == "t0":
            raise WorldError("the judge did not answer")
        return asking.right(episode)

    practiced(asking.warm(), tmp_path, goal=Goal(reward), settings=asking.practice(steps=1))
    episodes, rewards = played(tmp_path)
    assert [r is None for r in rewards] == [e.task.id == "t0" for e in episodes]
    assert {e.reason for e in episodes if e.task.id == "t0"} == {"the judge did not answer"}


@pytest.mark.parametrize("policy", ["scored", "left out"])
def test_cut_episodes_are_scored_as_they_are_or_left_out(tmp_path, policy):
    """BUGS B30: a setting; the gradient is that with the cut ones kept or masked by hand."""
    settings = asking.practice(steps=1, cut_episodes=policy, max_turn_tokens=3)
    practiced(asking.warm(), tmp_path, settings=settings)
    episodes, rewards = played(tmp_path)
    whole = [e.ending not in (Ending.CUT, Ending.CONTEXT_FULL) for e in episodes]
    assert 0 < sum(whole) < len(whole)
    assert {r for r, is_whole in zip(rewards, whole, strict=True) if not is_whole} == {0.0}
    advantages = by_group([e.task.id for e in episodes], rewards, standardized)
    trained = whole if policy == "left out" else [True] * len(whole)
    (row,) = read(tmp_path / "metrics.jsonl")
    assert row["grad_norm"] == pytest.approx(by_hand(episodes, advantages, trained), rel=1e-3)
    assert row["cut"] == 1 - sum(whole) / len(whole)


def test_groups_without_spread_change_no_weight(tmp_path):
    """BUGS B29: advantages are exactly 0, and counted."""
    student = asking.warm()
    before = weights(student)
    practiced(student, tmp_path, goal=Goal(lambda episode: 0.3, correct=asking.right))
    assert torch.equal(weights(student), before)
    assert [row["flat_rewards"] for row in read(tmp_path / "metrics.jsonl")] == [1.0, 1.0]
    assert read(tmp_path / "metrics.jsonl")[0]["flat_groups"] < 1.0


def test_an_opening_that_fills_the_context_breaks_nothing(tmp_path):
    """Ours: TRL looks at the last token of a completion, and there is none."""
    student = asking.warm()
    before = weights(student)
    practiced(student, tmp_path, world=asking.world(max_tokens=3))
    assert torch.equal(weights(student), before)
    assert read(tmp_path / "metrics.jsonl")[0]["endings"]["context full"] == 16


def test_credit_adds_to_the_advantage_of_each_token(tmp_path):
    """CNY Eq. 8: the advantage of a token is the group's plus the credit's."""

    def last_token(scored, student):
        return Credited([[0.0] * (len(s.episode.tokens) - 1) + [0.5] for s in scored])

    goal = Goal(lambda episode: 1.0, credit=(last_token,))
    practiced(asking.warm(), tmp_path, goal=goal, settings=asking.practice(steps=1))
    episodes, _ = played(tmp_path)
    model = asking.warm().model
    loss = torch.zeros(())
    for episode in episodes:
        if episode.sampled[-1]:
            last = logprobs(model, episode)[-1]
            loss = loss - 0.5 * last / sum(episode.sampled) / len(episodes)
    (row,) = read(tmp_path / "metrics.jsonl")
    assert row["grad_norm"] == pytest.approx(gradient_norm(model, loss), rel=1e-3)


def test_dr_grpo_divides_by_a_constant_not_by_the_context(tmp_path):
    """Dr. GRPO: a constant normalizer, here loss_tokens; environment tokens do not count."""
    norms = {}
    for tokens in (10, 20):
        settings = asking.practice(
            steps=1, loss="dr_grpo", advantage="centered", loss_tokens=tokens
        )
        practiced(asking.warm(), tmp_path / str(tokens), settings=settings)
        norms[tokens] = read(tmp_path / str(tokens) / "metrics.jsonl")[0]["grad_norm"]
    assert norms[10] == pytest.approx(2 * norms[20], rel=1e-4)


@pytest.mark.parametrize("lora_rank", [0, 4])
def test_the_divergence_is_from_the_student_at_the_start(tmp_path, lora_rank):
    """SoG-R1 App. B: none at first, some after an update; a model in memory has no path."""
    settings = asking.practice(steps=3, kl=0.05, lora_rank=lora_rank, learning_rate=5e-3)
    practiced(asking.warm(), tmp_path, settings=settings)
    first, *later = (row["kl"] for row in read(tmp_path / "metrics.jsonl"))
    assert first == pytest.approx(0.0, abs=1e-6)
    assert min(later) > 1e-4


def test_a_second_stage_starts_from_what_the_first_left(tmp_path):
    """GTA-RAG 3.3: two stages, one trainer; the second's divergence starts at 0."""
    student = asking.warm()
    settings = asking.practice(steps=1, kl=0.05)
    practiced(student, tmp_path / "1", settings=settings)
    practiced(student, tmp_path / "2", settings=settings)
    assert read(tmp_path / "2" / "metrics.jsonl")[0]["kl"] == pytest.approx(0.0, abs=1e-6)
    assert "forward" not in vars(student.model)


class Killed(Exception):
    """Stands for a run that ends in the middle."""


def killer(step):
    def on_step(row):
        if row["step"] == step:
            raise Killed

    return on_step


@pytest.mark.parametrize("lora_rank", [0, 4])
def test_a_killed_run_resumes_to_the_same_weights(tmp_path, lora_rank):
    """BUGS B36: sampling depends on seed, step, task and copy, never on a global state."""
    settings = asking.practice(
        steps=4, minibatch_size=2, micro_batch_size=8, kl=0.01, lora_rank=lora_rank
    )
    whole, torn, resumed = asking.warm(), asking.warm(), asking.warm()
    valid = asking.tasks(2)
    practiced(whole, tmp_path / "whole", settings=settings, valid=valid)
    torch.rand(7)
    with pytest.raises(Killed):
        practiced(torn, tmp_path / "torn", settings=settings, valid=valid, on_step=killer(3))
    practiced(resumed, tmp_path / "torn", settings=settings, valid=valid, resume=True)
    assert torch.equal(weights(whole), weights(resumed))
    steps = [row["step"] for row in read(tmp_path / "torn" / "metrics.jsonl")]
    assert steps == [0, 1, 2, 3, 4]
    recorded = Counter(row["step"] for row in read(tmp_path / "torn" / "episodes.jsonl"))
    assert recorded == {1: 16, 2: 16, 3: 16, 4: 16}


def test_the_weights_with_the_best_validation_are_kept(tmp_path):
    """Ours: a run that spoils the student ends with the student of its best moment."""
    student = asking.warm()
    before = weights(student)
    settings = asking.practice(steps=4, learning_rate=0.3, valid_every=1)
    practiced(student, tmp_path, goal=Goal(asking.right), settings=settings, valid=asking.tasks(2))
    scores = [row["valid_reward"] for row in read(tmp_path / "metrics.jsonl")]
    assert scores[-1] < max(scores)
    if scores.index(max(scores)) == 0:
        assert torch.equal(weights(student), before)
    student.sampling = asking.Sampling(temperature=0.0, max_turn_tokens=6)
    again = rollout(student, asking.world(), asking.tasks(2))
    assert sum(map(asking.right, again)) / 2 == max(scores)


def test_a_sample_is_shown_before_the_first_update(tmp_path):
    """BUGS B27: once, with the tokens that are about to be trained."""
    shown = []
    practiced(asking.warm(), tmp_path, show=shown.append)
    (text,) = shown
    assert "is\n" in text.plain
    assert {str(span.style) for span in text.spans} > {"dim"}


def test_every_step_reports_what_a_reader_of_the_curve_needs(tmp_path):
    """Ours: one row a step, in the file and to the caller alike."""
    rows = []
    practiced(asking.warm(), tmp_path, on_step=rows.append)
    assert rows == read(tmp_path / "metrics.jsonl")
    needed = {
        *("step", "reward", "correct", "flat_groups", "endings", "cut", "tool_errors", "calls"),
        *("turns", "entropy", "kl", "learning_rate", "clipped", "alarms", "rollout_seconds"),
        *("rollout_cpu_seconds", "train_seconds", "train_cpu_seconds", "loss", "malformed"),
    }
    assert needed <= set(rows[0])


def test_two_tasks_of_one_id_are_refused(tmp_path):
    """BUGS B29: their groups would be one."""
    with pytest.raises(SettingsError, match="two tasks have the id 't0'"):
        grpo(
            asking.fresh(),
            asking.world(),
            tasks=[asking.tasks(1)[0], *asking.tasks(4)],
            goal=Goal(asking.right),
            settings=asking.practice(),
            run=Run(tmp_path),
        )


def test_more_tasks_in_a_step_than_there_are_is_refused(tmp_path):
    """Ours: the message says what to set."""
    with pytest.raises(SettingsError, match="set batch_size to at most 4"):
        practiced(asking.fresh(), tmp_path, settings=asking.practice(batch_size=64))


def test_micro_batches_must_divide_an_update(tmp_path):
    """Ours: TRL would refuse it with a message about its own settings."""
    with pytest.raises(SettingsError, match="micro_batch_size x processes = 5"):
        practiced(asking.fresh(), tmp_path, settings=asking.practice(micro_batch_size=5))
