"""How much memory a student needs, by formula: parameters times bytes; no weights are loaded.

# limit: activations and the cache of keys and values come on top; they depend on lengths.
"""

import json
import math
import re
from collections.abc import Mapping
from pathlib import Path

from hopling.apps.world import SMOLLM2
from hopling.errors import DataError, SettingsError

_SMOLLM2_PARAMETERS = 134_515_008  # SmolLM2-135M, embeddings tied
_LORA_SHARE = 0.02  # [ours] of all parameters: rank 64 on all linear layers of an 8B model
_ADAMW = 8  # bytes a trained parameter: two moments in float32
_GRADIENT = 4
_SIZE = re.compile(r"(?<![\w.])(\d+(?:\.\d+)?)\s*([MB])(?![A-Za-z])", re.IGNORECASE)


def num_parameters(name: str) -> int:
    """Return a model's parameters: of a folder's weights, or by the size in its name.

    Raises SettingsError when neither tells.

    >>> num_parameters("meta-llama/Llama-3.1-8B-Instruct")
    8000000000
    """
    folder = Path(name)
    files = sorted(folder.glob("*.safetensors")) if folder.is_dir() else []
    if files:
        return sum(map(_parameters_in, files))
    if name == SMOLLM2:
        return _SMOLLM2_PARAMETERS
    sizes = _SIZE.findall(name)
    if not sizes:
        raise SettingsError(
            f"The size of {name!r} is unknown: it is no folder with weights (*.safetensors), and "
            "its name has no size such as 8B. Write --student 8B."
        )
    number, unit = sizes[-1]
    return round(float(number) * (1e9 if unit in "bB" else 1e6))


def estimate(parameters: int) -> Mapping[str, float]:
    """Return the bytes that weights, gradients and optimizer take, by use.

    >>> {use: round(size / 1e9) for use, size in estimate(8_000_000_000).items()}
    {'play, bf16': 16, 'LoRA, bf16': 19, 'all weights, fp32': 128, 'all weights, KL, fp32': 160}
    """
    adapter = _LORA_SHARE * parameters * (4 + _GRADIENT + _ADAMW)
    trained = parameters * (4 + _GRADIENT + _ADAMW)
    return {
        "play, bf16": 2.0 * parameters,
        "LoRA, bf16": 2.0 * parameters + adapter,
        "all weights, fp32": float(trained),
        "all weights, KL, fp32": float(trained + 4 * parameters),  # the reference's weights
    }


def _parameters_in(path: Path) -> int:
    """Return how many numbers a safetensors file holds, from its header alone."""
    with path.open("rb") as file:
        size = int.from_bytes(file.read(8), "little")
        if size > path.stat().st_size:
            raise DataError(f"{path} is no whole safetensors file; fetch or save it again.")
        header = json.loads(file.read(size))
    return sum(math.prod(t["shape"]) for name, t in header.items() if name != "__metadata__")
