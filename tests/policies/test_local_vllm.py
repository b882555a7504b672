from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest
from requests import ConnectionError

from chatter import END, Chatter, chat, groups, tiny_tokenizer
from hopling.episode import Completion, Ending, Markup, Prompt, View
from hopling.errors import SettingsError, WorldError
from hopling.policies import local_vllm
from hopling.policies.local_vllm import VllmModel, VllmServer
from hopling.policies.sampling import Sampling
from hopling.rollout import rollout
from hopling.testing import check_policy


@dataclass
class FakeLLM:
    """Has `vllm.LLM`'s calls; samples bytes from a request's own seed, then a stop token."""

    model: str
    options: dict[str, Any] = field(default_factory=dict)
    said: list[int] | None = None
    requests: list[Any] = field(default_factory=list)

    def get_tokenizer(self) -> Any:
        return tiny_tokenizer()

    def generate(self, prompts: Any, sampling_params: Any, *, use_tqdm: bool) -> list[Any]:
        self.requests += list(zip(prompts, sampling_params, strict=True))
        return [self._output(prompt, p) for prompt, p in zip(prompts, sampling_params, strict=True)]

    def _output(self, prompt: Any, params: Any) -> Any:
        length = (params.seed + len(prompt["prompt_token_ids"])) % 9
        tokens = self.said or [70 + (params.seed + i) % 20 for i in range(length)]
        stopped = len(tokens) < params.max_tokens
        tokens = [*tokens, *params.stop_token_ids[:1]][: params.max_tokens]
        logprobs = [{token: SimpleNamespace(logprob=-0.5)} for token in tokens]
        reason = "stop" if stopped else "length"
        output = SimpleNamespace(token_ids=tokens, logprobs=logprobs, finish_reason=reason)
        return SimpleNamespace(outputs=[output])


VLLM: Any = SimpleNamespace(
    LLM=lambda model, **options: FakeLLM(model, options),
    TokensPrompt=lambda prompt_token_ids: {"prompt_token_ids": prompt_token_ids},
    SamplingParams=lambda **settings: SimpleNamespace(**settings),
)
VIEW = View(0, "t", 7, Prompt("?"), (), (), (70, 71, 72), 5)
VIEW_LONG = View(0, "t", 7, Prompt("?"), (), (), (70, 71, 72))


def vllm_policy(**sampling: Any) -> VllmModel:
    return VllmModel.load("some/model", sampling=Sampling(**sampling), module=VLLM)


def test_a_vllm_model_passes_the_suite() -> None:
    """Laws 2 and 3, on a stand-in for the engine."""
    check_policy(vllm_policy(max_turn_tokens=6), Chatter(), groups(2, 2))
    episodes = rollout(vllm_policy(), chat(), groups(2, 2))
    assert all(len(s.logprobs) == len(s.tokens) for e in episodes for s in e.segments
               if s.source == "policy")  # fmt: skip


def test_a_request_holds_tokens_seed_stops_and_the_room_that_is_left() -> None:
    """vLLM's SamplingParams and TokensPrompt."""
    policy = vllm_policy(temperature=0.7, top_p=0.8, top_k=20, max_turn_tokens=50)
    policy.generate([VIEW], (END, "</walk>"))
    engine = policy.engine
    assert isinstance(engine, FakeLLM)
    assert engine.options == {
        "enable_prefix_caching": True,
        "logprobs_mode": "processed_logprobs",
        "max_num_seqs": 256,
    }
    ((prompt, params),) = engine.requests
    assert prompt == {"prompt_token_ids": [70, 71, 72]}
    assert vars(params) == {
        "n": 1,
        "temperature": 0.7,
        "top_p": 0.8,
        "top_k": 20,
        "max_tokens": 5,
        "seed": 7000,
        "logprobs": 0,
        "stop_token_ids": [0],
        "stop": ["</walk>"],
        "include_stop_str_in_output": True,
        "detokenize": True,
        "skip_special_tokens": False,
    }


def test_text_leaves_out_the_marker_and_tokens_keep_it() -> None:
    """Law 2, as LocalModel does it."""
    policy = vllm_policy()
    engine = policy.engine
    assert isinstance(engine, FakeLLM)
    encode = policy.encoder.encode
    engine.said = encode(["<a>b"])
    (marked,) = policy.generate([VIEW], (END,))
    assert (marked.text, policy.encoder.decode(marked.tokens)) == ("<a>b", "<a>b<|im_end|>")
    (tagged,) = policy.generate([VIEW], ("b",))
    assert tagged == Completion("<a>b", tuple(engine.said), (-0.5,) * 4)
    (spelled,) = policy.generate([VIEW], (Markup("b"),))
    assert (spelled.text, spelled.tokens) == ("<a>", tuple(engine.said))


def test_without_vllm_the_error_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours."""

    def missing(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr(local_vllm.importlib, "import_module", missing)
    with pytest.raises(SettingsError, match=r"pip install vllm .* or start its server"):
        VllmModel.load("some/model", sampling=Sampling())


def test_views_without_room_or_tokens_never_reach_the_engine() -> None:
    """B25."""
    policy = vllm_policy()
    full = View(0, "t", 7, Prompt("?"), (), (), (70,), 0)
    assert policy.generate([full], (END,)) == [Completion("", cut=True)]
    with pytest.raises(SettingsError, match=r"policy\.encoder"):
        policy.generate([View(0, "t", 7, Prompt("?"), (), (), ())], (END,))


@dataclass
class FakeClient:
    """Has the call of TRL's `VLLMClient`; answers with `said`, or as FakeLLM samples."""

    said: list[int] | None = None
    requests: list[Any] = field(default_factory=list)

    def generate(self, prompts: Any, **settings: Any) -> dict[str, Any]:
        self.requests.append((prompts, settings))
        bounds = settings["generation_kwargs"]
        length = (bounds["seed"] + len(prompts[0])) % 9
        tokens = self.said or [70 + (bounds["seed"] + i) % 20 for i in range(length)]
        tokens = [*tokens, *([] if self.said else bounds["stop_token_ids"][:1])]
        tokens = tokens[: settings["max_tokens"]]
        pairs = {"logprobs": [[[-0.5]] * len(tokens)], "logprob_token_ids": [[[t] for t in tokens]]}
        return {"completion_ids": [tokens], **pairs}


def served(client: Any, **sampling: Any) -> VllmServer:
    policy = VllmServer(client, tiny_tokenizer(), ends={0}, max_model_length=64)
    policy.sampling = Sampling(**sampling)
    return policy


def test_a_model_on_a_server_passes_the_suite() -> None:
    """Laws 2 and 3, on a stand-in for TRL's client, asked from several threads."""
    check_policy(served(FakeClient(), max_turn_tokens=6), Chatter(), groups(2, 2))


def test_a_server_is_asked_with_ids_seed_stops_and_the_room_that_is_left() -> None:
    """The request of vLLM's /v1/completions; the context is the server's."""
    client = FakeClient()
    policy = served(client, temperature=0.7, top_p=0.8, top_k=20)
    policy.generate([VIEW], (END, "</walk>"))
    policy.generate([View(0, "t", 7, Prompt("?"), (), (), (70,) * 60)], (END,))
    (prompts, asked), (_, second) = client.requests
    assert prompts == [[70, 71, 72]]
    assert asked == {
        "temperature": 0.7,
        "top_p": 0.8,
        "top_k": 20,
        "max_tokens": 5,
        "generation_kwargs": {
            "seed": 7000,
            "stop_token_ids": [0],
            "stop": ["</walk>"],
            "include_stop_str_in_output": True,
            "skip_special_tokens": False,
        },
    }
    assert second["max_tokens"] == 4


def test_a_turn_on_a_server_is_cut_unless_an_end_or_a_stop_ended_it() -> None:
    """Ours: TRL's client gives no finish reason, so the ids have to tell."""
    encode = served(FakeClient()).encoder.encode
    for pieces, stops, expected in [
        (["ab", Markup(END)], (END,), ("ab", False)),
        (["ab"], (END,), ("ab", True)),
        (["a</walk>"], ("</walk>",), ("a</walk>", False)),
        (["ab"], (Markup("b"),), ("a", False)),
    ]:
        said = list(encode(pieces))
        (turn,) = served(FakeClient(said)).generate([VIEW_LONG], stops)
        assert (turn.text, turn.cut) == expected
        assert turn.tokens == tuple(said)


def test_a_server_that_does_not_answer_is_the_world(monkeypatch: pytest.MonkeyPatch) -> None:
    """Law 5: the episode ends unscored."""

    def down(*_: Any, **__: Any) -> None:
        raise ConnectionError("refused")

    client = FakeClient()
    monkeypatch.setattr(client, "generate", down)
    with pytest.raises(WorldError, match="did not answer: refused"):
        served(client).generate([VIEW], (END,))
    episodes = rollout(served(client), chat(), groups(1, 2))
    assert {e.ending for e in episodes} == {Ending.UNSCORED}
