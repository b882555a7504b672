"""Imitation and practice: SFT, GRPO, and what they weigh."""
