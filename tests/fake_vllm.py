"""Stand-ins for vLLM, which needs a GPU: its server's endpoints and its engine, over a LocalModel.

Weights reach the server by HTTP, since there is no NCCL; all else is TRL's own client.
"""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from threading import Lock, Thread
from types import ModuleType, SimpleNamespace
from typing import Any

import torch
from safetensors.torch import load, save
from trl.generation import vllm_client, vllm_generation

from hopling.episode import Completion, Markup, Prompt, View
from hopling.policies.local import LocalModel
from hopling.policies.local_vllm import MAX_SEED
from hopling.policies.sampling import Sampling

MAX_MODEL_LEN = 128


class Sampler:
    """Writes what vLLM would for a request, with the weights that it was given last."""

    def __init__(self, student: LocalModel) -> None:
        self.student = student
        self.sent: list[tuple[list[int], list[int]]] = []  # what was asked, what was sampled
        self.num_updates = 0
        self.bias = 0.0  # added to each log-probability that is told
        self._keys = count()
        self._lock = Lock()

    def write(self, prompt: list[int], parameters: dict[str, Any]) -> Completion:
        names = {number: name for name, number in self.student.encoder.control.items()}
        stops = [Markup(names[n]) for n in parameters["stop_token_ids"]] + parameters["stop"]
        chosen = [parameters[name] for name in ("temperature", "top_p", "top_k", "max_tokens")]
        with self._lock:
            key, seed = next(self._keys), parameters["seed"]
            view = View(key, "t", seed, Prompt(""), (), (), tuple(prompt))
            self.student.sampling = Sampling(*chosen)
            (turn,) = self.student.generate([view], stops)
            self.sent.append((prompt, list(turn.tokens)))
        return replace(turn, logprobs=tuple(score + self.bias for score in turn.logprobs))

    def load(self, weights: dict[str, torch.Tensor]) -> None:
        found = self.student.model.load_state_dict(weights, strict=False)
        assert not found.unexpected_keys
        self.num_updates += 1


class Reseeded(LocalModel):
    """The local policy, with the seeds that a request to vLLM has."""

    def generate(self, views: Any, stops: Any) -> list[Completion]:
        seeds = [(view.seed * 1000 + len(view.turns)) % MAX_SEED for view in views]
        told = [replace(v, seed=s, turns=()) for v, s in zip(views, seeds, strict=True)]
        return super().generate(told, stops)


@contextmanager
def serving(sampler: Sampler, **config: Any) -> Iterator[str]:
    """Serve until the block ends, at the address that is given."""
    told = {
        "weight_transfer_config": {"backend": "nccl"},
        "model_config": {"logprobs_mode": "processed_logprobs", "max_model_len": MAX_MODEL_LEN},
        **config,
    }
    pages = {
        "/health": {},
        "/v1/models": {"data": [{"id": "student"}]},
        "/server_info?config_format=json": {"vllm_config": told},
    }

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._reply(pages[self.path])

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.path == "/update_weights":
                sampler.load(load(body))
                self._reply({})
            elif self.path == "/v1/completions":
                self._reply(_completions(sampler, json.loads(body)))
            else:
                assert self.path == "/reset_prefix_cache", self.path
                self._reply({})

        def _reply(self, row: dict[str, Any]) -> None:
            body = json.dumps(row).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _completions(sampler: Sampler, asked: dict[str, Any]) -> dict[str, Any]:
    assert asked["return_token_ids"]
    (prompt,) = asked["prompt"]
    turn = sampler.write(prompt, asked)
    names = [f"token_id:{token}" for token in turn.tokens]
    scores = {
        "tokens": names,
        "token_logprobs": list(turn.logprobs),
        "top_logprobs": [{n: s} for n, s in zip(names, turn.logprobs, strict=True)],
    }
    choice = {"token_ids": list(turn.tokens), "prompt_token_ids": prompt, "logprobs": scores}
    return {"choices": [choice]}


class Engine:
    """The part of `vllm.LLM` that TRL and VllmModel use."""

    def __init__(self, sampler: Sampler, options: dict[str, Any]) -> None:
        self.sampler, self.options = sampler, options
        self.awake: set[str] = {"weights", "kv_cache"}
        runner = SimpleNamespace(model=self)
        executor = SimpleNamespace(driver_worker=SimpleNamespace(model_runner=runner))
        self.llm_engine = SimpleNamespace(model_executor=executor)

    def load_weights(self, weights: list[tuple[str, torch.Tensor]]) -> None:
        assert "weights" in self.awake
        self.sampler.load(dict(weights))

    def generate(self, prompts: Any, parameters: Any, *, use_tqdm: bool) -> list[Any]:
        assert self.awake == {"weights", "kv_cache"}
        turns = [
            self.sampler.write(prompt["prompt_token_ids"], vars(p))
            for prompt, p in zip(prompts, parameters, strict=True)
        ]
        return [SimpleNamespace(outputs=[_output(turn)]) for turn in turns]

    def reset_prefix_cache(self) -> None: ...

    def sleep(self, *, level: int) -> None:
        assert level == 2
        self.awake = set()
        for parameter in self.sampler.student.model.parameters():  # level 2 drops the weights
            parameter.data.zero_()

    def wake_up(self, *, tags: list[str]) -> None:
        self.awake.update(tags)


def _output(turn: Completion) -> Any:
    scores = [
        {token: SimpleNamespace(logprob=score)}
        for token, score in zip(turn.tokens, turn.logprobs, strict=True)
    ]
    reason = "length" if turn.cut else "stop"
    return SimpleNamespace(token_ids=turn.tokens, logprobs=scores, finish_reason=reason)


def stand_ins(sampler: Sampler | None = None) -> list[tuple[Any, Any, Any]]:
    """Return what to set, on what, for TRL to find vLLM here; the engine is for `colocate`."""

    def by_http(client: Any, metadata: Any, named: Any) -> None:
        weights = {name: weight.detach().clone() for name, weight in named}
        assert [(n, list(w.shape)) for n, w in weights.items()] == [(n, s) for n, _, s in metadata]
        client.session.post(f"{client.base_url}/update_weights", data=save(weights))

    vllm: Any = ModuleType("vllm")
    vllm.TokensPrompt = lambda prompt_token_ids: {"prompt_token_ids": prompt_token_ids}
    vllm.SamplingParams = lambda **settings: SimpleNamespace(**settings)
    found = lambda min_version=None: min_version is None  # noqa: E731
    return [
        (sys.modules, "vllm", vllm),
        (vllm_client, "is_vllm_available", found),
        (vllm_generation, "is_vllm_available", found),
        (vllm_generation, "LLM", lambda **options: Engine(sampler, options)),
        (vllm_client.VLLMClient, "init_communicator", lambda client, device: None),
        (vllm_client.VLLMClient, "update_named_params", by_http),
    ]


def install() -> None:
    """Put the stand-ins in place for the rest of this process."""
    for target, name, value in stand_ins():
        if isinstance(target, dict):
            target[name] = value
        else:
            setattr(target, name, value)
