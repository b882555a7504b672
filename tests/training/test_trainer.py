"""What we use of TRL that it does not promise: one test for each name. trl is pinned to 1.16."""

import inspect

import torch
from trl import GRPOTrainer, SFTTrainer
from trl.trainer import utils
from trl.trainer.utils import add_fused_lm_head, shuffle_sequence_dict, split_tensor_dict


def source(function):
    return inspect.getsource(function)


def test_completions_are_generated_and_scored_in_one_method():
    """EpisodeTrainer overrides it; TRL calls it once a generation batch."""
    called = source(GRPOTrainer._prepare_inputs)
    assert "self._generate_and_score_completions(generation_batch)" in called


def test_a_rollout_function_is_looked_up_when_it_is_called():
    """EpisodeTrainer sets `rollout_func` after TRL's constructor."""
    assert "self.rollout_func(prompts, self)" in source(GRPOTrainer._generate)


def test_env_mask_reaches_the_loss():
    """Zero marks what the environment wrote."""
    assert 'extra_fields.pop("env_mask", None)' in source(GRPOTrainer._generate)
    assert 'completion_mask * inputs["tool_mask"]' in source(GRPOTrainer._compute_loss)


def test_advantages_may_have_a_column_for_each_token():
    """(B, T) passes where (B,) would be expanded."""
    assert "if advantages.dim() == 1:" in source(GRPOTrainer._compute_loss)


def test_advantages_of_each_token_survive_shuffling_and_splitting():
    """TRL shuffles and splits a generation batch."""
    batch = {"ids": torch.arange(4)[:, None], "advantages": torch.arange(4)[:, None].expand(4, 3)}
    for part in split_tensor_dict(shuffle_sequence_dict(batch), 2):
        assert torch.equal(part["ids"].expand(2, 3), part["advantages"])


def test_the_divergence_is_weighed_by_beta_and_taken_from_ref_model():
    """EpisodeTrainer sets both after TRL's constructor, which saw a beta of 0."""
    made = source(GRPOTrainer._generate_and_score_completions)
    assert "if self.beta != 0.0:" in made
    assert "self.ref_model," in made
    assert 'adapter_name="ref" if "ref" in model.peft_config else None' in made


def test_old_log_probabilities_are_computed_when_a_batch_has_several_updates():
    """PAPERS 1.3: sampling with top-p and top-k must not enter the ratio."""
    made = source(GRPOTrainer._generate_and_score_completions)
    assert "self.args.gradient_accumulation_steps % generate_every != 0" in made


def test_the_fused_head_patches_forward_on_the_model_itself():
    """`restored` takes it away again."""
    assert "model.forward = types.MethodType(_fused_forward, model)" in source(add_fused_lm_head)


def test_the_tokenizer_of_a_trainer_is_known_by_name():
    """EpisodeTrainer pads an empty completion with its pad token."""
    assert "self._tokenizer.pad_token_id" in source(GRPOTrainer._generate_and_score_completions)


def test_sft_takes_our_batches():
    """Our trainer overrides the loader; TRL's must not be called elsewhere."""
    assert "get_train_dataloader" not in source(SFTTrainer)


def test_the_head_leaves_out_positions_without_a_label_where_we_say_so():
    """`restored` sets it for CPUs; the name has no other use in that module."""
    lines = [
        line.strip() for line in inspect.getsource(utils).splitlines() if "_use_triton" in line
    ]
    assert lines == [
        "from ..kernels.chunked_logprob import _use_triton",
        "compact = _use_triton(hidden_states.device)",
    ]


def test_log_probabilities_are_those_of_the_labels():
    """EpisodeTrainer takes labels away from tokens that are not trained."""
    made = source(GRPOTrainer._get_per_token_logps_and_entropies)
    assert "model(**model_inputs, labels=labels, fused_lm_head=True)" in made
    assert made.count("model(") == 1
