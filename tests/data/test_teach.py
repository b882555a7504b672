import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import pytest

from hopling import records
from hopling.data.compile import Compiler
from hopling.data.estimate import Habits, estimate
from hopling.data.teach import KEPT, retained, task_class, teach
from hopling.dialects import ToolCalls
from hopling.environment import Environment
from hopling.episode import Call, Completion, Episode, Prompt, Task, View
from hopling.errors import SettingsError, WorldError
from hopling.policies.scripted import Scripted
from hopling.policies.server import Server
from hopling.policies.spending import Price
from hopling.rewards import all_calls_ran, exact_match
from hopling.tools import OneHopSearch
from small_graph import SmallGraph

DIALECT = ToolCalls()
KEEP = (exact_match, all_calls_ran)
GRAPH = SmallGraph(
    [("m.1", "directed_by", "m.3"), ("m.2", "directed_by", "m.3"), ("m.1", "year", '"1999"')],
    {"m.1": "Kismet", "m.2": "Low", "m.3": "Ann Lee"},
)
ENVIRONMENT = Environment(
    lambda task: Prompt(task.question), (OneHopSearch(GRAPH),), DIALECT, max_turns=3
)


def _task(id: str, start: str = "m.1", answer: str = "Ann Lee", **hints: object) -> Task:
    return Task(id, f"Question {id}?", (start,), (answer,), hints=hints)


def _ask(entity: str) -> str:
    return DIALECT.write([Call("Search", {"entities": [entity], "direction": "outgoing"})])


RIGHT = [_ask("m.1"), "Final answer: {Ann Lee}"]


@dataclass
class Flaky:
    """A server that does not answer for some tasks; it counts what it was asked."""

    down: set[str]
    asked: list[str] = field(default_factory=list)
    encoder: None = None
    max_live: int = 4
    concurrent: bool = True

    def generate(self, views: Sequence[View], stops: Sequence[str]) -> list[Completion]:
        (view,) = views
        self.asked.append(view.task_id)
        if view.task_id in self.down:
            raise WorldError("http://localhost:8000/v1 did not answer.")
        return [Completion(RIGHT[len(view.turns)])]


def test_a_trace_is_kept_iff_it_is_right_and_every_call_ran():
    """SoG-R1 4.2: retain only exact answers whose calls all executed without error."""
    turns = {
        "right": RIGHT,
        "wrong": [_ask("m.1"), "Final answer: {Bo Dale}"],
        "error": [_ask("m.77"), "Final answer: {Ann Lee}"],
        "endless": [_ask("m.1")] * 3,
    }
    tasks = [_task(id) for id in turns]
    traces = teach(Scripted(turns), ENVIRONMENT, tasks, keep=KEEP)

    assert [trace.task.id for trace in traces.kept] == ["right"]
    assert traces.dropped == {
        "exact match failed": 1,
        "all calls ran failed": 1,
        "out of turns": 1,
    }
    assert traces.retention == 0.25


def test_retention_is_counted_by_class_with_the_compilers_reasons():
    """Issue 2, part 5: report by class what could not be expressed."""
    tasks = [
        _task("a", path=["directed_by"], hops=1),
        _task("b", start="m.3", answer="Low", path=["^directed_by", "year"], hops=2),
        _task("c", hops=2),
    ]
    traces = teach(Compiler(GRAPH, DIALECT, tasks), ENVIRONMENT, tasks, keep=KEEP)

    assert traces.classes == {
        "1 hop": {KEPT: 1},
        "2 hop": {"exact match failed": 1, "no gold path": 1},
    }
    assert traces.table().splitlines()[1] == "1 hop                     1      1 100.0%"


def test_a_class_is_the_pattern_the_function_or_the_number_of_hops():
    """Ours."""
    assert task_class(_task("a", pattern="plain", function="argmax")) == "plain argmax"
    assert task_class(_task("a", pattern="time", function="none", hops=2)) == "time"
    assert task_class(_task("a", hops=3)) == "3 hop"
    assert task_class(_task("a")) == "all"


def test_free_calls_are_the_third_quartile_of_the_kept_calls():
    """SoG-R1 4.4 and 5.1, T_d; PAPERS.md 1.1: calls of the retained traces."""
    turns = {str(n): [_ask("m.1")] * n + RIGHT[1:] for n in range(1, 6)}
    environment = Environment(ENVIRONMENT.prompt, ENVIRONMENT.tools, DIALECT, max_turns=9)
    traces = teach(Scripted(turns), environment, [_task(id) for id in turns], keep=KEEP)

    assert traces.free_calls == 4.0
    with pytest.raises(SettingsError, match="no trace was kept"):
        _ = retained([], keep=KEEP).free_calls


def test_a_resumed_run_plays_only_what_is_missing_and_gives_the_same_traces(tmp_path: Path):
    """Issue 2, part 5: resume; failed episodes are tried again."""
    record = tmp_path / "teacher.jsonl"
    tasks = [_task(id) for id in ("a", "b", "c")]
    first = teach(Flaky({"b"}), ENVIRONMENT, tasks, keep=KEEP, record=record)
    later = Flaky(set())
    second = teach(later, ENVIRONMENT, tasks, keep=KEEP, record=record)

    assert first.dropped == {"unscored: http://localhost:8000/v1 did not answer.": 1}
    assert later.asked == ["b", "b"]
    assert [trace.task.id for trace in second.kept] == ["a", "b", "c"]
    assert len(records.read(record)) == 3
    whole = teach(Flaky(set()), ENVIRONMENT, tasks, keep=KEEP)
    assert [e.to_json() for e in whole.kept] == [e.to_json() for e in second.kept]


def test_a_record_of_other_questions_is_refused(tmp_path: Path):
    """Ours: the same ids in another set would pass for played."""
    record = tmp_path / "teacher.jsonl"
    teach(Flaky(set()), ENVIRONMENT, [_task("a")], keep=KEEP, record=record)
    other = Task("a", "Another question?", ("m.1",), ("Ann Lee",))

    with pytest.raises(SettingsError, match="Another question"):
        teach(Flaky(set()), ENVIRONMENT, [other], keep=KEEP, record=record)


def test_an_estimate_counts_every_request_with_all_that_stands_before_it():
    """Ours: three requests of a 100-token prompt, turns of 10 and observations of 30 tokens."""
    habits = Habits(turns=3.0, written=10.0, observation=30.0)
    tasks = [_task("a"), _task("b")]
    cost = estimate(tasks, lambda task: Prompt("x" * 400), Price(1.0, 10.0), habits=habits)

    assert (cost.requests, cost.read, cost.written) == (6, 2 * (3 * 100 + 3 * 40), 60)
    assert cost.cost == pytest.approx((840 + 600) / 1e6)


def test_habits_are_read_off_episodes():
    """Ours."""
    traces = teach(Flaky(set()), ENVIRONMENT, [_task("a"), _task("b")], keep=KEEP)
    habits = Habits.of(traces.kept)

    assert habits.turns == 2.0
    assert habits.written == pytest.approx(sum(map(len, RIGHT)) / 2 / 4)
    with pytest.raises(SettingsError, match="no episode"):
        Habits.of([])


def _reply(request: httpx.Request) -> httpx.Response:
    """Answer as an OpenAI-compatible server: a call first, then what the tool printed."""
    body = json.loads(request.content)
    arguments = json.dumps({"entities": ["m.1"], "direction": "outgoing"})
    call = {"id": "c", "type": "function", "function": {"name": "Search", "arguments": arguments}}
    if body["messages"][-1]["role"] == "tool":
        message = {"role": "assistant", "content": "Final answer: {Ann Lee}"}
    else:
        message = {"role": "assistant", "content": "", "tool_calls": [call]}
    usage = {"prompt_tokens": 100, "completion_tokens": 10}
    return httpx.Response(200, json={"choices": [{"message": message}], "usage": usage})


def _server(budget: float | None = None) -> Server:
    return Server(
        "http://localhost:8000/v1",
        "teacher",
        concurrency=1,
        price=Price(read=0.0, written=1e5),
        budget=budget,
        transport=httpx.MockTransport(_reply),
    )


def test_a_teacher_behind_a_server_makes_traces_until_its_budget_is_spent(tmp_path: Path):
    """Issue 2, part 5: concurrency, budget stop, resume. Each episode costs 2.0."""
    record = tmp_path / "teacher.jsonl"
    tasks = [_task(str(n)) for n in range(5)]
    first = teach(_server(budget=6.0), ENVIRONMENT, tasks, keep=KEEP, record=record)
    server = _server()
    second = teach(server, ENVIRONMENT, tasks, keep=KEEP, record=record)

    assert len(first.kept) == 3
    assert first.dropped == {"unscored: The budget of 6 is spent. Raise it to go on.": 2}
    assert len(second.kept) == 5
    assert server.usage.num_requests == 4


def test_an_unscored_episode_reaches_no_scorer():
    """Law 5: nothing can be said about the policy when the world failed."""

    def never(episode: Episode) -> float:
        raise AssertionError(episode.task.id)

    traces = teach(Flaky({"a"}), ENVIRONMENT, [_task("a")], keep=[never])
    assert sum(traces.dropped.values()) == 1
