"""hopling teaches compact language models to search graphs.

What needs torch or numpy is loaded when its name is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from hopling.environment import Environment
from hopling.episode import (
    Answer,
    Call,
    Completion,
    Ending,
    Episode,
    Malformed,
    Markup,
    Observation,
    Prompt,
    Task,
)
from hopling.errors import HoplingError, SettingsError, ToolError, WorldError
from hopling.rollout import rollout

if TYPE_CHECKING:
    from hopling.evaluation.evaluate import evaluate
    from hopling.evaluation.report import Report
    from hopling.policies.local import LocalModel
    from hopling.training.grpo import grpo
    from hopling.training.settings import GRPO, SFT
    from hopling.training.sft import sft

_LAZY = {
    "GRPO": "hopling.training.settings",
    "LocalModel": "hopling.policies.local",
    "Report": "hopling.evaluation.report",
    "SFT": "hopling.training.settings",
    "evaluate": "hopling.evaluation.evaluate",
    "grpo": "hopling.training.grpo",
    "sft": "hopling.training.sft",
}

__all__ = [
    "GRPO",
    "SFT",
    "Answer",
    "Call",
    "Completion",
    "Ending",
    "Environment",
    "Episode",
    "HoplingError",
    "LocalModel",
    "Malformed",
    "Markup",
    "Observation",
    "Prompt",
    "Report",
    "SettingsError",
    "Task",
    "ToolError",
    "WorldError",
    "evaluate",
    "grpo",
    "rollout",
    "sft",
]


def __getattr__(name: str) -> object:
    if name not in _LAZY:
        raise AttributeError(f"module 'hopling' has no attribute {name!r}")
    return getattr(import_module(_LAZY[name]), name)


def __dir__() -> list[str]:
    return __all__
