"""What a laptop's two cores can do: `--scale small`, and the quickstart. Every value is ours."""

from typing import Any

SFT_SMALL: dict[str, Any] = {
    "epochs": 20,
    "max_steps": 1200,
    "learning_rate": 1.5e-3,
    "schedule": "linear",
    "warmup_ratio": 0.03,
    "tokens_per_batch": 1024,
    "lora_rank": 0,
    "save_every": 400,
    "precision": "fp32",
}
GRPO_SMALL: dict[str, Any] = {
    "steps": 40,
    "batch_size": 32,
    "minibatch_size": 32,
    "micro_batch_size": 64,
    "learning_rate": 2e-3,
    "schedule": "linear",
    "lora_rank": 8,
    "lora_alpha": 16,
    "top_p": 1.0,
    "top_k": 0,
    "kl": 0.0,
    "temperature": 0.7,  # at 1 a small student is punished for its longer episodes' bad luck
    "max_turn_tokens": 48,
    "valid_every": 10,
    "precision": "fp32",
}
SMALL: dict[str, Any] = {
    "student": "tiny",
    "filtered": 0.5,
    "max_probe_rows": 4,
    "max_turns": 8,
    "max_tokens": 512,
    "valid": 200,
    "test": 300,
    "sft": SFT_SMALL,
    "grpo": GRPO_SMALL,
}
