"""Imitating traces."""

import pytest
import torch
from torch.nn.functional import cross_entropy

import asking
from hopling.errors import SettingsError
from hopling.records import read
from hopling.rollout import rollout
from hopling.training.batches import rows
from hopling.training.runs import last_checkpoint
from hopling.training.sft import sft


def weights(student):
    return torch.cat([p.detach().flatten() for p in student.model.parameters()])


class Killed(Exception):
    """Stands for a run that ends in the middle."""


def killer(step):
    def on_progress(row):
        if row["step"] == step:
            raise Killed

    return on_progress


def test_the_loss_is_the_mean_over_sampled_tokens(tmp_path):
    """SoG-R1 4.3: next-token loss on the assistant's turns only; worked by hand here."""
    student = asking.fresh()
    traces = asking.traces(student)
    data = rows(traces, max_tokens=100)
    with torch.no_grad():
        losses = [
            cross_entropy(
                student.model(torch.tensor([ids])).logits[0, :-1],
                torch.tensor(labels[1:]),
                reduction="none",
            )
            for ids, labels in zip(data.input_ids, data.labels, strict=True)
        ]
    trained = [
        loss[torch.tensor(ls[1:]) != -100] for loss, ls in zip(losses, data.labels, strict=True)
    ]
    expected = torch.cat(trained).mean().item()
    settings = asking.warm_up(max_steps=1, micro_batch_size=2)
    sft(student, traces, settings=settings, output_dir=tmp_path)
    (row,) = read(tmp_path / "metrics.jsonl")
    assert row["loss"] == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("lora_rank", [0, 4])
def test_a_killed_run_resumes_to_the_same_weights(tmp_path, lora_rank):
    """BUGS B36: order, dropout and optimizer go on where they were."""
    settings = asking.warm_up(
        epochs=6, lora_rank=lora_rank, batch_size=4, micro_batch_size=2, save_every=2
    )
    whole, torn = asking.fresh(), asking.fresh()
    traces = asking.traces(whole)
    sft(whole, traces, settings=settings, output_dir=tmp_path / "whole")
    with pytest.raises(Killed):
        sft(torn, traces, settings=settings, output_dir=tmp_path / "torn", on_progress=killer(8))
    resumed = asking.fresh()
    sft(resumed, traces, settings=settings, output_dir=tmp_path / "torn", resume=True)
    assert torch.equal(weights(whole), weights(resumed))
    assert [row["step"] for row in read(tmp_path / "torn" / "metrics.jsonl")] == [*range(1, 13)]


def test_a_half_written_checkpoint_is_passed_over(tmp_path):
    """A run that was killed while it saved resumes from the checkpoint before."""
    whole, torn = tmp_path / "checkpoint-9", tmp_path / "checkpoint-10"
    whole.mkdir()
    torn.mkdir()
    (whole / "trainer_state.json").write_text("{}")
    assert last_checkpoint(tmp_path) == whole


@pytest.mark.parametrize("lora_rank", [0, 4])
def test_training_leaves_the_student_as_it_found_it_but_for_the_weights(tmp_path, lora_rank):
    """Ours: no adapter, no patched forward, no train mode is left on the model."""
    student = asking.fresh()
    student.model.eval()
    names = [name for name, _ in student.model.named_modules()]
    before = weights(student)
    settings = asking.warm_up(epochs=2, lora_rank=lora_rank)
    assert sft(student, asking.traces(student), settings=settings, output_dir=tmp_path) is student
    assert [name for name, _ in student.model.named_modules()] == names
    assert "forward" not in vars(student.model)
    assert not student.model.training
    assert all(p.requires_grad for p in student.model.parameters())
    assert not torch.equal(before, weights(student))


def test_a_student_learns_to_answer_from_traces(tmp_path):
    """SoG-R1 4.3: after imitation the greedy student does what the traces did."""
    student = asking.fresh()
    settings = asking.warm_up(epochs=150)
    sft(student, asking.traces(student), settings=settings, output_dir=tmp_path)
    student.sampling = asking.Sampling(temperature=0.0, max_turn_tokens=6)
    episodes = rollout(student, asking.world(), asking.tasks())
    assert [asking.right(episode) for episode in episodes] == [1.0] * 8


def test_a_run_stops_when_its_time_is_over(tmp_path):
    """Ours: a quickstart on any machine ends in time."""
    student = asking.fresh()
    settings = asking.warm_up(epochs=1000, max_seconds=0.0)
    sft(student, asking.traces(student), settings=settings, output_dir=tmp_path)
    assert len(read(tmp_path / "metrics.jsonl")) == 1


def test_traces_without_tokens_are_refused_with_the_way_out(tmp_path):
    """Ours: a teacher's traces must be encoded for the student first."""
    student = asking.fresh()
    script = asking.Scripted({t.id: ["=1"] for t in asking.tasks()})
    traces = rollout(script, asking.world(), asking.tasks())
    with pytest.raises(SettingsError, match=r"replay\(traces, environment, student.encoder\)"):
        sft(student, traces, settings=asking.warm_up(), output_dir=tmp_path)
