"""Draws tokens by inverse transform, each row from its own random numbers. B rows, V vocabulary."""

from collections.abc import Sequence

import numpy as np
import torch

from hopling.policies.sampling import Sampling


def uniforms(keys: Sequence[tuple[int, int]], num_tokens: int) -> torch.Tensor:
    """Return numbers in [0, 1), shape (B, num_tokens), that depend on each row's key alone.

    A key is an episode's seed and the turn's number. More tokens leave the first ones as they are.
    """
    rows = [np.random.default_rng(key).random(num_tokens, dtype=np.float32) for key in keys]
    return torch.from_numpy(np.stack(rows))


def draw(
    logits_BV: torch.Tensor, uniforms_B: torch.Tensor, sampling: Sampling
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the tokens drawn and their log-probabilities, both of shape (B,)."""
    logits_BV = logits_BV.float()
    if sampling.temperature not in (0.0, 1.0):
        logits_BV = logits_BV / sampling.temperature
    logprobs_BV = logits_BV.log_softmax(dim=-1)
    if sampling.temperature == 0:
        tokens_B1 = logprobs_BV.argmax(dim=-1, keepdim=True)
    else:
        cumulative_BV = _truncated(logprobs_BV.exp(), sampling).cumsum(dim=-1)
        total_B1 = cumulative_BV[:, -1:].contiguous()
        tokens_B1 = torch.searchsorted(cumulative_BV, uniforms_B[:, None] * total_B1, right=True)
        # rounding may reach the total itself, which no token's interval holds
        tokens_B1 = tokens_B1.minimum(torch.searchsorted(cumulative_BV, total_B1))
    return tokens_B1[:, 0], logprobs_BV.gather(1, tokens_B1)[:, 0]


def _truncated(probs_BV: torch.Tensor, sampling: Sampling) -> torch.Tensor:
    """Return the probabilities with all but the likeliest tokens set to 0."""
    if sampling.top_k:
        kept = probs_BV.topk(min(sampling.top_k, probs_BV.shape[1])).values
        probs_BV = probs_BV.where(probs_BV >= kept[:, -1:], 0.0)
    if sampling.top_p < 1:
        sorted_BV, order_BV = probs_BV.sort(dim=-1, descending=True)
        before_BV = sorted_BV.cumsum(dim=-1) - sorted_BV
        total_B1 = probs_BV.sum(dim=-1, keepdim=True)
        sorted_BV = sorted_BV.where(before_BV < sampling.top_p * total_B1, 0.0)
        probs_BV = torch.zeros_like(probs_BV).scatter(1, order_BV, sorted_BV)
    return probs_BV
