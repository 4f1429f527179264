"""What a pipeline promises beside equal numbers."""

import copy
import gc
import re
import weakref

import pytest
import torch
from torch import nn

from ppframe import Pipeline
from ppframe.errors import CheckpointError, ConfigError, PartitionError, PPFrameError, StageError
from ppframe.schedule import Compute
from tests.runtime.plain import plain_step, run_modules, small_chain


def make(modules=None, **options):
    options = {"schedule": "dora-dfs", "ranks": 2, "microbatch_size": 2, **options}
    return Pipeline(modules or small_chain(4), loss=nn.MSELoss(), **options)


def batch(size=6, width=3):
    return torch.randn(size, width).double(), torch.randn(size, width).double()


def test_evaluate_gives_shape_and_loss_of_each_batch():
    modules = small_chain(4)
    with make(modules) as pipe:
        for size in (8, 6, 1, 7):
            x, y = batch(size)
            result = pipe.evaluate(x, y)
            torch.testing.assert_close(result.loss, plain_step(modules, x, y, nn.MSELoss()).loss)
            assert result.microbatch_losses.shape == ((size + 1) // 2,)
            output = pipe.forward(x)
            torch.testing.assert_close(output, run_modules(modules, x).detach())
        assert all(p.grad is None for p in pipe.parameters())


def test_evaluation_runs_in_eval_mode_and_gives_each_module_its_own_flag_back():
    modules = [nn.Linear(3, 3), nn.BatchNorm1d(3), nn.Dropout(0.9), nn.BatchNorm1d(3)]
    modules[1].eval()
    with make(modules, ranks=4, schedule="1f1b") as pipe:
        before = copy.deepcopy(pipe.state_dict())
        x = torch.randn(6, 3)
        pipe.evaluate(x, x)
        pipe.forward(x)
        flags = [module.training for module in modules]
    assert flags == [True, False, True, True]
    for name, value in nn.Sequential(*modules).state_dict().items():
        assert torch.equal(value, before[name])


class Counting(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 3).double()
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        return self.layer(x)


def test_every_pass_runs_each_stage_once_for_each_microbatch():
    modules = [Counting() for _ in range(4)]
    with make(modules) as pipe:
        x, y = batch()
        for run in (pipe.step, pipe.evaluate, pipe.step):
            for module in modules:
                module.calls = 0
            run(x, y)
            assert [module.calls for module in modules] == [3] * 4


def live_tensors():
    gc.collect()
    return sum(issubclass(type(thing), torch.Tensor) for thing in gc.get_objects())


def test_nothing_of_a_step_survives_it():
    with make() as pipe:
        x, y = batch()
        pipe.step(x, y)
        pipe.evaluate(x, y)
        before = live_tensors()
        for _ in range(20):
            pipe.step(x, y)
            pipe.evaluate(x, y)
            pipe.step(x, y)
        assert live_tensors() == before


class Watched(nn.Module):
    """Counts how many of its activations are alive."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 3).double()
        self.alive = weakref.WeakSet()
        self.peak = 0

    def forward(self, x):
        class Hold(torch.autograd.Function):
            @staticmethod
            def forward(ctx, value):
                ctx.token = type("Token", (), {})()
                self.alive.add(ctx.token)
                self.peak = max(self.peak, len(self.alive))
                return value.clone()

            @staticmethod
            def backward(ctx, gradient):
                return gradient

        return Hold.apply(self.layer(x))


@pytest.mark.parametrize(("name", "peaks"), [("gpipe", [8, 8, 8, 8]), ("1f1b", [4, 3, 2, 1])])
def test_activations_alive_are_those_of_the_schedule(name, peaks):
    modules = [Watched() for _ in range(4)]
    with make(modules, schedule=name, ranks=4) as pipe:
        x, y = batch(16)
        pipe.step(x, y)
    gc.collect()
    assert [module.peak for module in modules] == peaks
    assert [len(module.alive) for module in modules] == [0] * 4


class Fails(nn.Module):
    def __init__(self, microbatch, in_backward=False):
        super().__init__()
        self.layer = nn.Linear(3, 3).double()
        self.microbatch, self.in_backward, self.calls = microbatch, in_backward, 0

    def forward(self, x):
        y = self.layer(x)
        if self.calls == self.microbatch:
            if not self.in_backward:
                raise ValueError("no more")
            y.register_hook(self.fail)
        self.calls += 1
        return y

    def fail(self, gradient):
        raise ValueError("no way back")


@pytest.mark.parametrize(("in_backward", "action"), [(False, "1F2"), (True, "1BW2")])
def test_an_error_names_rank_and_action_and_keeps_its_cause(in_backward, action):
    modules = small_chain(4)
    modules[1] = Fails(2, in_backward)
    x, y = batch()
    with make(modules, schedule="1f1b", ranks=4) as pipe:
        with pytest.raises(StageError, match="no ") as error:
            pipe.step(x, y)
        assert (error.value.rank, error.value.stage, error.value.action) == (1, 1, action)
        assert isinstance(error.value.__cause__, ValueError)
        names = [entry.name for entry in error.traceback] + [
            str(error.value.__cause__.__traceback__)
        ]
        assert names
        modules[1].microbatch = -1
        for parameter in pipe.parameters():
            parameter.grad = None
        result = pipe.step(x, y)
        torch.testing.assert_close(result.loss, plain_step(modules, x, y, nn.MSELoss()).loss)


def test_keyboard_interrupt_passes_and_leaves_nothing():
    class Interrupts(nn.Module):
        def forward(self, x):
            raise KeyboardInterrupt

    modules = small_chain(4)
    modules[2] = Interrupts()
    with make(modules) as pipe, pytest.raises(KeyboardInterrupt):
        pipe.step(*batch())


def test_names_and_state_are_those_of_the_unsplit_model():
    modules = [nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3)) for _ in range(6)]
    model = nn.Sequential(*modules)
    with make(modules, chunks_per_rank=2) as pipe:
        assert [n for n, _ in pipe.named_parameters()] == [n for n, _ in model.named_parameters()]
        assert list(pipe.state_dict()) == list(model.state_dict())
        other = {name: torch.full_like(value, 2) for name, value in model.state_dict().items()}
        pipe.load_state_dict(other)
        assert all(torch.equal(v, other[k]) for k, v in model.state_dict().items())
        with pytest.raises(CheckpointError, match=r"9\.weight"):
            pipe.load_state_dict({**other, "9.weight": torch.zeros(1)})
        with pytest.raises(CheckpointError, match=r"0\.0\.weight"):
            pipe.load_state_dict({k: v for k, v in other.items() if k != "0.0.weight"})


def test_stages_tell_rank_modules_and_size():
    modules = [nn.Linear(3, 3) for _ in range(5)]
    with make(modules, chunks_per_rank=2) as pipe:
        assert [stage.rank for stage in pipe.stages] == [0, 1, 0, 1]
        assert [stage.module_names for stage in pipe.stages] == [("0", "1"), ("2",), ("3",), ("4",)]
        assert [stage.num_parameters for stage in pipe.stages] == [24, 12, 12, 12]
        assert [stage.parameter_bytes for stage in pipe.stages] == [96, 48, 48, 48]
        owned = pipe.parameters_by_rank()
        assert [name for name, _ in owned[0]] == [
            "0.weight",
            "0.bias",
            "1.weight",
            "1.bias",
            "3.weight",
            "3.bias",
        ]


def test_dropout_does_not_depend_on_ranks_chunks_or_schedule():
    def losses(**layout):
        torch.manual_seed(0)
        modules = [nn.Sequential(nn.Linear(8, 8), nn.Dropout(0.5)) for _ in range(4)]
        x, y = torch.ones(6, 8), torch.zeros(6, 8)
        with Pipeline(modules, loss=nn.MSELoss(), microbatch_size=2, seed=7, **layout) as pipe:
            results = [pipe.step(x, y).loss.item() for _ in range(2)]
            return results, torch.cat([p.grad.flatten() for p in pipe.parameters()])

    expected, gradients = losses(schedule="1f1b", ranks=1, chunks_per_rank=1)
    assert expected[0] != expected[1]
    for layout in (
        {"schedule": "1f1b", "ranks": 4},
        {"schedule": "gpipe", "ranks": 2, "chunks_per_rank": 1},
        {"schedule": "dora-dfs", "ranks": 2},
    ):
        found, others = losses(**layout)
        assert found == expected
        torch.testing.assert_close(others, gradients)


def test_the_callers_random_numbers_are_not_disturbed():
    with make([nn.Sequential(nn.Linear(3, 3), nn.Dropout()).double() for _ in range(4)]) as pipe:
        torch.manual_seed(1)
        expected = torch.rand(3)
        torch.manual_seed(1)
        x, y = torch.ones(6, 3).double(), torch.ones(6, 3).double()
        pipe.step(x, y)
        pipe.evaluate(x, y)
        assert torch.equal(torch.rand(3), expected)


def test_a_recorded_step_tells_when_each_action_ran():
    with make() as pipe:
        x, y = batch()
        assert pipe.step(x, y).timeline is None
        pipe.record = True
        timeline = pipe.step(x, y).timeline
        assert pipe.step(x, y).timeline is None
        lowered = pipe.lowered(3)
        for rank in range(2):
            mine = [entry.action for entry in timeline if entry.rank == rank]
            assert mine == list(lowered.actions[rank])
    computed = [entry for entry in timeline if isinstance(entry.action, Compute)]
    assert all(0 <= entry.start_s < entry.end_s for entry in computed)


def test_a_schedule_that_runs_is_the_one_that_is_shown():
    with make(num_microbatches=3, microbatch_size=None) as pipe:
        assert pipe.schedule(3).num_microbatches == 3
        assert pipe.lowered(3).actions[0][0].stage == 0


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"microbatch_size": None}, "exactly one"),
        ({"num_microbatches": 3}, "exactly one"),
        ({"microbatch_size": 0}, "at least 1"),
        ({"ranks": 0}, "at least 1"),
        ({"ranks": 3}, "chunks_per_rank"),
        ({"schedule": "1f1b"}, "chunk"),
        ({"schedule": "dora-df"}, "dora-dfs"),
        ({"devices": ["cpu"]}, "2 ranks"),
        ({"recompute": "all"}, "`none` or `full`"),
        ({"chunks_per_rank": 3}, "at least the number of stages"),
        ({"modules": []}, "at least one module"),
    ],
)
def test_arguments_that_contradict_each_other_are_refused(options, text):
    modules = options.pop("modules", small_chain(4))
    options = {"schedule": "dora-dfs", "ranks": 2, "microbatch_size": 2, **options}
    with pytest.raises(PPFrameError, match=text):
        Pipeline(modules, loss=nn.MSELoss(), **options)


def test_unknown_keyword_arguments_and_unfit_batches_are_refused():
    with make() as pipe:
        x, y = batch()
        with pytest.raises(ConfigError, match="mask"):
            pipe.step(x, y, mask=x)
        with pytest.raises(ConfigError, match="targets"):
            pipe.step(x, y[:5])
    with pytest.raises(ConfigError, match="closed"):
        pipe.step(x, y)


def test_too_few_modules_are_refused():
    with pytest.raises(PartitionError, match=r"but is 1 \(stages 2\)"):
        make(small_chain(1), ranks=2, chunks_per_rank=1, schedule="1f1b")


def test_ranks_may_follow_from_modules_and_chunks():
    with Pipeline(small_chain(4), loss=nn.MSELoss(), microbatch_size=2) as pipe:
        assert (pipe.ranks, pipe.chunks_per_rank) == (2, 2)


def test_a_step_asks_for_gradients_itself_and_says_where_it_cannot_have_them():
    modules = small_chain(4)
    x, y = batch()
    with make(modules) as pipe:
        with torch.no_grad():
            pipe.step(x, y)
        assert all(p.grad is not None for p in pipe.parameters())
        with torch.inference_mode(), pytest.raises(ConfigError, match="inference_mode"):
            pipe.step(x, y)


# Arguments that are refused

MODULES = [nn.Linear(4, 4) for _ in range(5)]


@pytest.mark.parametrize(
    ("changes", "path", "phrase"),
    [
        ({"microbatch_size": 2.5}, "microbatch_size", "must be a whole number, but is 2.5"),
        ({"microbatch_size": True}, "microbatch_size", "must be a whole number"),
        ({"microbatch_size": 0}, "microbatch_size", "must be at least 1, but is 0"),
        ({"num_microbatches": 2}, "microbatch_size", "must be given, but both are."),
        ({"microbatch_size": None}, "microbatch_size", "must be given, but neither is."),
        ({"ranks": 2.0}, "ranks", "must be a whole number, but is 2.0"),
        ({"ranks": 0}, "ranks", "must be at least 1, but is 0"),
        ({"ranks": 2}, "chunks_per_rank", "no multiple of the ranks, but is None (5 modules, 2"),
        ({"ranks": 6}, "ranks", "must be at most the number of modules, 5"),
        ({"stages": [1, 2]}, "stages", "must be modules, but the one at 0 is 1"),
        ({"stages": nn.Linear(2, 2)}, "stages", "but is a Linear. Put it into a list"),
        ({"stages": []}, "stages", "must hold at least one module"),
    ],
)
def test_arguments_that_cannot_be_meant_are_refused(changes, path, phrase):
    given = {"stages": MODULES, "loss": nn.MSELoss(), "schedule": "1f1b", "ranks": 5}
    with pytest.raises(ConfigError, match=re.escape(phrase)) as caught:
        Pipeline(**{**given, "microbatch_size": 2, **changes})
    assert caught.value.path == path


def test_modules_are_grouped_as_the_message_says():
    with Pipeline(
        MODULES, loss=nn.MSELoss(), schedule="1f1b", ranks=2, chunks_per_rank=1, microbatch_size=2
    ) as pipe:
        assert pipe.num_stages == 2
        assert sum(len(stage.module_names) for stage in pipe.stages) == 5
