from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from hopling.apps.memory import estimate, num_parameters
from hopling.errors import DataError, SettingsError


def test_parameters_are_counted_from_the_weights_files(tmp_path: Path) -> None:
    """The safetensors format: 8 bytes of length, then a JSON header with shapes."""
    save_file({"a": torch.zeros(3, 4), "b": torch.zeros(5)}, tmp_path / "1.safetensors")
    save_file({"c": torch.zeros(())}, tmp_path / "2.safetensors", metadata={"format": "pt"})
    assert num_parameters(str(tmp_path)) == 3 * 4 + 5 + 1


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("meta-llama/Llama-3.1-8B-Instruct", 8e9),
        ("Qwen/Qwen2.5-0.5B", 5e8),
        ("HuggingFaceTB/SmolLM2-360M", 3.6e8),
        ("smollm2", 134_515_008),
        ("70B", 7e10),
    ],
)
def test_a_name_tells_its_size(name: str, parameters: float) -> None:
    """The names that their publishers gave; SmolLM2's count is its model card's."""
    assert num_parameters(name) == parameters


@pytest.mark.parametrize("name", ["gpt", "3.1-base", "v2Beta"])
def test_a_name_without_a_size_is_refused(name: str) -> None:
    """CONVENTIONS, "Errors"."""
    with pytest.raises(SettingsError, match="--student 8B"):
        num_parameters(name)


def test_a_cut_weights_file_is_named(tmp_path: Path) -> None:
    """Ours."""
    (tmp_path / "x.safetensors").write_bytes((1 << 40).to_bytes(8, "little") + b"{")
    with pytest.raises(DataError, match=r"x\.safetensors is no whole"):
        num_parameters(str(tmp_path))


def test_full_training_takes_sixteen_bytes_a_parameter() -> None:
    """By hand: weights 4, gradients 4, AdamW 8; the reference of KL another 4."""
    sizes = estimate(1_000_000)
    assert sizes["all weights, fp32"] == 16e6
    assert sizes["all weights, KL, fp32"] == 20e6
