"""The tokens of one turn as they are sampled. B rows at work, N views, T tokens, V vocabulary."""

from collections.abc import Sequence

import torch

from hopling.episode import Completion, View
from hopling.policies.local_sampling import draw, uniforms
from hopling.policies.local_stops import Stops
from hopling.policies.sampling import Sampling


class Turn:
    """One turn of N views, of which fewer and fewer are still at work."""

    def __init__(
        self, views: Sequence[View], limits: Sequence[int], stops: Stops, *, device: torch.device
    ) -> None:
        shape = (len(views), max(limits))
        self._stops = stops
        self._ends_V = stops.ends_V.to(device)
        self._may_complete_V = stops.may_complete_V.to(device)
        self._limits_N = torch.tensor(limits, device=device)
        keys = [(view.seed, len(view.turns)) for view in views]
        self._uniforms_NT = uniforms(keys, shape[1]).to(device)
        self._tokens_NT = torch.zeros(shape, dtype=torch.long, device=device)
        self._logprobs_NT = torch.zeros(shape, device=device)
        self._lengths_N = torch.zeros_like(self._limits_N)
        self._going_N = torch.ones_like(self._limits_N, dtype=torch.bool)
        self._num_sampled = 0

    def sample(
        self, index_B: torch.Tensor, logits_BV: torch.Tensor, sampling: Sampling
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Add a token to each view in `index_B` and return the tokens, and whose turn goes on.

        A view whose turn has ended may stay in `index_B`; its further tokens are not counted.
        """
        place = self._num_sampled
        tokens_B, logprobs_B = draw(logits_BV, self._uniforms_NT[index_B, place], sampling)
        self._tokens_NT[index_B, place] = tokens_B
        self._logprobs_NT[index_B, place] = logprobs_B
        self._num_sampled += 1
        going_B = self._going_N[index_B]
        self._lengths_N[index_B] += going_B.long()
        going_B = going_B & ~self._ends_V[tokens_B] & (self._limits_N[index_B] > place + 1)
        if self._stops.spelled:
            self._end_spelled(index_B, tokens_B, going_B)
        self._going_N[index_B] = going_B
        return tokens_B, going_B

    def completions(self) -> list[Completion]:
        """Return the turns of all views."""
        lengths = self._lengths_N.tolist()
        tokens, logprobs = self._tokens_NT.tolist(), self._logprobs_NT.tolist()
        return [
            self._stops.completion(tokens[i][:length], logprobs[i][:length])
            for i, length in enumerate(lengths)
        ]

    def _end_spelled(
        self, index_B: torch.Tensor, tokens_B: torch.Tensor, going_B: torch.Tensor
    ) -> None:
        for row in (going_B & self._may_complete_V[tokens_B]).nonzero()[:, 0].tolist():
            tokens = self._tokens_NT[index_B[row], : self._num_sampled].tolist()
            if self._stops.is_spelled(tokens):
                going_B[row] = False
