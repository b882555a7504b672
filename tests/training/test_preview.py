"""The coloured sample before training."""

import asking
from hopling.episode import Ending
from hopling.policies.scripted import Scripted
from hopling.rollout import rollout
from hopling.training.preview import preview


def styles(text):
    return {text.plain[span.start : span.end]: str(span.style) for span in text.spans}


def test_trained_tokens_are_colored_by_the_sign_of_the_advantage():
    """BUGS B27: what is only read is dim."""
    student = asking.fresh()
    first, second, third = asking.traces(student)[:3]
    text = preview([first, second, third], student.tokenizer, advantages=[1.0, -0.5, 0.0])
    assert text.plain.startswith("[t0] a is\n?a<end>\n1\n=1<end>\n")
    shown = styles(text)
    assert (shown["=1<end>"], shown["=2<end>"]) == ("yellow", "red")
    assert shown["a is\n"] == shown["\n1\n"] == "dim"
    assert styles(preview([first], student.tokenizer))["=1<end>"] == "green"


def test_a_cut_episode_is_marked_and_an_unscored_one_is_dim():
    """BUGS B30: a flag of its own."""
    student = asking.fresh()
    policy = Scripted({"t0": ["?a", "?a", "?a"]}, student.encoder)
    (late,) = rollout(policy, asking.world(), asking.tasks(1))
    (failed,) = rollout(policy, asking.world(down=("a",)), asking.tasks(1))
    late.ending = Ending.CUT
    assert preview([late], student.tokenizer).plain.endswith("[cut]\n")
    assert styles(preview([failed], student.tokenizer))["?a<end>"] == "dim"
