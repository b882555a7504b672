import pytest
import torch

from hopling.errors import SettingsError
from hopling.policies.local_sampling import draw, uniforms
from hopling.policies.sampling import Sampling

PROBS = torch.tensor([[0.1, 0.4, 0.0, 0.3, 0.2]])
LOGITS = PROBS.log().clamp(min=-1e9)


def drawn(uniform: float, **settings: float) -> int:
    sampling = Sampling(**settings)  # type: ignore[arg-type]
    return draw(LOGITS, torch.tensor([uniform]), sampling)[0].item()


def test_a_uniform_number_picks_the_token_whose_interval_holds_it() -> None:
    """Inverse transform: 0-.1, .1-.5, nothing, .5-.8, .8-1."""
    assert [drawn(u) for u in (0.0, 0.09, 0.11, 0.49, 0.51, 0.79, 0.81, 0.9999999)] == [
        0, 0, 1, 1, 3, 3, 4, 4,
    ]  # fmt: skip


def test_top_k_and_top_p_keep_the_likeliest_tokens_only() -> None:
    """Holtzman et al. 2020: the smallest set whose mass reaches p."""
    grid = [i / 100 for i in range(100)]
    assert {drawn(u, top_k=2) for u in grid} == {1, 3}
    assert {drawn(u, top_p=0.4) for u in grid} == {1}
    assert {drawn(u, top_p=0.45) for u in grid} == {1, 3}
    assert {drawn(u, top_p=0.8, top_k=2) for u in grid} == {1, 3}


def test_greedy_takes_the_likeliest_and_records_it_at_temperature_one() -> None:
    """Ours."""
    tokens, logprobs = draw(LOGITS, torch.tensor([0.99]), Sampling(temperature=0.0))
    assert tokens.item() == 1
    assert logprobs.exp().item() == pytest.approx(0.4)


def test_logprobs_are_of_the_whole_distribution_at_the_temperature() -> None:
    """Ours: .4^2 / (.1^2 + .4^2 + .3^2 + .2^2) = .5333, whatever top_k cuts."""
    _, logprobs = draw(LOGITS, torch.tensor([0.3]), Sampling(temperature=0.5, top_k=1))
    assert logprobs.exp().item() == pytest.approx(0.16 / 0.30)


def test_frequencies_follow_the_probabilities() -> None:
    """Ours: 40,000 draws, within four standard deviations."""
    numbers = uniforms([(1, 0)], 40_000)[0]
    tokens, _ = draw(LOGITS.expand(len(numbers), -1), numbers, Sampling())
    shares = torch.bincount(tokens, minlength=5) / len(numbers)
    assert shares.tolist() == pytest.approx(PROBS[0].tolist(), abs=0.01)


def test_random_numbers_depend_on_seed_and_turn_and_not_on_how_many_are_asked_for() -> None:
    """Ours."""
    few, many = uniforms([(1, 0), (1, 1)], 3), uniforms([(1, 1), (1, 0), (2, 0)], 50)
    assert torch.equal(few, many[[1, 0], :3])
    assert len({tuple(row) for row in many.tolist()}) == 3


@pytest.mark.parametrize(
    "wrong", [{"temperature": -1.0}, {"top_p": 0.0}, {"top_k": -1}, {"max_turn_tokens": 0}]
)
def test_settings_out_of_range_are_refused(wrong: dict[str, float]) -> None:
    """Ours."""
    with pytest.raises(SettingsError, match="must be"):
        Sampling(**wrong)  # type: ignore[arg-type]
