"""A policy that runs vLLM in this process, with tokens in and tokens out.

vLLM keeps the cache of a common prefix by itself, so nothing is kept here. It is imported when the
first engine is built, and not at all where a test brings its own.
"""

import importlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol

from transformers import PreTrainedTokenizerBase

from hopling.episode import Completion, Markup, View
from hopling.errors import SettingsError
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
        if not view.tokens:
            raise SettingsError(
                f"The view of task {view.task_id!r} holds no tokens. A VllmModel reads tokens: "
                "begin its episodes with policy.encoder, as rollout() does."
            )
        control = self.encoder.control
        limit = self.sampling.max_turn_tokens
        return self._vllm.SamplingParams(
            n=1,
            temperature=self.sampling.temperature,
            top_p=self.sampling.top_p,
            top_k=self.sampling.top_k,
            max_tokens=limit if view.room is None else min(limit, view.room),
            seed=(view.seed * 1000 + len(view.turns)) % MAX_SEED,
            logprobs=0,
            stop_token_ids=sorted(control[stop] for stop in stops if stop in control),
            stop=[stop for stop in stops if stop not in control],
            include_stop_str_in_output=True,
            detokenize=True,
            skip_special_tokens=False,
        )

    def _completion(self, output: Any, stops: Sequence[str]) -> Completion:
        tokens = tuple(output.token_ids)
        logprobs = tuple(
            candidates[token].logprob
            for token, candidates in zip(tokens, output.logprobs, strict=True)
        )
        cut = output.finish_reason == "length"
        added = self.tokenizer.added_tokens_decoder.items()
        ends = [n for n, token in added if token.special or _is_markup(token.content, stops)]
        spelled = [stop for stop in stops if stop not in self.encoder.control]
        text, _ = torn(tokens, self.encoder, markers=() if cut else ends, spelled=spelled)
        return Completion(text, tokens, logprobs, cut)


def _is_markup(text: str, stops: Sequence[str]) -> bool:
    return any(stop == text and isinstance(stop, Markup) for stop in stops)


def import_vllm() -> ModuleType:
    """Return the module vllm; raises SettingsError when it is not installed."""
    try:
        return importlib.import_module("vllm")
    except ImportError as error:
        raise SettingsError(
            "vLLM is not installed. Run: pip install vllm (in an environment of its own, since it "
            "pins other versions of torch and transformers), or start its server and use Server."
        ) from error
