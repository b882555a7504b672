"""TRL's GRPO trainer on our episodes: they come in as they were played, TRL's loss goes out.

Shapes: B episodes of this process, T completion tokens.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

import torch
from peft import PeftModel
from transformers import PreTrainedModel
from trl import GRPOTrainer
from trl.models import prepare_deepspeed, prepare_fsdp
from trl.trainer.utils import add_fused_lm_head, pad

from hopling.episode import Episode
from hopling.training.batches import IGNORED


@dataclass(frozen=True)
class Batch:
    """Episodes, whether each is trained on, and an advantage for each of their tokens."""

    episodes: Sequence[Episode]
    trained: Sequence[bool]
    advantages: Sequence[Sequence[float]]


Play = Callable[[Sequence[int]], Batch]


class EpisodeTrainer(GRPOTrainer):
    """GRPO on what `play` returns for the rows of the data set, each row `num_generations` times.

    `kl` weighs the divergence from `reference`, a frozen copy; without one, from the model with its
    adapter switched off. TRL would load the reference by its path, which a trained one has not.
    """

    def __init__(
        self,
        *,
        play: Play,
        kl: float,
        reference: PreTrainedModel | PeftModel | None,
        **arguments: Any,
    ) -> None:
        super().__init__(reward_funcs=_unused_reward, **arguments)
        self.play = play
        self.batch = Batch((), (), ())
        self.kept_BT = torch.zeros(0, 0)
        self.beta = kl
        self._weighs_sampling = self.use_vllm and self.vllm_importance_sampling_correction
        self.rollout_func = self._played
        if kl and reference is not None:
            head = cast(PreTrainedModel, reference)  # what TRL patches may be wrapped by PEFT
            add_fused_lm_head(head, temperature=self.temperature)
            prepared: Any = partial(self.accelerator.prepare_model, evaluation_mode=True)
            if self.is_deepspeed_enabled:
                prepared = partial(prepare_deepspeed, accelerator=self.accelerator)
            elif self.is_fsdp_enabled:
                prepared = partial(prepare_fsdp, accelerator=self.accelerator)
            self.ref_model = prepared(head)

    def _played(self, prompts: list[str], _: GRPOTrainer) -> dict[str, Any]:
        self.batch = self.play([int(prompt) for prompt in prompts])
        filler = self._tokenizer.pad_token_id
        completions, masks, logprobs = [], [], []
        for episode, trained in zip(self.batch.episodes, self.batch.trained, strict=True):
            span = _completion(episode)
            completions.append(episode.tokens[span] or [filler])  # TRL looks at the last token
            masks.append([int(s and trained) for s in episode.sampled[span]] or [0])
            logprobs.append(episode.logprobs[span] or [0.0])
        self.kept_BT = pad([torch.tensor(mask) for mask in masks], padding_value=0)
        return {
            "prompt_ids": [list(e.segments[0].tokens) for e in self.batch.episodes],
            "completion_ids": completions,
            # TRL computes the clip's old ones anew; the sampler's say how far vLLM's are from them
            "logprobs": logprobs if self._weighs_sampling else None,
            "env_mask": masks,
        }

    def _generate_and_score_completions(self, inputs: list[dict[str, Any]]) -> dict[str, Any]:
        output = super()._generate_and_score_completions(inputs)
        advantages_BT = torch.zeros(output["completion_ids"].shape)
        for b, episode in enumerate(self.batch.episodes):
            own = self.batch.advantages[b][_completion(episode)]
            advantages_BT[b, : len(own)] = torch.tensor(own)
        output["advantages"] = advantages_BT.to(output["completion_ids"].device)
        return output

    def _compute_loss(self, model: torch.nn.Module, inputs: dict[str, Any]) -> torch.Tensor:
        share = 1.0
        if not self.beta and self.loss_type in ("grpo", "dr_grpo"):
            num_rows = len(inputs["completion_ids"])
            inputs = _with_gradient(inputs)
            share = len(inputs["completion_ids"]) / num_rows  # both losses are means over rows
        self.kept_BT = inputs["completion_mask"] * inputs["tool_mask"]
        return share * super()._compute_loss(model, inputs)

    def _get_per_token_logps_and_entropies(
        self, model: torch.nn.Module, input_ids: torch.Tensor, *rest: Any, **options: Any
    ) -> tuple[torch.Tensor, ...]:
        """Score the trained tokens only: the head is most of a small model's work."""
        rows = iter(self.kept_BT.to(input_ids.device))

        def narrowed(labels: torch.Tensor, **inputs: Any) -> Any:
            kept_BT = torch.stack([next(rows) for _ in labels])
            labels = labels.clone()
            labels[:, -kept_BT.shape[1] :].masked_fill_(kept_BT == 0, IGNORED)
            return model(labels=labels, **inputs)

        return super()._get_per_token_logps_and_entropies(narrowed, input_ids, *rest, **options)


def _completion(episode: Episode) -> slice:
    """Return where the tokens stand from the first turn to the last that was sampled."""
    start = len(episode.segments[0].tokens)
    sampled = episode.sampled
    end = len(sampled) - sampled[::-1].index(True) if any(sampled) else start
    return slice(start, end)


def _with_gradient(inputs: dict[str, Any]) -> dict[str, Any]:
    """Return the rows that have an advantage, without the columns that only others need.

    An episode of a flat group, or one that is left out, has no gradient unless there is a
    divergence to weigh. One row always stays, since every process must go through the model.
    """
    rows = inputs["advantages"].abs().sum(dim=1).nonzero()[:, 0]
    rows = rows if len(rows) else torch.zeros(1, dtype=torch.long, device=rows.device)
    first = int(inputs["prompt_mask"][rows].sum(dim=1).max())
    last = max(1, int(inputs["completion_mask"][rows].sum(dim=1).max()))
    width = inputs["completion_ids"].shape[1]
    chosen = dict(inputs)
    for name, value in inputs.items():
        if not isinstance(value, torch.Tensor) or value.dim() != 2:
            continue
        is_prompt = name in ("prompt_ids", "prompt_mask")
        if value.shape[1] == 1 != width:  # a number for each row
            chosen[name] = value[rows]
        elif is_prompt or value.shape[1] == width:
            chosen[name] = value[rows, -first:] if is_prompt else value[rows, :last]
    return chosen


def _unused_reward(prompts: Sequence[str], **_: Any) -> list[float | None]:
    return [0.0] * len(prompts)
