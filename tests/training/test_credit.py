"""Hindsight: delta by hand, on which tokens it lands, what it leaves out, and what is logged."""

import math
from types import SimpleNamespace

import pytest
import torch

import asking
import walking
from hopling.episode import Markup
from hopling.policies.encoding import TokenizerEncoder
from hopling.policies.local import LocalModel
from hopling.policies.sampling import Sampling
from hopling.records import read
from hopling.training.credit import hindsight, walks
from hopling.training.grpo import grpo
from hopling.training.metrics import alarms, ratios
from hopling.training.practice import Goal, Run
from hopling.training.recaps import by_policy, first_words
from hopling.training.settings import OPSD
from hopling.training.tiny import END, train_tokenizer

WALK = "I think so. <walk>12</walk>"
ANSWER = "<answer>bird</answer>"


class Weighed(torch.nn.Module):
    """Each z in sight multiplies the odds of the byte 1 by 256, and of the byte 2 by 1/2."""

    def __init__(self, one, two, z):
        super().__init__()
        self.table = torch.nn.Parameter(torch.zeros(257, 257))
        with torch.no_grad():
            self.table[z, one], self.table[z, two] = math.log(256), -math.log(2)

    def forward(self, input_ids, attention_mask, logits_to_keep, **_):
        seen_BNN = (attention_mask[:, 0] == 0).float()
        held_BNV = torch.nn.functional.one_hot(input_ids, 257).float()
        logits_BNV = seen_BNN @ held_BNV @ self.table
        return SimpleNamespace(logits=logits_BNV[:, logits_to_keep])


@pytest.fixture(scope="module")
def encoder():
    return TokenizerEncoder(asking.tokenizer())


@pytest.fixture
def student(encoder):
    """A student by hand: without z every byte has the probability 1/257."""
    (one,), (two,), (z,) = (encoder.encode([text]) for text in "12z")
    return SimpleNamespace(model=Weighed(one, two, z), encoder=encoder)


def group(encoder, *scripts, rewards=None, names=None):
    """Return episodes of the scripts with rewards, in one group unless names tell them apart."""
    rewards = rewards or [float(i) for i in range(len(scripts))]
    names = names or ["t"] * len(scripts)
    triples = zip(scripts, rewards, names, strict=True)
    return [
        walking.scored(walking.episode(turns, encoder, asking.END, name=name), reward)
        for turns, reward, name in triples
    ]


def zs(texts, student, max_tokens):
    return ["z" for _ in texts]


def nonzero(terms):
    return [i for i, term in enumerate(terms) if term]


def test_delta_is_the_change_of_log_probability_by_hand(encoder, student):
    """CNY Eq. 7-8: "12" has two tokens; with one z before the walk p(1) = 256/511.5 and p(2) =
    .5/511.5 where both were 1/257, so delta is ln(128.62) and ln(.2512), and beta is .03."""
    (own,) = group(encoder, [WALK, ANSWER])
    credited = hindsight(zs, OPSD())([own], student)
    (terms,) = credited.terms
    places = nonzero(terms)
    assert encoder.decode([own.episode.tokens[i] for i in places]) == "12"
    first = 0.03 * (math.log(256 / 511.5) - math.log(1 / 257))
    second = 0.03 * (math.log(0.5 / 511.5) - math.log(1 / 257))
    assert [terms[i] for i in places] == pytest.approx([first, second], abs=1e-5)
    row = ratios([credited.sums])
    assert row["delta_abs"] == pytest.approx((first - second) / 0.03 / 2, abs=1e-4)
    assert row["delta"] == pytest.approx((first + second) / 0.03 / 2, abs=1e-4)
    assert row["delta_positive"] == 0.5
    assert row["walks"] == row["walking"] == 1.0


def test_each_walk_is_judged_by_what_stood_before_it(encoder, student):
    """CNY Eq. 7: s_<t holds what was thought and read; z there is known to the student already."""
    first, second = "z <walk>1</walk>", "<walk>1</walk>"
    (own,) = group(encoder, [first, second, ANSWER])
    (terms,) = hindsight(zs, OPSD(beta=1.0))([own], student).terms
    one, two = (terms[i] for i in nonzero(terms))
    sees_one = math.log(256 / 511.5)
    sees_two = math.log(65536 / (65536 + 0.25 + 255))
    assert one == pytest.approx(sees_two - sees_one, abs=1e-5)
    assert two == pytest.approx(sees_two - sees_one, abs=1e-5)


def test_what_is_no_successful_walk_gets_no_credit(encoder, student):
    """CNY 4.4, Alg. 2: walks off the frontier, malformed turns, answers and unscored episodes."""
    off = ["<walk>9</walk>", "no tag", ANSWER]
    credited = hindsight(zs, OPSD())(
        group(encoder, off, [WALK, ANSWER], rewards=[0.3, None]), student
    )
    assert [nonzero(terms) for terms in credited.terms] == [[], []]
    assert ratios([credited.sums])["walking"] == 0.0


@pytest.mark.parametrize("node", ["1", "12", "117", "1234567"])
@pytest.mark.parametrize("name", ["bytes", "tiny", "smollm2"])
def test_credit_lands_on_the_ids_tokens_under_three_tokenizers(name, node, request):
    """CNY 4.4, issue 4: ids of one and of several tokens, with and without spaces in the tag."""
    if name == "smollm2":
        tokenizer, end = request.getfixturevalue("smollm2_tokenizer"), "<|im_end|>"
    elif name == "bytes":
        tokenizer, end = asking.tokenizer(), asking.END
    else:
        tokenizer, end = train_tokenizer([WALK, ANSWER, "117 12"], vocab_size=1300), END
    encoder = TokenizerEncoder(tokenizer)
    for form in (
        "<walk>{}</walk>",
        "1 12 117: <walk> {} </walk>",
        "\u00e9\U0001f333<walk>{}</walk> 12",
    ):
        played = walking.episode([form.format(node), ANSWER], encoder, end)
        (found,) = walks(played, encoder)
        read = encoder.decode(played.tokens[slice(*found.ids)])
        assert read.strip() == node
        inner = encoder.decode(played.tokens[found.start : found.ids[0]])
        assert inner.strip().startswith("<walk>")
        assert not played.turns[0].text[: played.turns[0].text.index("<walk>")].endswith(inner)


def test_a_token_that_holds_a_tags_end_and_the_id_counts(encoder):
    """Ours: a sampled token may hold both ">" and a digit; credit cannot be cut finer."""

    class Merged(TokenizerEncoder):
        def decode(self, tokens):
            own = {900: ">1", 901: "2<"}
            return "".join(own.get(token) or encoder.decode([token]) for token in tokens)

    played = walking.episode(["<walk>12</walk>", ANSWER], encoder, asking.END)
    segment = played.segments[1]
    start = segment.text.index(">")
    tokens = [*segment.tokens[:start], 900, 901, *segment.tokens[start + 4 :]]
    played.segments[1] = type(segment)("policy", segment.text, tuple(tokens))
    (found,) = walks(played, Merged(encoder.tokenizer))
    assert played.tokens[slice(*found.ids)] == [900, 901]


def test_an_id_that_tokens_do_not_spell_is_counted_and_gets_none(encoder, student):
    """PAPERS 2.3: a span that cannot be found is skipped, and counted."""
    (own,) = group(encoder, [WALK, ANSWER])
    segment = own.episode.segments[1]
    own.episode.segments[1] = type(segment)("policy", segment.text, segment.tokens[:15])
    credited = hindsight(zs, OPSD())([own], student)
    assert nonzero(credited.terms[0]) == []
    assert ratios([credited.sums])["walks_misaligned"] == 1.0


def test_delta_may_be_clipped_or_divided_by_the_ids_length(encoder, student):
    """Ours, issue 4: both off by default, for parity with the paper."""
    scored = group(encoder, [WALK, ANSWER])
    usual, clipped, averaged = (
        hindsight(zs, OPSD(beta=1.0, **changed))(scored, student).terms[0]
        for changed in ({}, {"clip": 0.5}, {"average": True})
    )
    places = nonzero(usual)
    assert [clipped[i] for i in places] == [0.5, -0.5]
    assert [averaged[i] for i in places] == pytest.approx([usual[i] / 2 for i in places])


def test_groups_without_spread_may_be_left_without_credit(encoder, student):
    """MEASURED, "Trainer": there a mean delta pays for walking itself; off for parity."""
    scripts, names = [[WALK, ANSWER]] * 4, ["t", "t", "u", "u"]
    scored = group(encoder, *scripts, rewards=[1.0, 0.3, 1.0, 1.0], names=names)
    usual, gated = (hindsight(zs, OPSD(gate=gate))(scored, student) for gate in (False, True))
    assert [bool(nonzero(terms)) for terms in usual.terms] == [True] * 4
    assert [bool(nonzero(terms)) for terms in gated.terms] == [True, True, False, False]
    assert ratios([usual.sums])["delta_flat"] == ratios([usual.sums])["delta"]
    assert ratios([gated.sums])["delta_flat"] is None
    assert ratios([gated.sums])["walking"] == 1.0


@pytest.mark.parametrize(
    ("recap", "kind"),
    [("node 12 is a bird", "id"), ("walk on to birds", "advice"), ("a kind of bird", "class")],
)
def test_a_recap_that_leaks_gives_no_credit_and_is_counted(encoder, student, recap, kind):
    """CNY Eq. 6, Figure 6: no node ids, no advice, no guess at the class."""
    credit = hindsight(lambda *_: [recap], OPSD(), labels=lambda task: ["tree", "bird"])
    credited = credit(group(encoder, [WALK, ANSWER]), student)
    assert nonzero(credited.terms[0]) == []
    row = ratios([credited.sums])
    assert {k: row[f"leaks_{k}"] for k in ("id", "advice", "class")} == {
        k: float(k == kind) for k in ("id", "advice", "class")
    }


def test_equal_destinations_are_recapped_once_and_equal_beginnings_read_once(encoder, student):
    """Issue 4: a group walks to few nodes, from one prompt."""
    seen = []

    def noted(texts, student, max_tokens):
        seen.append(list(texts))
        return ["z"] * len(texts)

    once, often = (
        hindsight(noted, OPSD())(group(encoder, *[[WALK, ANSWER]] * n), student) for n in (1, 8)
    )
    assert seen == [["a sea bird"], ["a sea bird"]]
    assert often.sums["credit_tokens"] == (once.sums["credit_tokens"][0], 8.0)


def test_the_same_weights_write_the_recap(encoder):
    """CNY Eq. 6: greedy, of at most so many tokens (bytes here), and one line."""
    model = asking.fresh()
    model.sampling = Sampling(max_turn_tokens=3)
    recap = by_policy(walking.Tagged(Markup(asking.END)), system="")
    texts = ["a tall tree", "a sea bird"]
    found = recap(texts, model, 12)
    assert recap(list(reversed(texts)), model, 12) == list(reversed(found))
    assert all(0 < len(text) <= 12 and "\n" not in text for text in found)
    assert model.sampling.max_turn_tokens == 3
    assert first_words(2)(texts, model, 12) == ["a tall", "a sea"]


def test_a_step_with_hindsight_logs_the_signal(tmp_path):
    """CNY Table 5: mean delta, mean |delta|, share above 0 and the walk rate, with the leaks."""
    model = LocalModel(asking.fresh().model, asking.tokenizer())
    world = walking.world(asking.END)
    credit = hindsight(zs, OPSD(beta=0.5))
    goal = Goal(lambda episode: float(episode.seed % 2), credit=(credit,))
    settings = asking.practice(steps=1, max_turn_tokens=8)
    tasks = [walking.task(f"t{i}") for i in range(4)]
    grpo(model, world, tasks=tasks, goal=goal, settings=settings, run=Run(tmp_path))
    (row,) = read(tmp_path / "metrics.jsonl")
    assert {"delta", "delta_abs", "delta_positive", "delta_flat", "walking", "walks"} <= set(row)
    assert {"leaks_id", "leaks_advice", "leaks_class", "credit_cpu_seconds"} <= set(row)
    assert row["walking"] == 0.0


def test_drift_in_flat_groups_and_lost_walks_raise_an_alarm():
    """MEASURED, "Trainer": two of four seeds lost their walks while mean delta fell to -1."""
    steady = [{"step": s, "delta_flat": 0.3, "walking": 0.9} for s in range(1, 7)]
    assert alarms(steady) == []
    fallen = [row | {"delta_flat": -1.0} if row["step"] > 3 else row for row in steady]
    (alarm,) = alarms(fallen)
    assert "drifted from 0.3 to -1" in alarm
    (alarm,) = alarms([*steady, steady[-1] | {"step": 7, "walking": 0.4}])
    assert alarm == "episodes that walk fell from 90 % to 40 %."
