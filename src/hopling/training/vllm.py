"""vLLM plays GRPO's episodes: TRL starts or finds it and gives it the student's weights.

Which process sends weights, in which names, merged with an adapter or gathered from all processes,
is TRL's `VLLMGeneration`. Ours is when: before the first episode that is played by new weights.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from peft import PeftModel
from requests.exceptions import ConnectionError
from transformers import PreTrainedModel
from trl import GRPOTrainer
from trl.generation.vllm_client import VLLMClient

from hopling.errors import SettingsError, WorldError
from hopling.policies.local import end_ids
from hopling.policies.local_vllm import VllmModel, VllmServer, import_vllm
from hopling.policies.sampling import Sampling
from hopling.training.practice import Playing, Student
from hopling.training.settings import VLLM

MAX_COLOCATED = 4096  # episodes; vLLM queues what does not fit


def arguments(chosen: VLLM, model: PreTrainedModel | PeftModel) -> dict[str, Any]:
    """Return what TRL's GRPOConfig is told of vLLM.

    Raises SettingsError when vLLM is not installed, or cannot build the student by itself.
    """
    if chosen.mode == "off":
        return {}
    import_vllm()
    if chosen.mode == "colocate" and not model.name_or_path:
        raise SettingsError(
            "vllm.mode is 'colocate', but the student was not loaded from a folder, from which "
            "vLLM would read its shape. Save it and load it from there, or use a server."
        )
    corrected = chosen.importance_sampling != "off"
    mode = {"vllm_importance_sampling_mode": chosen.importance_sampling} if corrected else {}
    return {
        "use_vllm": True,
        "vllm_mode": chosen.mode,
        "vllm_server_base_url": chosen.server_base_url,
        "vllm_server_timeout": chosen.server_timeout_s,
        "vllm_group_port": chosen.group_port,
        "vllm_gpu_memory_utilization": chosen.gpu_memory_utilization,
        "vllm_max_model_length": chosen.max_model_length,
        "vllm_enable_sleep_mode": chosen.enable_sleep_mode,
        "vllm_importance_sampling_correction": corrected,
        **mode,
    }


def served(chosen: VLLM, student: Student) -> VllmServer:
    """Return the policy that plays on the server, one client for each process.

    Raises WorldError when no server answers in time, SettingsError when it lacks what TRL needs.
    """
    import_vllm()
    url = chosen.server_base_url
    try:
        client = VLLMClient(url, connection_timeout=chosen.server_timeout_s)
        found = client.get_server_info()
    except ConnectionError as error:
        raise WorldError(
            f"vLLM did not answer at {url} within {chosen.server_timeout_s:g} s. Is the server up? "
            "docs/scale.md has its command."
        ) from error
    except RuntimeError as error:
        raise SettingsError(str(error)) from error
    if found["weight_transfer_config"] is None:
        raise SettingsError(
            f"vLLM at {url} takes no weights; start it with --weight-transfer-config "
            """'{"backend": "nccl"}', as docs/scale.md says."""
        )
    read = found["model_config"]
    if chosen.importance_sampling != "off" and read["logprobs_mode"] != "processed_logprobs":
        raise SettingsError(
            f"vLLM at {url} gives {read['logprobs_mode']}; vllm.importance_sampling needs it "
            "started with --logprobs-mode processed_logprobs."
        )
    return VllmServer(
        client,
        student.tokenizer,
        ends=end_ids(student.model, student.tokenizer),
        max_model_length=read["max_model_len"],
        max_live=chosen.max_live,
    )


def playing(trainer: GRPOTrainer, student: Student, server: VllmServer | None) -> Playing:
    """Return how rollouts get their policy: with the trainer's weights, and awake."""
    if server is not None:
        return partial(_on_server, trainer, server)
    engine = trainer.vllm_generation.llm
    policy = VllmModel(engine, student.tokenizer, sampling=Sampling(), max_live=MAX_COLOCATED)
    return partial(_colocated, trainer, policy)


@contextmanager
def _on_server(
    trainer: GRPOTrainer, policy: VllmServer, sampling: Sampling
) -> Iterator[VllmServer]:
    _update(trainer)
    trainer.accelerator.wait_for_everyone()  # the first process alone sends the weights
    policy.sampling = sampling
    yield policy


@contextmanager
def _colocated(trainer: GRPOTrainer, policy: VllmModel, sampling: Sampling) -> Iterator[VllmModel]:
    _update(trainer)
    engine, policy.sampling = trainer.vllm_generation, sampling
    if not engine.enable_sleep_mode:
        yield policy
        return
    if engine._llm_weights_sleeping:  # its sleep drops the weights
        engine.sync_weights()
    engine.llm.wake_up(tags=["kv_cache"])
    try:
        yield policy
    finally:
        engine.llm.sleep(level=2)
        engine._llm_weights_sleeping = True


def _update(trainer: GRPOTrainer) -> None:
    """Send the weights if the engine has others; TRL does it before a step, not a validation."""
    if trainer.state.global_step != trainer._last_loaded_step:
        trainer.vllm_generation.sync_weights()
        trainer._last_loaded_step = trainer.state.global_step
