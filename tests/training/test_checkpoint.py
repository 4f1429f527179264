"""The model in one file, under the unsplit model's names."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from ppframe.errors import CheckpointError
from ppframe.runtime import Pipeline
from ppframe.training.checkpoint import load_model, save_model


def make_modules(seed: int) -> list[nn.Module]:
    """Four modules with buffers, of which the first and the last share a weight."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        modules = [nn.Linear(3, 3), nn.BatchNorm1d(3), nn.Linear(3, 3), nn.Linear(3, 3)]
    modules[3].weight = modules[0].weight
    return modules


def make_pipeline(modules: list[nn.Module], ranks: int) -> Pipeline:
    return Pipeline(
        modules,
        loss=nn.MSELoss(),
        schedule="1f1b",
        ranks=ranks,
        chunks_per_rank=1,
        microbatch_size=2,
    )


def test_the_file_fits_the_unsplit_model(tmp_path):
    path = tmp_path / "checkpoints" / "final.pt"
    modules = make_modules(0)
    save_model(make_pipeline(modules, 2), path)
    plain = nn.Sequential(*make_modules(1))
    state = torch.load(path)
    plain.load_state_dict(state)
    expected = nn.Sequential(*modules).state_dict()
    assert list(state) == list(expected)
    assert all(torch.equal(state[name], expected[name]) for name in expected)
    assert state["0.weight"].data_ptr() == state["3.weight"].data_ptr()
    assert [entry.name for entry in path.parent.iterdir()] == ["final.pt"]


@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_any_number_of_ranks_reads_it(tmp_path, ranks):
    modules = make_modules(0)
    save_model(make_pipeline(modules, 2), tmp_path / "final.pt")
    others = make_modules(1)
    load_model(make_pipeline(others, ranks), tmp_path / "final.pt")
    inputs = torch.ones(4, 3)
    assert torch.equal(nn.Sequential(*others)(inputs), nn.Sequential(*modules)(inputs))


def test_a_path_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "checkpoints").write_text("a file, no folder")
    path = tmp_path / "checkpoints" / "final.pt"
    with pytest.raises(CheckpointError, match="must be writable") as caught:
        save_model(make_pipeline(make_modules(0), 1), path)
    assert caught.value.path == str(path)


def write_nonsense(path):
    path.write_bytes(b"nonsense")


def write_other_names(path):
    torch.save({"other": torch.zeros(1)}, path)


def write_damaged(path):
    torch.save({"0.weight": torch.zeros(1)}, path)
    path.write_bytes(path.read_bytes()[:200])


def write_whole_numbers(path):
    state = make_pipeline(make_modules(0), 1).state_dict()
    torch.save({name: value.long() for name, value in state.items()}, path)


def write_list(path):
    torch.save([torch.zeros(1)], path)


@pytest.mark.parametrize(
    ("prepare", "phrase"),
    [
        (lambda path: None, "must be a file, but there is none"),
        (lambda path: path.symlink_to("/dev/null"), "must be a file, but is none"),
        (write_nonsense, "reads safely, but it begins with b'nonsense', as no file"),
        (write_damaged, "reads safely, but reading it raised RuntimeError: "),
        (write_whole_numbers, r"is torch\.int64 and must be torch\.float32"),
        (write_list, "holds a list"),
        (write_other_names, "other"),
    ],
)
def test_a_file_that_is_no_checkpoint_of_this_model_is_refused(tmp_path, prepare, phrase):
    path = tmp_path / "final.pt"
    prepare(path)
    pipeline = make_pipeline(make_modules(0), 1)
    before = {name: value.clone() for name, value in pipeline.state_dict().items()}
    with pytest.raises(CheckpointError, match=phrase):
        load_model(pipeline, path)
    assert all(torch.equal(before[name], value) for name, value in pipeline.state_dict().items())


def test_another_precision_is_converted_and_told(tmp_path, caplog):
    saved = make_pipeline(make_modules(1), 1).state_dict()
    half = {name: v.half() if v.is_floating_point() else v for name, v in saved.items()}
    torch.save(half, tmp_path / "half.pt")
    pipeline = make_pipeline(make_modules(0), 1)
    load_model(pipeline, tmp_path / "half.pt")
    assert "are converted, the first as" in caplog.text
    assert "torch.float16 and must be torch.float32" in caplog.text
    loaded = pipeline.state_dict()
    assert all(torch.equal(loaded[name], half[name].to(loaded[name])) for name in half)
