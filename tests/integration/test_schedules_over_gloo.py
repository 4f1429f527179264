"""Every schedule's messages between two real processes, without its computations."""

import pytest
import torch.distributed as dist

from ppframe.schedule import ActionKind, Exchange, Shape, Transfer, lower
from ppframe.transport import Direction, DistributedTransport, Message, RecordingTransport
from tests.integration.pair import run_pair
from tests.strategies import GENERATORS, build, taken_near
from tests.transport.values import assert_same, numbers

pytestmark = pytest.mark.distributed

SENDS = (ActionKind.SEND_F, ActionKind.SEND_B)


def transfers_of(actions):
    """Sends and receives of a rank in order; of an exchange first the send."""
    for action in actions:
        if isinstance(action, Exchange):
            yield from (action.send, action.receive)
        elif isinstance(action, Transfer):
            yield action


def message_of(transfer, lowered):
    ends = transfer, transfer.other_end
    send, receive = ends if transfer.kind in SENDS else ends[::-1]
    forward = send.kind is ActionKind.SEND_F
    return Message(
        Direction.FORWARD if forward else Direction.BACKWARD,
        send.stage,
        receive.stage,
        send.microbatch,
        *(lowered.rank_of(end.stage, end.microbatch) for end in (send, receive)),
    )


def value_of(message):
    """Something that differs from message to message, and in size from boundary to boundary."""
    return numbers(message.sending_stage + 1, 3, start=message.microbatch)


def walk(transport, lowered, rank):
    transfers = list(transfers_of(lowered.actions[rank]))
    messages = [message_of(transfer, lowered) for transfer in transfers]
    recorded = RecordingTransport(transport)
    recorded.expect([message for message in messages if message.receiver == rank])
    for message in messages:
        if message.sender == rank:
            recorded.send(message, value_of(message))
        else:
            assert_same(recorded.receive(message), value_of(message))
    recorded.finish()
    assert recorded.num_pending() == 0
    ends = [str(message).split(" → ") for message in recorded.sent]
    assert [send for send, _ in ends] == [str(t) for t in transfers if t.kind in SENDS]
    ends = [str(message).split(" → ") for message in recorded.received]
    assert [receive for _, receive in ends] == [str(t) for t in transfers if t.kind not in SENDS]


def every_schedule(rank, folder):
    transport = DistributedTransport(rank, group=dist.group.WORLD, timeout_s=30)
    for name in GENERATORS:
        schedule = build(name, taken_near(name, Shape(2, 2, 6)))
        if schedule.ranks != 2:
            continue
        for group in (False, True):
            walk(transport, lower(schedule, group=group), rank)


def test_the_messages_of_every_schedule_arrive(tmp_path):
    run_pair(every_schedule, tmp_path)
