"""Policies that play on vLLM, in this process or on a server, with tokens in and tokens out.

vLLM keeps the cache of a common prefix by itself, so nothing is kept here. It is imported when the
first engine is built, and not at all where a test brings its own. Weights are TRL's to send.
"""

import importlib
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol

from requests import RequestException
from transformers import PreTrainedTokenizerBase

from hopling.episode import Completion, Markup, View
from hopling.errors import SettingsError, WorldError
from hopling.policies.encoding import TokenizerEncoder
from hopling.policies.local_stops import torn
from hopling.policies.sampling import Sampling

MAX_SEED = 2**31


class Engine(Protocol):
    """The part of `vllm.LLM` that is used."""

    def generate(
        self, prompts: Sequence[Any], sampling_params: Sequence[Any], *, use_tqdm: bool
    ) -> Sequence[Any]: ...


class VllmModel:
    """Writes turns with an engine of vLLM.

    A turn's tokens depend on its view's seed and turn. Recorded log-probabilities are those of the
    whole distribution at the sampling's temperature only if the engine was built with
    `logprobs_mode="processed_logprobs"` and `top_p` and `top_k` cut nothing; `load` does the first.
    """

    concurrent = False

    def __init__(
        self,
        engine: Engine,
        tokenizer: PreTrainedTokenizerBase,
        *,
        sampling: Sampling,
        max_live: int = 256,
        module: ModuleType | None = None,
    ) -> None:
        self.engine = engine
        self.tokenizer = tokenizer
        self.sampling = sampling
        self.max_live = max_live
        self.encoder = TokenizerEncoder(tokenizer)
        self._vllm = module or import_vllm()

    @classmethod
    def load(
        cls,
        name: str | Path,
        *,
        sampling: Sampling,
        max_live: int = 256,
        options: Mapping[str, Any] | None = None,
        module: ModuleType | None = None,
    ) -> "VllmModel":
        """Return the model of a folder or of the hub; `options` go to `vllm.LLM`.

        Raises SettingsError when vLLM is not installed.
        """
        vllm = module or import_vllm()
        settings = {
            "enable_prefix_caching": True,
            "logprobs_mode": "processed_logprobs",
            "max_num_seqs": max_live,
            **(options or {}),
        }
        engine = vllm.LLM(model=str(name), **settings)
        tokenizer = engine.get_tokenizer()
        return cls(engine, tokenizer, sampling=sampling, max_live=max_live, module=vllm)

    def generate(self, views: Sequence[View], stops: Sequence[str]) -> list[Completion]:
        """Return each view's next turn."""
        completions = [Completion("", cut=True) for _ in views]
        chosen = [i for i, view in enumerate(views) if view.room is None or view.room > 0]
        if not chosen:
            return completions
        outputs = self.engine.generate(
            [self._vllm.TokensPrompt(prompt_token_ids=list(views[i].tokens)) for i in chosen],
            [self._parameters(views[i], stops) for i in chosen],
            use_tqdm=False,
        )
        for i, output in zip(chosen, outputs, strict=True):
            completions[i] = self._completion(output.outputs[0], stops)
        return completions

    def _parameters(self, view: View, stops: Sequence[str]) -> Any:
        limit = self.sampling.max_turn_tokens
        return self._vllm.SamplingParams(
            n=1,
            temperature=self.sampling.temperature,
            top_p=self.sampling.top_p,
            top_k=self.sampling.top_k,
            max_tokens=limit if view.room is None else min(limit, view.room),
            logprobs=0,
            detokenize=True,
            **_bounds(view, stops, self.encoder),
        )

    def _completion(self, output: Any, stops: Sequence[str]) -> Completion:
        tokens = tuple(output.token_ids)
        logprobs = tuple(
            candidates[token].logprob
            for token, candidates in zip(tokens, output.logprobs, strict=True)
        )
        cut = output.finish_reason == "length"
        markers = () if cut else _markers(self.tokenizer, stops)
        text, _ = torn(tokens, self.encoder, markers=markers, spelled=_spelled(stops, self.encoder))
        return Completion(text, tokens, logprobs, cut)


class Client(Protocol):
    """The part of TRL's `VLLMClient` that is used."""

    @property
    def generate(self) -> Callable[..., Mapping[str, Any]]: ...


class VllmServer:
    """Writes turns with a server of vLLM's, asked by TRL's client, one request a turn.

    The server puts the requests of all threads and processes into one batch. `ends` are the tokens
    at which the model itself ends a text, `max_model_length` what the server can read.
    """

    concurrent = True

    def __init__(
        self,
        client: Client,
        tokenizer: PreTrainedTokenizerBase,
        *,
        ends: Collection[int],
        max_model_length: int,
        max_live: int = 64,
    ) -> None:
        self.client = client
        self.tokenizer = tokenizer
        self.sampling = Sampling()
        self.ends = frozenset(ends)
        self.max_model_length = max_model_length
        self.max_live = max_live
        self.encoder = TokenizerEncoder(tokenizer)

    def generate(self, views: Sequence[View], stops: Sequence[str]) -> list[Completion]:
        """Return each view's next turn.

        Raises WorldError when the server does not answer after the client's five tries.
        """
        return [self._turn(view, stops) for view in views]

    def _turn(self, view: View, stops: Sequence[str]) -> Completion:
        chosen = self.sampling
        bounds = _bounds(view, stops, self.encoder)
        ends = self.ends.union(bounds["stop_token_ids"])
        context = self.max_model_length - len(view.tokens)
        limit = min(context if view.room is None else view.room, context, chosen.max_turn_tokens)
        if limit < 1:
            return Completion("", cut=True)
        try:
            reply = self.client.generate(
                [list(view.tokens)],
                temperature=chosen.temperature,
                top_p=chosen.top_p,
                top_k=chosen.top_k,
                max_tokens=limit,
                generation_kwargs={**bounds, "stop_token_ids": sorted(ends)},
            )
        except RequestException as error:
            raise WorldError(f"vLLM's server did not answer: {error}. Is it up?") from error
        tokens = tuple(reply["completion_ids"][0])
        found = zip(tokens, reply["logprob_token_ids"][0], reply["logprobs"][0], strict=True)
        scored = [dict(zip(ids, scores, strict=True))[n] for n, ids, scores in found]
        logprobs = tuple(math.nan if score is None else score for score in scored)
        markers = self.ends.union(_markers(self.tokenizer, stops) if tokens[-1] in ends else ())
        spelled = _spelled(stops, self.encoder)
        text, has_stop = torn(tokens, self.encoder, markers=markers, spelled=spelled)
        return Completion(text, tokens, logprobs, cut=not has_stop and tokens[-1] not in ends)


def _bounds(view: View, stops: Sequence[str], encoder: TokenizerEncoder) -> dict[str, Any]:
    """Return where a turn ends and what fixes its sampling, in vLLM's names."""
    if not view.tokens:
        raise SettingsError(
            f"The view of task {view.task_id!r} holds no tokens. A model on vLLM reads tokens: "
            "begin its episodes with policy.encoder, as rollout() does."
        )
    control = encoder.control
    return {
        "seed": (view.seed * 1000 + len(view.turns)) % MAX_SEED,
        "stop_token_ids": sorted(control[stop] for stop in stops if stop in control),
        "stop": _spelled(stops, encoder),
        "include_stop_str_in_output": True,
        "skip_special_tokens": False,
    }


def _spelled(stops: Sequence[str], encoder: TokenizerEncoder) -> list[str]:
    return [stop for stop in stops if stop not in encoder.control]


def _markers(tokenizer: PreTrainedTokenizerBase, stops: Sequence[str]) -> list[int]:
    """Return the tokens that are left out of a turn's text where they end it."""
    marked = {str(stop) for stop in stops if isinstance(stop, Markup)}
    added = tokenizer.added_tokens_decoder.items()
    return [n for n, token in added if token.special or token.content in marked]


def import_vllm() -> ModuleType:
    """Return the module vllm; raises SettingsError when it is not installed."""
    try:
        return importlib.import_module("vllm")
    except ImportError as error:
        raise SettingsError(
            "vLLM is not installed. Run: pip install vllm (in an environment of its own, since it "
            "pins other versions of torch and transformers), or start its server and use Server."
        ) from error
