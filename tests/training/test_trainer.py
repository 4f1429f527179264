"""Steps are those of a plain training loop, and each leaves its numbers."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from ppframe.errors import StageError
from ppframe.training.trainer import MAX_TRACED_STEPS, Progress
from tests.training.toy import LinearData, MemorySink, linear_modules, make_trainer

KEYS = {
    "step",
    "train/loss",
    "train/lr",
    "train/grad_norm",
    "time/step_s",
    "throughput/samples_per_s",
    "throughput/tokens_per_s",
    "pipeline/bubble_fraction",
    "memory/rank0_peak_gib",
}


def plain_training(num_steps: int, lr: float) -> tuple[list[float], list[float], nn.Sequential]:
    """Losses before each update, gradient norms, and the model, without a pipeline."""
    model = nn.Sequential(*linear_modules())
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    losses, norms = [], []
    for _, (inputs, targets) in zip(range(num_steps), LinearData().train_batches(8, 0)):  # noqa: B905
        loss = nn.functional.mse_loss(model(inputs), targets)
        loss.backward()
        norms.append(nn.utils.get_total_norm([p.grad for p in model.parameters()]).item())
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    return losses, norms, model


def test_losses_norms_and_weights_are_those_of_a_plain_loop():
    losses, norms, model = plain_training(4, lr=0.05)
    trainer, sink = make_trainer(lr=0.05), MemorySink()
    trainer.run(sink)
    assert [row["step"] for row in sink.rows] == [1, 2, 3, 4]
    assert [row["train/loss"] for row in sink.rows] == pytest.approx(losses, rel=1e-5)
    assert [row["train/grad_norm"] for row in sink.rows] == pytest.approx(norms, rel=1e-5)
    assert trainer.progress.final_loss == sink.rows[-1]["train/loss"]
    for name, value in trainer.pipeline.state_dict().items():
        torch.testing.assert_close(value, model.state_dict()[name])


def test_every_row_has_every_key_and_the_last_an_evaluation():
    trainer, sink = make_trainer(eval_num_batches=2), MemorySink()
    trainer.run(sink)
    assert [set(row) for row in sink.rows] == [KEYS, KEYS, KEYS, KEYS | {"val/loss"}]
    row = sink.rows[0]
    assert row["throughput/samples_per_s"] == pytest.approx(8 / row["time/step_s"])
    assert 0.0 < row["pipeline/bubble_fraction"] < 1.0


def test_evaluations_come_every_nth_and_after_the_last_step_over_the_same_batches():
    trainer, sink = make_trainer(num_steps=5, eval_every_steps=2, eval_num_batches=2), MemorySink()
    trainer.run(sink)
    values = {row["step"]: row["val/loss"] for row in sink.rows if "val/loss" in row}
    assert list(values) == [2, 4, 5]
    assert trainer.progress.best_val_loss == min(values.values())
    batches = list(LinearData().validation_batches(8, 2))
    with torch.no_grad():
        output = nn.Sequential(*linear_modules())
        output.load_state_dict(trainer.pipeline.state_dict())
        expected = nn.functional.mse_loss(
            output(torch.cat([batch.inputs for batch in batches])),
            torch.cat([batch.targets for batch in batches]),
        )
    assert values[5] == pytest.approx(float(expected))


def test_evaluating_and_measuring_change_no_number():
    watched, alone = MemorySink(), MemorySink()
    modules = [nn.Linear(3, 8), nn.Dropout(0.5), nn.Linear(8, 8), nn.Linear(8, 1)]
    state = nn.Sequential(*modules).state_dict()
    start = {name: value.clone() for name, value in state.items()}
    make_trainer(modules, eval_every_steps=1, measure_every=1, trace=True).run(watched)
    nn.Sequential(*modules).load_state_dict(start)
    make_trainer(modules, eval_num_batches=0, measure_every=None).run(alone)
    losses = [[row["train/loss"] for row in sink.rows] for sink in (watched, alone)]
    assert losses[0] == losses[1]


def test_bubbles_are_measured_in_the_first_every_nth_and_the_last_step():
    trainer = make_trainer(num_steps=7, measure_every=3)
    trainer.run(MemorySink())
    assert list(trainer.progress.bubbles) == [1, 3, 6, 7]
    bubble = trainer.progress.bubble()
    warm = sorted(trainer.progress.bubbles[step].fraction for step in (3, 6, 7))
    assert bubble is not None
    assert (bubble.fraction, bubble.source) == (warm[1], "replayed")
    assert trainer.progress.traces == {}


def test_never_measuring_leaves_the_key_out():
    trainer, sink = make_trainer(num_steps=1, measure_every=None), MemorySink()
    trainer.run(sink)
    assert set(sink.rows[0]) == (KEYS | {"val/loss"}) - {"pipeline/bubble_fraction"}
    assert Progress().bubble() is None


def test_a_trace_keeps_the_first_steps_only():
    trainer = make_trainer(num_steps=MAX_TRACED_STEPS + 2, trace=True, measure_every=None)
    trainer.run(MemorySink())
    assert list(trainer.progress.traces) == list(range(1, MAX_TRACED_STEPS + 1))
    actions = {str(entry.action) for entry in trainer.progress.traces[1]}
    assert {"0F0", "1BW3"} <= actions


def test_the_limit_holds_over_all_stages():
    trainer, sink = make_trainer(num_steps=1, lr=1.0, clip_grad_norm=0.01), MemorySink()
    before = {name: value.clone() for name, value in trainer.pipeline.state_dict().items()}
    trainer.run(sink)
    after = trainer.pipeline.state_dict()
    moved = math.sqrt(sum(float((after[name] - before[name]).square().sum()) for name in before))
    assert sink.rows[0]["train/grad_norm"] > 0.01
    assert moved == pytest.approx(0.01, rel=1e-3)


def test_a_loss_that_is_not_finite_is_told_once_with_its_step(caplog):
    trainer, sink = make_trainer(num_steps=6, lr=1e30), MemorySink()
    trainer.run(sink)
    first = next(
        row["step"]
        for row in sink.rows
        if not (math.isfinite(row["train/loss"]) and math.isfinite(row["train/grad_norm"]))
    )
    assert trainer.progress.first_nonfinite_step == first
    (message,) = [text for text in caplog.messages if "must be finite" in text]
    assert f"at step {first}" in message
    assert trainer.progress.best_val_loss is None
    assert len(sink.rows) == 6


class FailsAtThird(nn.Module):
    """Raises in its third step of four microbatches."""

    def __init__(self, error: BaseException) -> None:
        super().__init__()
        self.calls, self.error = 0, error

    def forward(self, inputs):
        self.calls += 1
        if self.calls > 8:
            raise self.error
        return inputs


def test_a_failure_names_rank_and_action_and_keeps_the_rows_before_it():
    modules = [nn.Linear(3, 1), FailsAtThird(ValueError("broken"))]
    trainer, sink = make_trainer(modules), MemorySink()
    with pytest.raises(StageError, match="broken") as caught:
        trainer.run(sink)
    assert (caught.value.rank, caught.value.stage) == (1, 1)
    assert [row["step"] for row in sink.rows] == [1, 2]
    assert trainer.progress.steps == 2


def test_an_interruption_while_evaluating_keeps_the_row_of_the_step():
    modules = [nn.Linear(3, 1), FailsAtThird(KeyboardInterrupt())]
    trainer, sink = make_trainer(modules, eval_every_steps=2), MemorySink()
    with pytest.raises(KeyboardInterrupt):
        trainer.run(sink)
    assert [row["step"] for row in sink.rows] == [1, 2]
    assert "val/loss" not in sink.rows[1]
