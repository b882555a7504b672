"""A policy behind any server that speaks OpenAI's /v1/chat/completions.

It sees messages, not tokens, so its turns carry none. It writes its calls in the form of
`<tool_call>{...}</tool_call>`, which the dialect ToolCalls reads in the format of Qwen.
"""

import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

import httpx

from hopling.episode import Completion, View
from hopling.errors import SettingsError, WorldError
from hopling.policies.messages import functions, messages, written
from hopling.policies.sampling import Sampling
from hopling.policies.spending import Meter, Price, Usage
from hopling.records import redact
from hopling.waiting import asked_wait_s

MAX_WAIT_S = 60.0
MAX_SEED = 2**31
CONTEXT_FULL = ("context_length_exceeded", "maximum context length", "context window")


@dataclass(eq=False)
class Server:
    """Writes turns by asking `model` at `url`, which ends in /v1 or the like.

    The key is read from the environment's `api_key_env` at each request and kept nowhere. `price`
    is for a million tokens; when `budget` is spent, `generate` raises BudgetSpent. `options` are
    added to each request's body. `transport` and `sleep` are for tests.
    """

    url: str = field(repr=False)
    model: str
    _: KW_ONLY
    api_key_env: str = "OPENAI_API_KEY"
    concurrency: int = 8
    retries: int = 3
    sampling: Sampling = field(default_factory=Sampling)
    price: Price | None = None
    budget: float | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    timeout_s: float = 600.0
    transport: httpx.BaseTransport | None = field(default=None, repr=False)
    sleep: Callable[[float], None] = field(default=time.sleep, repr=False)

    encoder = None
    concurrent = True

    def __post_init__(self) -> None:
        address = httpx.URL(self.url)
        if address.scheme not in ("http", "https") or not address.host:
            raise SettingsError(f"url is {redact(self.url)!r}; write http://HOST:PORT/v1.")
        if address.userinfo:
            raise SettingsError(
                f"url is {redact(self.url)!r}; a password would end up in files. Put the key in "
                f"the environment as {self.api_key_env}."
            )
        if self.concurrency < 1 or self.retries < 0:
            raise SettingsError(
                f"concurrency is {self.concurrency} and retries {self.retries}; they must be at "
                "least 1 and 0."
            )
        self._meter = Meter(self.price, self.budget)
        self._name = str(address.copy_with(query=None))
        self._client = httpx.Client(
            base_url=address,
            timeout=self.timeout_s,
            transport=self.transport,
            limits=httpx.Limits(max_connections=self.concurrency),
            headers={"User-Agent": "hopling"},
        )

    @property
    def max_live(self) -> int:
        """How many requests are made at once."""
        return self.concurrency

    @property
    def usage(self) -> Usage:
        """What was used so far, by the server's own count."""
        return self._meter.usage

    def generate(self, views: Sequence[View], stops: Sequence[str]) -> list[Completion]:
        """Return each view's next turn; the server knows its model's own stops.

        Raises WorldError when the server does not answer, BudgetSpent when nothing is left, and
        SettingsError when the server refuses the key or the request.
        """
        return [self._turn(view) for view in views]

    def _turn(self, view: View) -> Completion:
        if view.room == 0:
            return Completion("", cut=True)
        reply = self._post(self._body(view))
        if reply is None:
            return Completion("", cut=True)
        try:
            choice = reply["choices"][0]
            text = written(choice["message"])
            usage = reply.get("usage") or {}
        except (KeyError, IndexError, TypeError, AttributeError) as error:
            raise WorldError(
                f"{self._name} sent a reply without a message: {self._start(json.dumps(reply))}"
            ) from error
        self._meter.add(usage.get("prompt_tokens", 0), usage.get("completion_tokens", 0))
        return Completion(text, cut=choice.get("finish_reason") == "length")

    def _body(self, view: View) -> dict[str, Any]:
        limit = self.sampling.max_turn_tokens
        body: dict[str, Any] = {
            "model": self.model,
            "messages": messages(view),
            "temperature": self.sampling.temperature,
            "top_p": self.sampling.top_p,
            "max_tokens": limit if view.room is None else min(limit, view.room),
            "seed": (view.seed + len(view.turns)) % MAX_SEED,
        }
        if self.sampling.top_k:
            body["top_k"] = self.sampling.top_k
        if view.tools:
            body["tools"] = functions(view.tools)
        return {**body, **self.options}

    def _post(self, body: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return the reply, or None when the conversation is too long for the model."""
        problem = ""
        for attempt in range(self.retries + 1):
            self._meter.check()
            wait_s = 2.0**attempt
            try:
                response = self._client.post(
                    "chat/completions", json=dict(body), headers=self._headers()
                )
            except httpx.TransportError as error:
                problem = f"could not be reached ({type(error).__name__})"
            else:
                if response.status_code == 200 and (reply := _object(response)) is not None:
                    return reply
                if response.status_code == 200:
                    problem = f"sent no JSON object: {self._start(response.text)}"
                elif response.status_code == 429 or response.status_code >= 500:
                    problem = f"answered with status {response.status_code}"
                    wait_s = asked_wait_s(response.headers, wait_s)
                elif any(sign in response.text for sign in CONTEXT_FULL):
                    return None
                else:
                    raise self._refusal(response)
            if wait_s > MAX_WAIT_S:
                raise WorldError(f"{self._name} {problem} and asks to wait {wait_s:g} s.")
            if attempt < self.retries:
                self._meter.add_retry()
                self.sleep(wait_s)
        raise WorldError(f"{self._name} {problem} ({self.retries + 1} tries). Is the server up?")

    def _refusal(self, response: httpx.Response) -> SettingsError:
        status, said = response.status_code, self._start(response.text)
        if status in (401, 403):
            state = "is set" if os.environ.get(self.api_key_env) else "is not set"
            return SettingsError(
                f"{self._name} refused the key (status {status}). The key comes from the "
                f"environment's {self.api_key_env}, which {state}: export a valid one."
            )
        if status == 404:
            return SettingsError(
                f"{self._name} knows no model {self.model!r} or no such address (status 404): "
                f"{said}. Check both; the url usually ends in /v1."
            )
        return SettingsError(
            f"{self._name} refused the request (status {status}): {said}. Change the settings "
            "that it names, or add what it wants with options={...}."
        )

    def _headers(self) -> dict[str, str]:
        key = os.environ.get(self.api_key_env)
        return {"Authorization": f"Bearer {key}"} if key else {}

    def _start(self, text: str) -> str:
        key = os.environ.get(self.api_key_env)
        return repr(redact(text.replace(key, "***") if key else text)[:300])


def _object(response: httpx.Response) -> dict[str, Any] | None:
    try:
        value = response.json()
    except ValueError:
        return None
    return value if isinstance(value, dict) else None
