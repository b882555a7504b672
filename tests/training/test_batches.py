"""Labels, replays and the order of batches."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import asking
from chatter import tiny_tokenizer
from hopling.dialects import ToolCalls
from hopling.environment import Environment
from hopling.episode import Answer, Call, Task
from hopling.errors import DataError, SettingsError
from hopling.policies.encoding import TokenizerEncoder
from hopling.policies.scripted import Scripted
from hopling.rollout import rollout
from hopling.training.batches import IGNORED, plan, replay, rows, task_order
from hopling.training.settings import SFT

LENGTHS = st.lists(st.integers(1, 50), min_size=1, max_size=30)
SCRIPT = {t.id: [f"?{t.question[0]}", f"={t.answers[0]}"] for t in asking.tasks()}


def test_both_turn_ends_are_labels_though_pad_and_end_are_one_token():
    """BUGS B31: a two-turn trace; the label at both ends is the end marker."""
    student = asking.fresh()
    trace = asking.traces(student)[0]
    data = rows([trace], max_tokens=100)
    end = student.tokenizer.eos_token_id
    assert end == student.tokenizer.pad_token_id
    assert student.encoder.decode([t for t in data.labels[0] if t != IGNORED]) == "?a<end>=1<end>"
    assert [label for label in data.labels[0] if label == end] == [end, end]


def test_only_sampled_tokens_have_labels():
    """BUGS B27: the labels are the tokens themselves, or ignored."""
    student = asking.fresh()
    for trace in asking.traces(student):
        data = rows([trace], max_tokens=100)
        ids, labels = data.input_ids[0], data.labels[0]
        assert ids == trace.tokens
        assert [label != IGNORED for label in labels] == trace.sampled
        assert all(label in (token, IGNORED) for token, label in zip(ids, labels, strict=True))


def test_what_stands_after_the_last_sampled_token_is_cut_off():
    """Ours: no label lies behind it, so reading it would be waste."""
    student = asking.fresh()
    trace = asking.traces(student)[0]
    trace.read("environment", "1\n", student.encoder.encode(["1\n"]))
    assert rows([trace], max_tokens=100).lengths == [len(trace.tokens) - 2]


def test_long_traces_are_left_out_and_the_rest_keep_their_places():
    """Ours: a cut trace would teach a call without its answer."""
    student = asking.fresh()
    traces = asking.traces(student)[:3]
    traces[1].read("prompt", "x" * 100, [5] * 100)
    assert rows(traces, max_tokens=50).kept == [0, 2]
    with pytest.raises(SettingsError, match="none of 3 traces has at most max_tokens = 5"):
        rows(traces, max_tokens=5)


def test_a_replay_has_the_tokens_of_an_episode_that_the_student_played():
    """Second law: the same text in the same dialect gives the same tokens and mask."""
    encoder = asking.fresh().encoder
    lived = rollout(Scripted(SCRIPT, encoder), asking.world(), asking.tasks())
    told = replay(
        rollout(Scripted(SCRIPT), asking.world(), asking.tasks()), asking.world(), encoder
    )
    assert [e.tokens for e in told] == [e.tokens for e in lived]
    assert [e.sampled for e in told] == [e.sampled for e in lived]
    assert [e.turns for e in told] == [e.turns for e in lived]
    assert [e.ending for e in told] == [e.ending for e in lived]


def test_a_replayed_call_stands_between_the_models_own_tokens():
    """Second law: Qwen has a token for each tag of a call, and samples it."""
    encoder, dialect = TokenizerEncoder(tiny_tokenizer()), ToolCalls()
    world = Environment(lambda task: task.question, (asking.Ask(),), dialect, max_turns=2)
    texts = [dialect.write([Call("ask", {"key": "</tool_call>"})]), dialect.write([Answer("{1}")])]
    played = rollout(Scripted({"t": texts}), world, [Task("t", "a is")])
    (told,) = replay(played, world, encoder)
    sampled = [t for t, s in zip(told.tokens, told.sampled, strict=True) if s]
    control = [token for token in sampled if token in encoder.control.values()]
    assert encoder.decode(control) == "<tool_call></tool_call><|im_end|><|im_end|>"
    assert encoder.decode(sampled) == "<|im_end|>".join([*texts, ""])
    assert told.turns == played[0].turns


def test_a_replay_asks_no_graph():
    """Ours: observations are the recorded ones; here the world is down."""
    encoder = asking.fresh().encoder
    played = rollout(Scripted(SCRIPT), asking.world(), asking.tasks())
    told = replay(played, asking.world(down=("a", "b")), encoder)
    assert [e.turns for e in told] == [e.turns for e in played]


def test_a_replay_is_told_the_students_prompt():
    """SoG-R1 4.2: the student does not see what the teacher was shown."""
    encoder = asking.fresh().encoder
    teachers = asking.world().__class__(
        lambda task: "SECRET", asking.world().tools, asking.Plain(), max_turns=3
    )
    played = rollout(Scripted(SCRIPT), teachers, asking.tasks())
    told = replay(played, asking.world(), encoder)
    assert all("SECRET" not in encoder.decode(e.tokens) for e in told)


def test_a_dialect_that_reads_something_else_back_is_an_error():
    """Ours: training on it would teach another action than the teacher's."""

    class Lossy(asking.Plain):
        def write(self, actions, thought=""):
            return "=lost" if isinstance(actions[0], Answer) else "?z"

    played = rollout(Scripted(SCRIPT), asking.world(), asking.tasks())
    assert isinstance(played[0].turns[0].actions[0], Call)
    lossy = asking.world().__class__(
        lambda task: task.question, asking.world().tools, Lossy(), max_turns=3
    )
    with pytest.raises(DataError, match=r"trace 't0', turn 1: the dialect wrote '\?z'"):
        replay(played, lossy, asking.fresh().encoder)


@given(LENGTHS, st.integers(1, 3), st.integers(1, 200))
def test_buckets_hold_every_trace_once_an_epoch_within_the_budget(lengths, epochs, budget):
    """Ours: a trace longer than the budget has a bucket of its own."""
    settings = SFT(epochs=epochs, tokens_per_batch=budget)
    batches = plan(lengths, settings).batches
    told = sorted(i for batch in batches for i in batch)
    assert told == sorted([*range(len(lengths))] * epochs)
    for batch in batches:
        assert len(batch) == 1 or max(lengths[i] for i in batch) * len(batch) <= budget


@given(LENGTHS, st.integers(1, 3), st.integers(1, 4), st.integers(1, 3))
def test_updates_hold_a_batch_each_and_micro_batches_like_lengths(lengths, epochs, micro, updates):
    """SoG-R1 App. B: 64 traces an update, in micro-batches."""
    settings = SFT(epochs=epochs, batch_size=micro * updates, micro_batch_size=micro)
    made = plan(lengths, settings)
    assert made.accumulation == updates
    told = sorted(i for batch in made.batches for i in batch)
    assert told == sorted([*range(len(lengths))] * epochs)
    for batch in made.batches:
        assert [lengths[i] for i in batch] == sorted(lengths[i] for i in batch)


def test_the_order_depends_on_the_seed_alone():
    """Ours: no global random state."""
    assert plan(range(1, 40), SFT(seed=1)) == plan(range(1, 40), SFT(seed=1))
    assert plan(range(1, 40), SFT(seed=1)) != plan(range(1, 40), SFT(seed=2))


@given(LENGTHS, st.integers(1, 4))
def test_every_process_gets_as_many_micro_batches(lengths, processes):
    """MEASURED: ranks with different numbers of batches hang."""
    settings = SFT(epochs=4, batch_size=processes, micro_batch_size=1)
    made = plan(lengths, settings, processes=processes)
    assert len(made.batches) % processes == 0


def test_a_batch_that_does_not_divide_is_refused():
    """Ours: rounding would change the paper's batch without a word."""
    with pytest.raises(SettingsError, match=r"expected a multiple of .* = 24"):
        plan([1] * 100, SFT(batch_size=64, micro_batch_size=8), processes=3)


@given(st.integers(1, 20), st.integers(1, 20), st.integers(1, 9))
def test_no_task_comes_twice_in_a_step_and_none_twice_in_an_epoch(num_tasks, size, steps):
    """BUGS B29: two groups of one task in a step would be one group."""
    if num_tasks < size:
        return
    order = task_order(num_tasks, size, steps, seed=0)
    assert [len(step) for step in order] == [size] * steps
    steps_in_epoch = num_tasks // size
    for start in range(0, steps, steps_in_epoch):
        epoch = [t for step in order[start : start + steps_in_epoch] for t in step]
        assert len(epoch) == len(set(epoch))
