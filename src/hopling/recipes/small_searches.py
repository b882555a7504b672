"""GTA-RAG's GRPO as far as the paper tells it, and `--scale small`, whose values are all ours."""

from dataclasses import replace
from typing import Any

from hopling.training.settings import GRPO

# 128 prompts, 5 episodes each [GTA-RAG 4.1]; the rest, which it does not tell, is Search-R1's
PAPER_GRPO = GRPO(
    group_size=5,
    batch_size=128,
    minibatch_size=128,
    learning_rate=1e-6,
    top_p=1.0,
    top_k=0,
    kl=0.001,
    max_turn_tokens=500,
)
STAGE1, STAGE2 = replace(PAPER_GRPO, steps=20), replace(PAPER_GRPO, steps=40)
_GRPO_SMALL: dict[str, Any] = {
    "batch_size": 16,
    "minibatch_size": 16,
    "micro_batch_size": 8,
    # an adapter whose learning rate decays: larger updates of all weights break a tiny student
    "learning_rate": 2e-3,
    "schedule": "linear",
    "lora_rank": 8,
    "lora_alpha": 16,
    "kl": 0.0,
    "max_turn_tokens": 40,
    "save_every": 100,
    "precision": "fp32",
}
SMALL: dict[str, Any] = {
    "student": "tiny",
    "hops": "2",
    "trajectories": 1000,
    "held_out": 150,
    "max_paths": 20_000,
    # the graph alone, and little of it, so that validation has something to drop
    "retrieval": {"num_graph": 2, "num_passages": 0},
    "max_docs": 2,
    "max_chars": 600,
    "max_turns": 4,
    "max_tokens": 400,
    "warm": 1000,
    # a student that always searches twice, since all it saw did, has nothing to learn from rewards
    "hasty": 0.5,
    "sft": {
        "epochs": 20,
        "max_steps": 1000,
        "learning_rate": 1.5e-3,
        "schedule": "linear",
        "warmup_ratio": 0.03,
        "tokens_per_batch": 1024,
        "lora_rank": 0,
        "save_every": 500,
        "precision": "fp32",
    },
    "stage1": {**_GRPO_SMALL, "steps": 12},
    # the second stage is there to be run through: it asks the first one's tasks again
    "stage2": {**_GRPO_SMALL, "steps": 1, "batch_size": 8, "minibatch_size": 8},
}
