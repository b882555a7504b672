"""The tiny student's tokenizer and its constructed start."""

import pytest
import torch

from hopling.episode import Markup
from hopling.policies.local import LocalModel
from hopling.training.tiny import tiny_llama, train_tokenizer

TEXTS = [
    "who directed Dark House\n| m.43809 | Dark House |",
    "| property | propertyLabel | value | valueLabel |\n|---|---|---|---|\n"
    "| directed_by | directed by | m.15111 | Victor Salva |",
    "Final answer: {Victor Salva}, {Darin Scott}",
] * 20


def repeated_segments(rng: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
    """Return tokens (T,) in which a dozen random segments come again, and what is predictable."""
    lengths = torch.randint(3, 9, (12,), generator=rng).tolist()
    segments = [torch.randint(10, 500, (n,), generator=rng) for n in lengths]
    again = [segments[i] for i in torch.randint(0, 12, (20,), generator=rng).tolist()]
    known = [torch.zeros(n, dtype=torch.bool) for n in lengths]
    known += [torch.arange(len(segment)) > 0 for segment in again]
    return torch.cat([*segments, *again]), torch.cat(known)


@pytest.mark.parametrize(("seed", "least"), [(0, 0.6), (1, 0.6)])
def test_an_untrained_student_continues_what_came_before(seed: int, least: float) -> None:
    """Ours: the constructed start copies; random weights do so for none of these tokens."""
    tokens, known = repeated_segments(torch.Generator().manual_seed(seed))
    model = tiny_llama(500, seed=seed).eval()
    with torch.no_grad():
        guesses = model(tokens[None]).logits[0, :-1].argmax(dim=-1)
    right = (guesses == tokens[1:])[known[1:]].float().mean()
    assert right > least


def test_a_saved_student_reads_its_tokens_as_before(tmp_path) -> None:
    """Ours: what a folder holds is the student that was trained, tokenizer included."""
    tokenizer = train_tokenizer(TEXTS, vocab_size=1500)
    policy = LocalModel(tiny_llama(len(tokenizer), seed=0), tokenizer)
    policy.save(tmp_path)
    loaded = LocalModel.load(tmp_path)
    pieces = [Markup("<|user|>"), TEXTS[0], Markup("<|end|>"), TEXTS[1], TEXTS[2]]
    assert loaded.encoder.encode(pieces) == policy.encoder.encode(pieces)
    same = loaded.model.state_dict()
    assert all(torch.equal(same[name], value) for name, value in policy.model.state_dict().items())


def test_ids_are_groups_of_digits_and_repeated_cells_one_token() -> None:
    """Ours: short and regular ids are what a tiny model can learn to copy."""
    tokenizer = train_tokenizer(TEXTS, vocab_size=1500)
    shown = [tokenizer.decode([i]) for i in tokenizer.encode(TEXTS[1], add_special_tokens=False)]
    assert "\n| directed_by | directed by |" in shown
    place = shown.index(" m.")
    assert shown[place : place + 3] == [" m.", "151", "11"]


def test_alike_tokens_start_near_each_other() -> None:
    """Ours: a name is copied after a brace as after a cell's bar."""
    weights = tiny_llama(50, seed=0, alike=[(20, 30)]).model.embed_tokens.weight
    near = torch.cosine_similarity(weights[20], weights[30], dim=0)
    other = torch.cosine_similarity(weights[20], weights[31], dim=0)
    assert near > 0.8 > 0.5 > other
