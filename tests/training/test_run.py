"""What a training leaves in its folder."""

from __future__ import annotations

import json
import signal

import pytest
import torch
from torch import nn

from ppframe.engine import LocalEngine
from ppframe.metrics import RunInfo
from ppframe.schedule import LoweredSchedule, Schedule
from ppframe.training.interrupt import Terminated
from ppframe.training.recorder import RunRecorder
from ppframe.training.run import EvaluationSettings, TrainOptions, evaluate_model, train
from ppframe.training.sample import SampleSettings
from ppframe.training.trainer import Trainer
from tests.training.toy import AlphabetData, LinearData, MemorySink, letter_modules, make_trainer


def run(trainer: Trainer, run_dir, **options) -> MemorySink:
    sink = MemorySink()
    with RunRecorder(RunInfo(run_dir=run_dir), [sink], hold=trainer.hold) as recorder:
        train(trainer, recorder, TrainOptions(launch_dir=run_dir, **options))
    return sink


def test_a_run_directory_holds_all_files(tmp_path):
    trainer = make_trainer(trace=True)
    sink = run(trainer, tmp_path)
    assert {entry.name for entry in tmp_path.iterdir()} == {
        "checkpoints", "git.json", "lowered.csv", "metrics.jsonl", "schedule.csv", "schedule.html",
        "schedule.svg", "summary.json", "timeline.html", "timeline.json", "timeline.svg",
    }  # fmt: skip
    assert Schedule.from_csv(tmp_path / "schedule.csv").actions == (
        trainer.pipeline.schedule(4).actions
    )
    assert LoweredSchedule.from_csv(tmp_path / "lowered.csv").actions == (
        trainer.pipeline.lowered(4).actions
    )
    rows = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    assert rows == sink.rows
    events = json.loads((tmp_path / "timeline.json").read_text())["traceEvents"]
    assert "r1/1_BW_3" in {event["name"] for event in events}
    state = torch.load(tmp_path / "checkpoints" / "final.pt")
    assert all(torch.equal(state[n], v) for n, v in trainer.pipeline.state_dict().items())


def test_the_summary_has_predicted_and_measured_bubble(tmp_path):
    """1f1b on two ranks with four microbatches: 12 of 15 units of time are work."""
    sink = run(make_trainer(eval_num_batches=2), tmp_path)
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert summary["bubble_fraction_predicted"] == pytest.approx(0.2)
    assert 0.0 < summary["bubble_fraction_measured"] < 1.0
    assert summary["bubble_source"] == "replayed"
    assert summary["steps"] == 4
    assert summary["final_loss"] == sink.rows[-1]["train/loss"]
    assert summary["best_val_loss"] == sink.rows[-1]["val/loss"]


def test_sinks_are_told_of_the_plan(tmp_path):
    sink = run(make_trainer(), tmp_path)
    assert sink.run is not None
    plan = sink.run.plan
    assert plan is not None
    assert (plan.schedule, plan.ranks, plan.num_microbatches, plan.batch_size) == ("1f1b", 2, 4, 8)
    assert plan.peak_in_flight == (2, 1)
    assert [stage.num_parameters for stage in plan.stages] == [32, 81]
    assert plan.state_bytes == (2 * 4 * 32, 2 * 4 * 81)
    assert plan.data == "a plane"


def test_a_language_model_writes_a_sample_at_the_end(tmp_path):
    trainer = make_trainer(
        [*letter_modules()], AlphabetData(), loss=LetterLoss(), lr=5.0, num_steps=60
    )
    sink = run(trainer, tmp_path, sample=SampleSettings(num_tokens=4, prompt_tokens=2))
    assert sink.texts == {"prompt": "ab", "sample": "cdef"}


class LetterLoss(nn.Module):
    def forward(self, logits, letters):
        return nn.functional.cross_entropy(logits.flatten(0, 1), letters.flatten())


def test_nothing_is_saved_where_nobody_wants_it(tmp_path):
    run(make_trainer(measure_every=None), tmp_path, save_final=False)
    assert not (tmp_path / "checkpoints").exists()
    assert not list(tmp_path.glob("timeline.*"))


def test_the_last_measured_step_is_drawn_beside_the_predicted_one(tmp_path):
    run(make_trainer(), tmp_path)
    page = (tmp_path / "timeline.html").read_text()
    assert "1f1b, step 4, predicted and measured" in page
    assert page.count('data-action="1BW3"') == 2
    events = json.loads((tmp_path / "timeline.json").read_text())["traceEvents"]
    names = [event["args"]["name"] for event in events if event["name"] == "process_name"]
    assert names == ["predicted", "measured, step 4"]


class Raises(nn.Module):
    """Passes inputs on and acts at its tenth microbatch: the third step."""

    def __init__(self, act) -> None:
        super().__init__()
        self.calls, self.act = 0, act

    def forward(self, inputs):
        self.calls += 1
        if self.calls == 10:
            self.act()
        return inputs


def test_sigterm_saves_the_model_of_the_last_whole_step(tmp_path):
    act = Raises(lambda: signal.raise_signal(signal.SIGTERM))
    trainer = make_trainer([nn.Linear(3, 1), act])

    def work(ranks):
        trainer.hold = ranks.hold
        return run(trainer, tmp_path)

    with pytest.raises(Terminated):
        LocalEngine("cpu").run(work, num_ranks=2, seed=0)
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert (summary["status"], summary["exit_code"], summary["steps"]) == ("interrupted", 143, 2)
    assert len((tmp_path / "metrics.jsonl").read_text().splitlines()) == 2
    undisturbed = make_trainer([nn.Linear(3, 1), nn.Identity()])
    state = torch.load(tmp_path / "checkpoints" / "final.pt")
    assert state.keys() == undisturbed.pipeline.state_dict().keys()


def test_a_failure_leaves_a_summary_and_no_model(tmp_path):
    def fail() -> None:
        raise ValueError("broken")

    with pytest.raises(Exception, match="broken"):
        run(make_trainer([nn.Linear(3, 1), Raises(fail)], trace=True), tmp_path)
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert summary["status"] == "failed"
    assert "broken" in summary["error"]
    assert summary["steps"] == 2
    assert not (tmp_path / "checkpoints").exists()
    assert (tmp_path / "timeline.json").exists()


def test_an_evaluation_reports_its_loss(tmp_path):
    trainer, sink = make_trainer(), MemorySink()
    settings = EvaluationSettings(batch_size=8, num_batches=2, launch_dir=tmp_path)
    with RunRecorder(RunInfo(run_dir=tmp_path, job_type="eval"), [sink]) as recorder:
        value = evaluate_model(
            trainer.pipeline, LinearData(), recorder, loss=nn.MSELoss(), settings=settings
        )
    assert sink.rows == [{"step": 0, "val/loss": value}]
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert (summary["mode"], summary["best_val_loss"], summary["steps"]) == ("eval", value, 0)
    assert (tmp_path / "git.json").exists()


def test_a_run_after_another_equals_the_same_run_alone(tmp_path):
    def losses(name: str) -> list[float]:
        def work(ranks):
            folder = tmp_path / name
            folder.mkdir()
            modules = [nn.Linear(3, 8), nn.Dropout(0.5), nn.Linear(8, 1)]
            rows = run(make_trainer(modules), folder).rows
            torch.set_default_dtype(torch.float64)
            torch.rand(5)
            return rows

        rows = LocalEngine("cpu").run(work, num_ranks=2, seed=3)
        return [row["train/loss"] for row in rows]

    assert losses("alone") == losses("after another")
    assert torch.get_default_dtype() == torch.float32
