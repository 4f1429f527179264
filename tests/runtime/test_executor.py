"""What is executed is the lowered schedule: its messages, its order, its grouped exchanges."""

from collections import Counter
from functools import partial

import pytest
import torch
from torch import nn

from ppframe import Pipeline
from ppframe.errors import StageError
from ppframe.runtime.head import LossHead
from ppframe.runtime.layout import make_layout
from ppframe.runtime.walk import Batch, LocalRanks
from ppframe.schedule import (
    Compute,
    Exchange,
    Overlap,
    Transfer,
    build_schedule,
    lower,
    nearest_microbatches,
    verify,
)
from ppframe.stage import BatchLoss, Stage
from ppframe.transport import LocalTransport, RecordingTransport
from tests.runtime.plain import (
    assert_same_answer,
    assert_same_gradients,
    gradients_of,
    pipeline_step,
    plain_step,
    small_chain,
)

NAMES = (
    "gpipe",
    "1f1b",
    "interleaved-1f1b",
    "looped-bfs",
    "dora-dfs",
    "dora",
    "chimera",
    "dualpipe",
)


def run(modules, lowered, x, y, num_microbatches):
    """One step on a recording transport; gives the transport."""
    transport = RecordingTransport(LocalTransport())
    loss = BatchLoss(nn.MSELoss())
    head = LossHead(loss)
    chunks = len(modules) // lowered.ranks
    layout = make_layout(
        modules, lowered.name, ranks=lowered.ranks, chunks_per_rank=chunks, partition=None
    )
    devices = (torch.device("cpu"),) * lowered.ranks
    make_stage = partial(Stage, seed=0)
    ranks = LocalRanks(
        modules, layout, devices, make_stage=make_stage, head=head, transport=transport
    )
    sizes = (2,) * num_microbatches
    targets = list(y.split(2))
    weights = loss.weights(targets, sizes)
    head.begin_step(targets, weights)
    batch = Batch(sizes, list(x.split(2)), [{}] * num_microbatches, lowered.chains)
    with ranks.stepping(batch, 0, weights.auxiliary):
        ranks.run(ranks.bind(lowered, False), record=False)
    return transport


def transfers(lowered):
    for row in lowered.actions:
        for action in row:
            if isinstance(action, Transfer):
                yield action
            elif isinstance(action, Exchange):
                yield action.send
                yield action.receive


@pytest.mark.parametrize("group", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_messages_are_those_of_the_lowered_schedule(name, group):
    microbatches = nearest_microbatches(name, 4, 6)
    schedule = build_schedule(name, 4, microbatches)
    lowered = lower(schedule, group=group)
    verify(lowered)
    modules = small_chain(schedule.num_stages)
    x = torch.randn(2 * microbatches, 3).double()
    expected = plain_step(modules, x, x.flip(0), nn.MSELoss())
    transport = run(modules, lowered, x, x.flip(0), microbatches)
    assert_same_gradients(gradients_of(modules), expected.gradients)
    planned = Counter(str(action) for action in transfers(lowered))
    sent = Counter(str(message).split(" → ")[0] for message in transport.sent)
    received = Counter(str(message).split(" → ")[1] for message in transport.received)
    assert sent + received == planned
    for message in transport.sent:
        ends = message.sending_stage, message.receiving_stage
        ranks = [schedule.placement[stage] for stage in ends]
        if schedule.chain(message.microbatch):
            ranks = [3 - rank for rank in ranks]
        assert [message.sender, message.receiver] == ranks
    assert transport.num_pending() == 0


def test_grouping_makes_exchanges_where_neighbours_cross():
    lowered = lower(build_schedule("1f1b", ranks=4, microbatches=8), group=True)
    kinds = Counter(type(action).__name__ for row in lowered.actions for action in row)
    assert kinds["Exchange"] > 0


def test_one_rank_sends_nothing():
    schedule = build_schedule("dora-dfs", ranks=1, microbatches=4, chunks_per_rank=3)
    x = torch.randn(8, 3).double()
    transport = run(small_chain(3), lower(schedule), x, x, 4)
    assert transport.sent == []


def test_overlapped_pairs_run_as_the_caller_likes():
    pairs = []

    def backwards_first(first, second):
        pairs.append((first, second))
        second()
        first()

    modules = small_chain(4)
    x, y = torch.randn(8, 3).double(), torch.randn(8, 3).double()
    options = {"schedule": "dualpipe-v", "ranks": 2, "microbatch_size": 1}
    actual = pipeline_step(modules, x, y, nn.MSELoss(), run_pair=backwards_first, **options)
    assert_same_answer(actual, plain_step(modules, x, y, nn.MSELoss()))
    schedule = build_schedule("dualpipe-v", ranks=2, microbatches=8)
    assert len(pairs) == sum(isinstance(a, Overlap) for row in schedule.actions for a in row) > 0


def test_an_error_in_a_pair_names_the_half_that_failed():
    class Fails(nn.Module):
        def forward(self, x):
            x = x.clone()
            if x.requires_grad:
                x.register_hook(self.fail)
            return x

        def fail(self, gradient):
            raise ValueError("no way back")

    schedule = build_schedule("dualpipe-v", ranks=2, microbatches=4)
    pair = next(a for row in schedule.actions for a in row if isinstance(a, Overlap))
    modules = small_chain(4)
    modules[pair.second.stage] = Fails()
    with (
        Pipeline(modules, loss=nn.MSELoss(), schedule=schedule) as pipe,
        pytest.raises(StageError) as error,
    ):
        pipe.step(torch.randn(4, 3).double(), torch.randn(4, 3).double())
    assert error.value.stage == pair.second.stage
    assert "BW" in str(error.value.action) or "B" in str(error.value.action)


def test_a_recorded_pair_is_one_action_and_lasts_as_long_as_its_halves():
    schedule = build_schedule("dualpipe-v", ranks=2, microbatches=4)
    with Pipeline(small_chain(4), loss=nn.MSELoss(), schedule=schedule) as pipe:
        pipe.record = True
        result = pipe.step(torch.randn(4, 3).double(), torch.randn(4, 3).double())
    times = [t for t in result.timeline if isinstance(t.action, Overlap)]
    wanted = [a for row in schedule.actions for a in row if isinstance(a, Overlap)]
    assert Counter(t.action for t in times) == Counter(wanted)
    shortest = min(t.end_s - t.start_s for t in result.timeline if isinstance(t.action, Compute))
    assert all(t.end_s - t.start_s > shortest for t in times)
