"""The transport over gloo between two real processes. One start serves many cases."""

import json
import os
import random
import signal
import time
from contextlib import contextmanager

import pytest
import torch
import torch.distributed as dist

from ppframe.errors import InternalError, TransportError
from ppframe.transport import Direction, DistributedTransport, Group, Message
from tests.integration.pair import run_pair
from tests.transport.values import VALUES, assert_same, numbers

pytestmark = pytest.mark.distributed

MANY = 500


def forward(microbatch, stage=0):
    return Message(Direction.FORWARD, stage, stage + 1, microbatch, 0, 1)


def backward(microbatch, stage=1):
    return Message(Direction.BACKWARD, stage, stage - 1, microbatch, 1, 0)


def step(transport, rank, values, *, interleaved=False):
    """Each side sends these values to the other; each compares with its own."""
    ways = [forward(n) for n in range(len(values))], [backward(n) for n in range(len(values))]
    sent, expected = ways[rank], ways[1 - rank]
    transport.expect(expected)
    for n, value in enumerate(values):
        transport.send(sent[n], value)
        if interleaved:
            assert_same(transport.receive(expected[n]), value)
    if not interleaved:
        for message, value in zip(expected, values, strict=True):
            assert_same(transport.receive(message), value)
    transport.finish()
    assert transport.num_pending() == 0


# Cases


def every_value_travels(transport, rank):
    values = [value() for value in VALUES.values()]
    step(transport, rank, values)
    step(transport, rank, values, interleaved=True)
    for value in values:
        step(transport, rank, [value] * 6)


def shapes_change_within_and_between_steps(transport, rank):
    for size in (8, 8, 8000, 3, 8):
        step(transport, rank, [*[numbers(size, 2)] * 6, numbers(size // 2, 2)])
    step(transport, rank, [numbers(n % 23, start=n) for n in range(60)], interleaved=True)


def many_messages_are_under_way_at_once(transport, rank):
    for _ in range(2):
        step(transport, rank, [numbers(64, start=n) for n in range(MANY)])


def large_messages_cross(transport, rank):
    for _ in range(2):
        step(transport, rank, [numbers(1 << 20)] * 6)


def boundaries_share_a_channel(transport, rank):
    """As with several stages a rank: their messages alternate, with a spec of each boundary."""
    messages = [forward(n, stage) for n in range(8) for stage in (0, 2)]
    for _ in range(2):
        if rank == 1:
            transport.expect(messages)
        for message in messages:
            value = numbers(4 + 60 * message.sending_stage, start=message.microbatch)
            if rank == 0:
                transport.send(message, value)
            else:
                assert_same(transport.receive(message), value)
        transport.finish()


def directions_do_not_wait_for_each_other(transport, rank):
    """Rank 0 asks first for what rank 1 sends last, behind messages that rank 0 has not sent."""
    f, b = [forward(n) for n in range(6)], [backward(n) for n in range(6)]
    transport.expect((f, b)[1 - rank])
    if rank == 1:
        for n in range(6):
            transport.send(b[n], numbers(1 << 16, start=n))
    for n in range(6):
        if rank == 0:
            assert_same(transport.receive(b[n]), numbers(1 << 16, start=n))
            transport.send(f[n], numbers(3, start=n))
        else:
            assert_same(transport.receive(f[n]), numbers(3, start=n))
    transport.finish()


def ranks_are_ready_at_random_times(transport, rank):
    pauses = random.Random(rank)
    messages = [forward(n) for n in range(30)], [backward(n) for n in range(30)]
    for _ in range(2):
        transport.expect(messages[1 - rank])
        for n in range(30):
            time.sleep(pauses.random() * 0.004)
            value = numbers(1 + n % 3, 5, start=n)
            transport.send(messages[rank][n], value)
            time.sleep(pauses.random() * 0.004)
            assert_same(transport.receive(messages[1 - rank][n]), value)
        transport.finish()


def nothing_need_be_expected(transport, rank):
    for n in range(6):
        if rank == 0:
            transport.send(forward(n), numbers(n))
        else:
            assert_same(transport.receive(forward(n)), numbers(n))
    transport.finish()


def sends_are_let_go_during_a_step(transport, rank):
    """The sender keeps few of many, while the receiver keeps pace."""
    messages = [forward(n) for n in range(200)]
    if rank == 1:
        transport.expect(messages)
    most = 0
    for n, message in enumerate(messages):
        if rank == 0:
            transport.send(message, numbers(100))
            most = max(most, transport.num_pending())
            transport.receive(backward(n))
        else:
            transport.receive(message)
            transport.send(backward(n), None)
    assert most < 50
    transport.finish()


def what_cannot_travel_is_told_and_harms_nothing(transport, rank):
    if rank == 0:
        with pytest.raises(TransportError, match=r"dense tensors .* stage 0 returns") as error:
            transport.send(forward(7), torch.ones(2).to_sparse())
        assert error.value.peer == 1
        assert error.value.key == str(forward(7))
    step(transport, rank, [numbers(2)] * 2)


def steps_must_be_received_to_the_end(transport, rank):
    """Last, as it leaves the transport with a message too many expected."""
    if rank == 1:
        transport.expect([forward(0)])
        with pytest.raises(InternalError, match="received before the next"):
            transport.expect([forward(1)])
    dist.barrier()
    if rank == 0:
        transport.send(forward(0), 1)
    else:
        assert transport.receive(forward(0)) == 1
    transport.finish()


CASES = (
    every_value_travels,
    shapes_change_within_and_between_steps,
    many_messages_are_under_way_at_once,
    large_messages_cross,
    boundaries_share_a_channel,
    directions_do_not_wait_for_each_other,
    ranks_are_ready_at_random_times,
    nothing_need_be_expected,
    sends_are_let_go_during_a_step,
    what_cannot_travel_is_told_and_harms_nothing,
    steps_must_be_received_to_the_end,
)


def in_another_order(rank, folder):
    """The group's ranks are the pipeline's: here they are those of the job turned round."""
    peers = Group.of((1, 0), timeout_s=30)
    assert peers is not None
    assert (peers.rank, peers.size) == (1 - rank, 2)
    one = torch.tensor([peers.rank + 1.5], dtype=torch.float64)
    assert peers.sum(one).tolist() == [4.0]
    assert one.tolist() == [peers.rank + 1.5]
    value = {"loss": torch.ones(2), "name": f"rank {peers.rank}"}
    assert peers.broadcast(value, 1)["name"] == "rank 1"
    assert peers.broadcast(value, 0)["loss"].tolist() == [1, 1]
    assert peers.gather(peers.rank) == ([0, 1] if peers.rank == 0 else None)
    peers.barrier()


def all_cases(rank, folder):
    in_another_order(rank, folder)
    for ahead in (1, 4):
        transport = DistributedTransport(rank, group=dist.group.WORLD, ahead=ahead, timeout_s=30)
        for case in CASES:
            case(transport, rank)
        dist.barrier()


def test_messages_between_two_processes(tmp_path):
    run_pair(all_cases, tmp_path)


# Failures


@contextmanager
def failure(into):
    """A transport's failure in the block, with how long it took."""
    start = time.monotonic()
    with pytest.raises(TransportError) as error:
        yield
    into.append([time.monotonic() - start, error.value.peer, error.value.key, str(error.value)])


def failures(rank, folder):
    """Over one group rank 1 hangs, over the other it is killed; rank 0 writes down what it sees."""
    hung, cut, together = (dist.new_group([0, 1]) for _ in range(3))
    seen = []
    transport = DistributedTransport(rank, group=hung, timeout_s=0.3)
    other = DistributedTransport(rank, group=cut, timeout_s=30)
    step(other, rank, [numbers(3)] * 6)
    step(transport, rank, [numbers(3)] * 6)
    dist.barrier()
    if rank == 1:
        (folder / "hangs").touch()
        while not (folder / "seen").exists():
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGKILL)
    transport.expect([backward(0)])
    with failure(seen):
        transport.receive(backward(0))
    transport.release()
    with failure(seen):
        transport.send(forward(0), numbers(3))
    other.expect([backward(1)])
    for n in range(20):
        other.send(forward(n), numbers(3))
    (folder / "seen").touch()
    with failure(seen):
        other.receive(backward(1))
    with failure(seen):
        other.finish()
    with failure(seen):
        Group(together).barrier()
    (folder / "failures.json").write_text(json.dumps(seen))
    os._exit(0)  # the default group has lost a member: it can't be left in order


def test_a_peer_that_hangs_or_is_killed_is_named(tmp_path):
    run_pair(failures, tmp_path, killed=1)
    seen = json.loads((tmp_path / "failures.json").read_text())
    hang, released, killed, unsent, group = seen
    assert 0.3 <= hang[0] < 2
    assert hang[1:3] == [1, str(backward(0))]
    assert "within 0.3 s, but rank 1 did not answer" in hang[3]
    assert "must not be used after a failure" in released[3]
    assert killed[0] < 2
    assert killed[1:3] == [1, str(backward(1))]
    assert "connection to rank 1 is closed" in killed[3]
    assert unsent[0] < 2
    assert unsent[1] == 1
    assert unsent[2].startswith("0SEND_F")
    assert group[0] < 2
    assert group[1:3] == [1, "barrier"]
