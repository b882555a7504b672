"""What a server's work costs, and where it stops."""

from dataclasses import dataclass, field, replace
from threading import Lock

from hopling.errors import SettingsError, WorldError


class BudgetSpent(WorldError):
    """No further request is made, since the budget is spent.

    Episodes that come too late end unscored, so a later run can play them.
    """


@dataclass(frozen=True)
class Price:
    """What a server asks for a million tokens read and a million tokens written."""

    read: float
    written: float

    def cost(self, read: float, written: float) -> float:
        """Return the price of so many tokens.

        >>> Price(read=1.0, written=2.0).cost(500_000, 250_000)
        1.0
        """
        return (read * self.read + written * self.written) / 1e6


@dataclass(frozen=True)
class Usage:
    """Requests that were answered, those that were tried again, tokens, and their price."""

    num_requests: int = 0
    num_retries: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float = 0.0


@dataclass
class Meter:
    """Adds up usage, from several threads, and stops when `budget` is spent."""

    price: Price | None = None
    budget: float | None = None
    usage: Usage = field(default_factory=Usage, init=False)
    _lock: Lock = field(default_factory=Lock, init=False, repr=False)

    def __post_init__(self) -> None:
        if self.budget is not None and self.price is None:
            raise SettingsError(
                f"budget is {self.budget:g}, but no price is set, so nothing would ever be spent. "
                "Give price=Price(read=..., written=...), per million tokens."
            )

    def check(self) -> None:
        """Raise BudgetSpent if nothing is left."""
        if self.budget is not None and self.usage.cost >= self.budget:
            raise BudgetSpent(
                f"The budget of {self.budget:g} is spent ({self.usage.cost:g} for "
                f"{self.usage.num_requests} requests). Raise it to go on."
            )

    def add(self, prompt_tokens: int, completion_tokens: int) -> None:
        """Count one request that was answered."""
        cost = self.price.cost(prompt_tokens, completion_tokens) if self.price else 0.0
        with self._lock:
            self.usage = replace(
                self.usage,
                num_requests=self.usage.num_requests + 1,
                prompt_tokens=self.usage.prompt_tokens + prompt_tokens,
                completion_tokens=self.usage.completion_tokens + completion_tokens,
                cost=self.usage.cost + cost,
            )

    def add_retry(self) -> None:
        """Count one request that has to be made again."""
        with self._lock:
            self.usage = replace(self.usage, num_retries=self.usage.num_retries + 1)
