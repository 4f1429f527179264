"""Both sides of a channel over a wire in memory that is as strict as gloo."""

from collections import deque

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from ppframe.errors import TransportError
from ppframe.transport.base import Direction, Message
from ppframe.transport.channel import ReceivingSide, SendingSide
from tests.transport.values import VALUES, assert_same, numbers


class MemoryWire:
    """Two lanes of bytes. A message that is larger than its buffer is an error."""

    def __init__(self):
        self.lanes = {False: deque(), True: deque()}
        self.num_sent = 0

    def send(self, buffer, *, side):
        assert buffer.is_contiguous()
        assert not buffer.requires_grad
        self.lanes[side].append(buffer.reshape(-1).view(torch.uint8).clone())
        self.num_sent += 1

    def receive(self, buffer, *, side):
        return MemoryReceive(self.lanes[side], buffer)


class MemoryReceive:
    def __init__(self, lane, buffer):
        self.lane = lane
        self.buffer = buffer.view(torch.uint8)

    def wait(self):
        arrived = self.lane.popleft()
        assert len(arrived) <= len(self.buffer)
        self.buffer[: len(arrived)] = arrived


class Channel:
    """Sends and receives on one channel, and says how many sends each message took."""

    def __init__(self, ahead=2, device="cpu"):
        self.wire = MemoryWire()
        self.sending = SendingSide(self.wire, ahead)
        self.receiving = ReceivingSide(self.wire, ahead, torch.device(device))

    def send(self, message, value):
        before = self.wire.num_sent
        self.sending.send(message, value, lambda work, buffer: None)
        return self.wire.num_sent - before

    def step(self, values):
        """A step with these values, all sent before the first is received."""
        messages = [message(n) for n in range(len(values))]
        self.receiving.announce(messages)
        counts = [self.send(m, v) for m, v in zip(messages, values, strict=True)]
        for m, value in zip(messages, values, strict=True):
            assert_same(self.receiving.receive(m), value)
        return counts


def message(microbatch, stage=0):
    return Message(Direction.FORWARD, stage, stage + 1, microbatch, 0, 1)


def test_a_new_boundary_is_agreed_on_once_and_then_takes_one_message():
    channel = Channel(ahead=2)
    batch = [numbers(4, 3)] * 5
    assert channel.step(batch) == [3, 2, 1, 1, 1]
    assert channel.step(batch) == [1] * 5


def test_the_uneven_last_microbatch_takes_one_message_once_it_is_known():
    channel = Channel(ahead=2)
    batch = [*[numbers(40, 3)] * 4, numbers(10, 3)]
    channel.step(batch)
    assert channel.step(batch) == [1] * 5
    assert channel.step(batch) == [1] * 5


def test_a_change_is_agreed_on_once():
    channel = Channel(ahead=1)
    wide, narrow, wider = numbers(40), numbers(8), numbers(100)
    channel.step([wide] * 3)
    assert channel.step([narrow] * 3) == [2, 1, 1]
    assert channel.step([wide] * 3) == [1, 1, 1]
    assert channel.step([wider] * 3) == [3, 1, 1]
    assert channel.step([narrow, wider, wide]) == [1, 1, 1]


@pytest.mark.parametrize("name", VALUES)
def test_any_value_travels_new_and_known(name):
    channel = Channel()
    value = VALUES[name]()
    channel.step([value] * 4)
    assert channel.step([value] * 2) == [1, 1]


def test_what_was_sent_before_is_sent_from_where_it_lies():
    kept = []
    channel = Channel()
    tensor = numbers(5)
    channel.step([tensor] * 3)
    channel.sending.send(message(0), tensor, lambda work, buffer: kept.append(buffer))
    assert kept[0].data_ptr() == tensor.data_ptr()


SPECS = st.sampled_from(
    ["torch.float32", "large", "gradients", "no gradient", "nothing", "nested", "0-dim", "expanded"]
)


@settings(max_examples=60, deadline=None)
@given(
    ahead=st.integers(1, 4),
    steps=st.lists(st.lists(st.tuples(SPECS, st.integers(0, 1)), max_size=6), max_size=6),
    paces=st.lists(st.integers(1, 6), min_size=1),
)
def test_any_sequence_of_values_arrives_at_any_pace(ahead, steps, paces):
    channel = Channel(ahead)
    for step in steps:
        messages = [message(n, stage) for n, (_, stage) in enumerate(step)]
        values = [VALUES[name]() for name, _ in step]
        channel.receiving.announce(messages)
        num_sent = 0
        for n, m in enumerate(messages):
            lead = paces[n % len(paces)]
            while num_sent < min(n + lead, len(step)):
                channel.send(messages[num_sent], values[num_sent])
                num_sent += 1
            assert_same(channel.receiving.receive(m), values[n])


def test_more_kinds_than_are_remembered():
    channel = Channel()
    kinds = [numbers(n) for n in range(40)]
    for _ in range(2):
        channel.step(kinds)


def test_receiving_what_was_not_announced_next_is_an_error():
    channel = Channel()
    channel.receiving.announce([message(0), message(1)])
    channel.send(message(0), 1)
    with pytest.raises(TransportError, match="must be the next of its channel, but 0SEND_F0"):
        channel.receiving.receive(message(1))
    assert channel.receiving.num_announced == 2


def test_a_value_that_cannot_travel_leaves_the_channel_as_it_was():
    channel = Channel()
    channel.step([numbers(3)] * 3)
    with pytest.raises(TypeError, match="dense"):
        channel.send(message(0), torch.ones(2).to_sparse())
    assert channel.step([numbers(3)] * 3) == [1, 1, 1]
