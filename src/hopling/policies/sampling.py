"""How a policy samples its tokens; the same settings for every policy that has a model."""

from dataclasses import dataclass

from hopling.errors import SettingsError


@dataclass(frozen=True)
class Sampling:
    """Temperature (0 is greedy), nucleus, number of candidates (0: all), and a turn's length.

    Recorded log-probabilities are those of the whole distribution at this temperature (at 1 when
    greedy), before `top_p` and `top_k` cut it: what a trainer computes again.
    """

    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0
    max_turn_tokens: int = 512

    def __post_init__(self) -> None:
        if self.temperature < 0:
            raise SettingsError(f"temperature is {self.temperature}; it must be 0 or more.")
        if not 0 < self.top_p <= 1:
            raise SettingsError(f"top_p is {self.top_p}; it must be above 0 and at most 1.")
        if self.top_k < 0:
            raise SettingsError(f"top_k is {self.top_k}; it must be 0 (all) or more.")
        if self.max_turn_tokens < 1:
            raise SettingsError(f"max_turn_tokens is {self.max_turn_tokens}; it must be 1 or more.")
