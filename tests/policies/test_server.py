import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ClassVar

import httpx
import pytest

from chatter import chat, groups
from hopling.dialects.tool_calls import ToolCalls
from hopling.environment import Environment
from hopling.episode import Call, Completion, Ending, Episode, Observation, Prompt, Task, View
from hopling.errors import SettingsError, WorldError
from hopling.policies.sampling import Sampling
from hopling.policies.server import Server
from hopling.policies.spending import BudgetSpent, Price
from hopling.rollout import rollout
from hopling.testing import check_policy

KEY = "sk-test-DO-NOT-LOG-123"
VIEW = View(0, "t", 7, Prompt("Who?", "Be brief."), ({"name": "search"},), (), ())


class Search:
    """Finds the same for everyone."""

    name = "search"
    schema: ClassVar = {"name": "search", "description": "Finds.", "parameters": {"type": "object"}}

    def __call__(self, episode: Episode, **arguments: Any) -> Observation:
        return Observation(f"found {arguments}")


def reply(content: str | None = "Final answer: {A}", **more: Any) -> httpx.Response:
    finish = more.pop("finish_reason", "stop")
    message = {"role": "assistant", "content": content, **more}
    usage = {"prompt_tokens": 100, "completion_tokens": 10}
    return httpx.Response(
        200, json={"choices": [{"message": message, "finish_reason": finish}], "usage": usage}
    )


def called(*arguments: str) -> list[dict[str, Any]]:
    return [
        {"id": f"x{i}", "type": "function", "function": {"name": "search", "arguments": text}}
        for i, text in enumerate(arguments)
    ]


class Endpoint:
    """Answers with the given replies in order, the last one again and again; keeps requests."""

    def __init__(self, *replies: httpx.Response | Exception) -> None:
        self.replies: Iterator[httpx.Response | Exception] = iter(replies[:-1])
        self.last = replies[-1]
        self.requests: list[httpx.Request] = []
        self.waits: list[float] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        answer = next(self.replies, self.last)
        if isinstance(answer, Exception):
            raise answer
        return httpx.Response(answer.status_code, headers=answer.headers, content=answer.content)

    def server(self, **settings: Any) -> Server:
        return Server(
            "http://localhost:8000/v1",
            "big",
            transport=httpx.MockTransport(self),
            sleep=self.waits.append,
            **settings,
        )

    def body(self, number: int = -1) -> dict[str, Any]:
        return json.loads(self.requests[number].content)


def test_a_server_passes_the_suite() -> None:
    """Law 3."""
    check_policy(Endpoint(reply()).server(), ToolCalls(), groups(2, 2))


def test_a_request_holds_the_prompt_the_tools_and_the_sampling() -> None:
    """OpenAI's chat completions API."""
    endpoint = Endpoint(reply())
    sampling = Sampling(temperature=0.6, top_p=0.95, top_k=20, max_turn_tokens=50)
    server = endpoint.server(sampling=sampling, options={"chat_template_kwargs": {"think": False}})
    server.generate([VIEW], ())
    assert str(endpoint.requests[0].url) == "http://localhost:8000/v1/chat/completions"
    assert endpoint.body() == {
        "model": "big",
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Who?"},
        ],
        "temperature": 0.6,
        "top_p": 0.95,
        "top_k": 20,
        "max_tokens": 50,
        "seed": 7,
        "tools": [{"type": "function", "function": {"name": "search"}}],
        "chat_template_kwargs": {"think": False},
    }


def test_each_call_has_an_id_and_its_own_reply_in_order() -> None:
    """B22: two calls, the second to a tool that does not exist, and the episode goes on."""
    lost = {"id": "b", "type": "function", "function": {"name": "find", "arguments": ""}}
    endpoint = Endpoint(
        reply("I look.", tool_calls=[*called('{"entities": ["m.1"]}'), lost]), reply()
    )
    world = Environment(lambda task: task.question, (Search(),), ToolCalls(), max_turns=3)
    (episode,) = rollout(endpoint.server(), world, [Task("t", "Who?")])
    assert episode.ending is Ending.ANSWERED
    assert [type(action) for action in episode.turns[0].actions] == [Call, Call]
    told = endpoint.body()["messages"]
    assert [message["role"] for message in told] == ["user", "assistant", "tool", "tool"]
    assert told[1]["content"] == "I look."
    assert [call["id"] for call in told[1]["tool_calls"]] == [m["tool_call_id"] for m in told[2:]]
    assert json.loads(told[1]["tool_calls"][0]["function"]["arguments"]) == {"entities": ["m.1"]}
    assert told[2]["content"] == "found {'entities': ['m.1']}"
    assert "There is no tool 'find'" in told[3]["content"]


def test_arguments_that_are_not_json_are_refused_in_words() -> None:
    """B23: the last brace is missing; the policy reads why, as a user's message."""
    endpoint = Endpoint(reply(None, tool_calls=called('{"entities": ["m.1"]')), reply())
    world = Environment(lambda task: task.question, (Search(),), ToolCalls(), max_turns=3)
    (episode,) = rollout(endpoint.server(), world, [Task("t", "Who?")])
    assert episode.ending is Ending.ANSWERED
    observation = episode.turns[0].observation
    assert observation is not None
    assert observation.error
    assert endpoint.body()["messages"][-1] == {"role": "user", "content": observation.text}


def test_half_a_character_breaks_neither_the_next_request_nor_the_run() -> None:
    """Ours: JSON may escape what UTF-8 cannot hold."""
    half = httpx.Response(200, content=b'{"choices": [{"message": {"content": "Hm \\ud83d"}}]}')
    endpoint = Endpoint(half, reply())
    world = Environment(lambda task: task.question, (Search(),), ToolCalls(), max_turns=3)
    (episode,) = rollout(endpoint.server(), world, [Task("t", "Who?")])
    assert [turn.text for turn in episode.turns] == ["Hm ?", "Final answer: {A}"]


def test_a_turn_that_hit_the_limit_or_the_context_is_cut() -> None:
    """B23, B25: cut by length is no fault of format, and a full context no fault of ours."""
    cut = Endpoint(reply("Fin", finish_reason="length")).server().generate([VIEW], ())
    assert cut == [Completion("Fin", cut=True)]
    full = httpx.Response(400, json={"error": {"code": "context_length_exceeded"}})
    assert Endpoint(full).server().generate([VIEW], ()) == [Completion("", cut=True)]


def test_a_busy_server_is_asked_again_after_the_time_that_it_names() -> None:
    """B07: 429 with HTML and Retry-After, then 200: one turn, one wait, one retry counted."""
    busy = httpx.Response(429, headers={"Retry-After": "1"}, html="<h1>slow down</h1>")
    endpoint = Endpoint(busy, reply("hi"))
    server = endpoint.server()
    assert server.generate([VIEW], ()) == [Completion("hi")]
    assert endpoint.waits == [1.0]
    assert (server.usage.num_requests, server.usage.num_retries) == (1, 1)


@pytest.mark.parametrize(
    ("failure", "words"),
    [
        (httpx.Response(429, html="<h1>no</h1>"), "status 429"),
        (httpx.Response(503), "status 503"),
        (httpx.Response(200, html="<h1>login</h1>"), "sent no JSON object"),
        (httpx.ConnectError("refused"), "could not be reached"),
    ],
)
def test_a_server_that_stays_down_leaves_the_episode_unscored(
    failure: httpx.Response | Exception, words: str
) -> None:
    """B07, law 5: the world failed, after one try and three more with growing waits."""
    endpoint = Endpoint(failure)
    (episode,) = rollout(endpoint.server(), chat(), [Task("t", "?")])
    assert episode.ending is Ending.UNSCORED
    assert words in episode.reason
    assert "http://localhost:8000/v1" in episode.reason
    assert endpoint.waits == [1.0, 2.0, 4.0]


def test_a_wait_that_is_too_long_is_not_waited_for() -> None:
    """Ours: hours of Retry-After end the episode at once."""
    endpoint = Endpoint(httpx.Response(429, headers={"Retry-After": "7200"}))
    with pytest.raises(WorldError, match="asks to wait 7200 s"):
        endpoint.server().generate([VIEW], ())
    assert endpoint.waits == []


@pytest.mark.parametrize(
    ("status", "words"),
    [(401, "OPENAI_API_KEY, which is set"), (404, "no model 'big'"), (400, "options=")],
)
def test_a_refusal_stops_the_run_with_a_remedy_and_without_the_key(
    monkeypatch: pytest.MonkeyPatch, status: int, words: str
) -> None:
    """Law 5 and B35: the key is in no error, although the server repeats it."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    endpoint = Endpoint(httpx.Response(status, json={"error": f"Incorrect API key {KEY}"}))
    server = endpoint.server()
    with pytest.raises(SettingsError, match=words) as refused:
        server.generate([VIEW], ())
    assert endpoint.requests[0].headers["Authorization"] == f"Bearer {KEY}"
    assert KEY not in str(refused.value) + repr(server) + repr(vars(server))
    assert len(endpoint.requests) == 1


def test_no_key_sends_none_and_a_password_in_the_url_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """B35."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    endpoint = Endpoint(reply())
    endpoint.server().generate([VIEW], ())
    assert "Authorization" not in endpoint.requests[0].headers
    with pytest.raises(SettingsError, match=r"\*\*\*@localhost") as refused:
        Server("http://me:hunter22@localhost/v1", "big")
    assert "hunter22" not in str(refused.value)
    with pytest.raises(SettingsError, match="http://HOST:PORT/v1"):
        Server("localhost:8000", "big")


def test_a_spent_budget_stops_new_requests_and_keeps_what_was_done() -> None:
    """Ours: 100 tokens read and 10 written are 0.12 here, so three turns spend 0.3."""
    endpoint = Endpoint(reply())
    server = endpoint.server(price=Price(1000.0, 2000.0), budget=0.3, concurrency=1)
    world = Environment(lambda task: task.question, (), ToolCalls(), max_turns=1)
    tasks = [Task(f"t{i}", "?") for i in range(5)]
    episodes = rollout(server, world, tasks)
    assert [e.ending for e in episodes] == [Ending.ANSWERED] * 3 + [Ending.UNSCORED] * 2
    assert len(endpoint.requests) == server.usage.num_requests == 3
    assert server.usage.cost == pytest.approx(0.36)
    assert (server.usage.prompt_tokens, server.usage.completion_tokens) == (300, 30)
    with pytest.raises(BudgetSpent, match=r"0\.3 is spent \(0\.36 for 3 requests\)"):
        server.generate([VIEW], ())
    with pytest.raises(SettingsError, match="no price is set"):
        endpoint.server(budget=1.0)


def test_usage_is_counted_right_from_many_threads() -> None:
    """Ours."""
    server = Endpoint(reply()).server(concurrency=4)
    generate: Callable[[View], object] = lambda view: server.generate([view], ())  # noqa: E731
    with ThreadPoolExecutor(4) as pool:
        assert len(list(pool.map(generate, [VIEW] * 40))) == 40
    assert server.usage.prompt_tokens == 4000


def test_a_reply_without_a_message_is_the_worlds_fault() -> None:
    """Law 5."""
    with pytest.raises(WorldError, match="reply without a message"):
        Endpoint(httpx.Response(200, json={"choices": []})).server().generate([VIEW], ())
