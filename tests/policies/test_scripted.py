import pytest

from chatter import END, Chatter, chat, groups, tiny_tokenizer
from hopling.dialects.tool_calls import ToolCalls
from hopling.episode import Call, Markup, Prompt, Task, View
from hopling.errors import SettingsError
from hopling.policies.encoding import TokenizerEncoder
from hopling.policies.scripted import Scripted
from hopling.rollout import rollout
from hopling.testing import check_policy


def test_scripted_policies_pass_the_suite() -> None:
    """Law 3 and law 2."""
    encoder = TokenizerEncoder(tiny_tokenizer())
    tasks = groups(2, 2)
    turns = {task.id: ["one", "two"] for task in tasks}
    check_policy(Scripted(turns), Chatter(), tasks)
    check_policy(Scripted(turns, encoder), Chatter(), tasks)
    check_policy(Scripted.from_function(lambda view: "x", encoder), ToolCalls(), tasks)


def test_each_task_gets_its_own_turns_in_order() -> None:
    """Ours."""
    policy = Scripted({"t0": ["a", "b"], "t1": ["c", "d"]})
    episodes = rollout(policy, chat(max_turns=2), groups(2, 1))
    assert [[turn.text for turn in e.turns] for e in episodes] == [["a", "b"], ["c", "d"]]


def test_a_script_that_runs_out_says_for_which_task() -> None:
    """Ours."""
    with pytest.raises(SettingsError, match=r"1 turns for task 't0', and turn 2"):
        rollout(Scripted({"t0": ["a"]}), chat(max_turns=2), groups(1, 1))
    with pytest.raises(SettingsError, match=r"no turns for task 't0'. Did you mean 't9'\?"):
        rollout(Scripted({"t9": ["a"]}), chat(), groups(1, 1))


def test_a_turn_ends_in_the_marker_that_a_model_would_have_sampled() -> None:
    """Law 2; B31: the end marker is a token of the turn although it is the pad token too."""
    tokenizer = tiny_tokenizer()
    assert tokenizer.pad_token == tokenizer.eos_token == END
    encoder = TokenizerEncoder(tokenizer)
    (episode,) = rollout(Scripted({"t": ["hi"]}, encoder), chat(max_turns=1), [Task("t", "?")])
    assert episode.turns[0].text == episode.segments[-1].text == "hi"
    assert encoder.decode(episode.segments[-1].tokens) == "hi<|im_end|>"
    assert episode.sampled[-1]
    assert episode.tokens[-1] == tokenizer.eos_token_id


def test_the_pieces_of_a_dialect_give_the_control_tokens_of_a_call_and_no_other() -> None:
    """B20: a marker inside an argument stays text, the tags around the call are tokens."""
    encoder = TokenizerEncoder(tiny_tokenizer())
    dialect = ToolCalls()
    text = dialect.write([Call("search", {"entities": ["</tool_call><|im_end|>"]})])
    policy = Scripted.from_function(lambda view: dialect.pieces(text), encoder)
    (turn,) = policy.generate([View(0, "t", 0, Prompt("?"), (), (), ())], dialect.stops)
    assert turn.text == text
    control = [token for token in turn.tokens if token in encoder.control.values()]
    assert encoder.decode(control) == "<tool_call></tool_call><|im_end|>"
    assert encoder.decode(turn.tokens) == text + "<|im_end|>"


def test_a_closing_tag_that_is_a_stop_needs_no_marker() -> None:
    """Ours: a stop that is not Markup is part of the text, and ends the turn."""
    encoder = TokenizerEncoder(tiny_tokenizer())
    policy = Scripted.from_function(lambda view: "<walk>7</walk>", encoder)
    view = View(0, "t", 0, Prompt("?"), (), (), ())
    (turn,) = policy.generate([view], ("</walk>", Markup("<|im_end|>")))
    assert encoder.decode(turn.tokens) == turn.text == "<walk>7</walk>"
