"""The settings of both trainers; each default says where it comes from. Needs no torch."""

from dataclasses import dataclass
from typing import Literal

from hopling.errors import SettingsError
from hopling.settings import setting


def _at_least(settings: object, least: float, *names: str) -> None:
    for name in names:
        value = getattr(settings, name)
        if value < least:
            raise SettingsError(f"{name} is {value}; expected at least {least}.")


@dataclass(frozen=True)
class SFT:
    """How a student imitates traces. The defaults are SoG-R1's."""

    epochs: float = setting(5, "paper App. B", "Passes over the traces.")
    learning_rate: float = setting(2e-4, "paper App. B", "Peak learning rate.")
    schedule: str = setting("cosine", "paper App. B", "Decay of the learning rate.")
    warmup_ratio: float = setting(0.1, "paper App. B", "Share of updates that warm up.")
    weight_decay: float = setting(0.01, "paper App. B", "AdamW's weight decay.")
    batch_size: int = setting(64, "paper App. B", "Traces in an update, all processes.")
    micro_batch_size: int = setting(1, "paper App. B", "Traces in a forward, one process.")
    tokens_per_batch: int | None = setting(
        None, "ours", "If set, an update is as many traces of like length as fit this budget."
    )
    lora_rank: int = setting(64, "paper App. B", "Rank of the adapter; 0 trains all weights.")
    lora_alpha: int = setting(128, "paper App. B", "Scale of the adapter.")
    lora_dropout: float = setting(0.1, "paper App. B", "Dropout of the adapter.")
    max_tokens: int = setting(32_768, "paper App. B", "Longer traces are left out, counted.")
    max_grad_norm: float = setting(1.0, "ours", "Gradients are clipped to this norm.")
    max_steps: int | None = setting(None, "ours", "Stop after this many updates.")
    max_seconds: float | None = setting(None, "ours", "Stop after this much wall time.")
    save_every: int = setting(100, "ours", "Updates from one checkpoint to the next.")
    precision: Literal["auto", "bf16", "fp32"] = setting(
        "auto", "ours", "auto is bf16 where the GPU has it."
    )
    gradient_checkpointing: bool = setting(False, "ours", "Less memory for a third more compute.")
    seed: int = setting(0, "ours", "Fixes the order of the traces and dropout.")

    def __post_init__(self) -> None:
        _at_least(self, 1, "batch_size", "micro_batch_size", "max_tokens", "save_every")
        _at_least(self, 0, "lora_rank", "warmup_ratio", "weight_decay")


@dataclass(frozen=True)
class VLLM:
    """Whether vLLM plays GRPO's episodes, and where. Names and defaults are TRL's, save three.

    `importance_sampling` needs the log-probabilities of the whole distribution, which vLLM gives
    only where `top_p` and `top_k` cut nothing.
    """

    mode: Literal["off", "server", "colocate"] = setting(
        "off", "ours", "off plays with transformers; colocate with vLLM on the trainer's GPUs."
    )
    server_base_url: str = setting("http://localhost:8000", "ours, TRL's", "Where vLLM serves.")
    server_timeout_s: float = setting(240.0, "ours, TRL's", "Seconds to wait for the server.")
    group_port: int = setting(51216, "ours, TRL's", "Port through which weights are sent.")
    max_live: int = setting(64, "ours", "Episodes of one process at once, on a server.")
    gpu_memory_utilization: float = setting(0.3, "ours, TRL's", "Share of the GPU, colocated.")
    max_model_length: int | None = setting(
        None, "ours, TRL's", "Tokens of an episode, colocated; none takes the model's context."
    )
    enable_sleep_mode: bool = setting(
        False, "ours, TRL's", "Free the colocated engine's memory during updates."
    )
    importance_sampling: Literal[
        "off", "token_truncate", "token_mask", "sequence_truncate", "sequence_mask"
    ] = setting("off", "ours", "How updates weigh what vLLM and the trainer compute differently.")

    def __post_init__(self) -> None:
        _at_least(self, 1, "max_live", "group_port")
        if not self.server_base_url.startswith(("http://", "https://")):
            raise SettingsError(
                f"server_base_url is {self.server_base_url!r}; write http://HOST:PORT."
            )
        if not 0 < self.gpu_memory_utilization < 1:
            raise SettingsError(
                f"gpu_memory_utilization is {self.gpu_memory_utilization}; expected a share "
                "between 0 and 1."
            )


@dataclass(frozen=True)
class GRPO:
    """How a student learns from the rewards of its own episodes. The defaults are SoG-R1's.

    A step plays `batch_size` tasks `group_size` times each and makes `batch_size / minibatch_size`
    updates, `iterations` times over.
    """

    steps: int = setting(100, "ours", "Batches of tasks played.")
    group_size: int = setting(8, "paper App. B", "Episodes of each task.")
    batch_size: int = setting(64, "ours", "Tasks in a step, all processes.")
    minibatch_size: int = setting(8, "paper App. B", "Tasks in an update, all processes.")
    micro_batch_size: int = setting(1, "paper App. B", "Episodes in a forward, one process.")
    iterations: int = setting(1, "ours", "Passes over a step's episodes.")
    temperature: float = setting(1.0, "paper App. B", "Sampling temperature.")
    top_p: float = setting(0.8, "paper App. B", "Sampling keeps this much probability.")
    top_k: int = setting(20, "paper App. B", "Sampling keeps this many tokens; 0 keeps all.")
    max_turn_tokens: int = setting(512, "ours", "Tokens that a turn may have.")
    learning_rate: float = setting(2e-7, "paper App. B", "Peak learning rate.")
    schedule: str = setting("constant_with_warmup", "ours", "Decay of the learning rate.")
    warmup_steps: int = setting(0, "ours", "Updates that warm up.")
    weight_decay: float = setting(0.0, "ours", "AdamW's weight decay.")
    adam_beta2: float = setting(0.999, "ours", "AdamW's memory of squared gradients.")
    max_grad_norm: float = setting(1.0, "ours", "Gradients are clipped to this norm.")
    kl: float = setting(0.05, "paper App. B", "Weight of the k3 divergence from the start.")
    clip_low: float = setting(0.2, "ours", "The ratio is clipped below 1 - this.")
    clip_high: float = setting(0.2, "ours", "The ratio is clipped above 1 + this.")
    loss: Literal["grpo", "dr_grpo", "dapo", "bnpo"] = setting(
        "grpo", "ours", "How tokens are averaged (TRL's names)."
    )
    advantage: Literal["standardized", "centered"] = setting(
        "standardized", "ours", "centered is Dr. GRPO's."
    )
    loss_tokens: int = setting(1024, "ours", "dr_grpo divides by this, not by the context's size.")
    cut_episodes: Literal["scored", "left out"] = setting(
        "scored", "ours", "Whether episodes that ran out of tokens are trained on."
    )
    lora_rank: int = setting(0, "ours", "Rank of the adapter; 0 trains all weights.")
    lora_alpha: int = setting(128, "ours", "Scale of the adapter.")
    valid_every: int = setting(10, "ours", "Steps from one validation to the next.")
    save_every: int = setting(10, "ours", "Steps from one checkpoint to the next.")
    precision: Literal["auto", "bf16", "fp32"] = setting(
        "auto", "ours", "auto is bf16 where the GPU has it."
    )
    gradient_checkpointing: bool = setting(False, "ours", "Less memory for a third more compute.")
    vllm: VLLM = setting(VLLM(), "ours")
    seed: int = setting(0, "ours", "Fixes the tasks' order and the sampling.")

    def __post_init__(self) -> None:
        if self.group_size < 2:
            raise SettingsError(
                f"group_size is {self.group_size}; GRPO compares episodes of one task, "
                "so it needs at least 2."
            )
        if self.batch_size % self.minibatch_size:
            raise SettingsError(
                f"batch_size is {self.batch_size}, which is no multiple of minibatch_size, "
                f"{self.minibatch_size}; an update takes whole groups of one step."
            )
        if self.vllm.importance_sampling != "off" and (self.top_p < 1 or self.top_k):
            raise SettingsError(
                f"vllm.importance_sampling is {self.vllm.importance_sampling!r}, but top_p is "
                f"{self.top_p} and top_k {self.top_k}: vLLM's log-probabilities are then those of "
                "what is left. Set top_p to 1 and top_k to 0, or importance_sampling to 'off'."
            )
        _at_least(self, 1, "steps", "batch_size", "minibatch_size", "micro_batch_size")
        _at_least(self, 1, "iterations", "max_turn_tokens", "valid_every", "save_every")
        _at_least(self, 0, "kl", "clip_low", "clip_high", "lora_rank", "temperature", "top_k")

    @property
    def updates_per_step(self) -> int:
        """Optimizer updates in a step.

        >>> GRPO(batch_size=64, minibatch_size=8).updates_per_step
        8
        """
        return self.batch_size // self.minibatch_size * self.iterations


@dataclass(frozen=True)
class OPSD:
    """How far hindsight moves the advantage of a walk's node id. The defaults are CNY's.

    `clip`, `average` and `gate` are off for parity with the paper.
    """

    beta: float = setting(0.03, "paper Table 9", "Weight of delta; 0 is plain GRPO.")
    max_recap_tokens: int = setting(50, "paper Table 9", "Tokens of a recap at most.")
    drop: tuple[str, ...] = setting(
        ("id", "advice", "class"), "paper 4.4", "Leaks for which a walk gets no credit."
    )
    clip: float | None = setting(None, "ours", "Cut delta to between minus and plus this.")
    average: bool = setting(
        False, "ours", "Divide delta by the tokens of its id, so that long ids get no more."
    )
    gate: bool = setting(False, "ours", "Give none in groups whose rewards are all equal.")

    def __post_init__(self) -> None:
        _at_least(self, 0, "beta")
        _at_least(self, 1, "max_recap_tokens")
        if self.clip is not None:
            _at_least(self, 0, "clip")
