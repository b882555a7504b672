"""CNY's GRPO as the paper ran it, and `--scale small`, of which every value is ours."""

from typing import Any

from hopling.training.settings import GRPO

PAPER_GRPO = GRPO(
    steps=1000,
    batch_size=32,
    minibatch_size=32,
    learning_rate=1e-6,
    weight_decay=0.01,
    adam_beta2=0.98,
    top_p=1.0,
    top_k=0,
    kl=0.0,
    clip_high=0.28,
    max_turn_tokens=2048,
)
SMALL: dict[str, Any] = {
    "train": "a",
    "test": "a,b",
    "student": "tiny",
    "shown": "nothing",
    "stages": "sft,rl",
    "betas": "0,0.03",
    "max_first": 8,
    "max_new": 8,
    "preview_words": 1,
    "text_words": 24,
    "max_turns": 3,
    "max_tokens": 320,
    "opsd": {"drop": "id,advice"},  # glosses hold the names of classes
    "sft": {
        "epochs": 40,
        "max_steps": 500,
        "learning_rate": 1.5e-3,
        "schedule": "linear",
        "warmup_ratio": 0.03,
        "tokens_per_batch": 1024,
        "lora_rank": 0,
        "save_every": 500,
        "precision": "fp32",
    },
    "grpo": {
        "steps": 10,
        "micro_batch_size": 64,
        "learning_rate": 2e-4,
        "max_turn_tokens": 24,
        "valid_every": 5,
        "precision": "fp32",
    },
}
