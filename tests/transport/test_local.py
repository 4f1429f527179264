import pytest
import torch

from ppframe.errors import TransportError
from ppframe.transport import Direction, LocalTransport, Message, RecordingTransport


def message(microbatch=0, sender=0, receiver=1):
    return Message(Direction.FORWARD, 2, 3, microbatch, sender, receiver)


def test_the_very_tensor_arrives():
    transport = LocalTransport()
    value = (torch.ones(2), {"ids": torch.zeros(1, dtype=torch.int64)})
    transport.send(message(), value)
    assert transport.num_pending() == 1
    assert transport.receive(message()) is value
    assert transport.num_pending() == 0


def test_messages_are_told_apart_by_microbatch_and_direction():
    transport = LocalTransport()
    back = Message(Direction.BACKWARD, 3, 2, 0, 1, 0)
    for name, value in ((message(0), "f0"), (message(1), "f1"), (back, "b0")):
        transport.send(name, value)
    assert [transport.receive(m) for m in (back, message(1), message(0))] == ["b0", "f1", "f0"]


def test_receiving_what_nobody_sent_is_an_error_and_not_a_wait():
    with pytest.raises(TransportError, match="must be sent before") as error:
        LocalTransport().receive(message(4))
    assert error.value.peer == 0
    assert error.value.key == "2SEND_F4 → 3RECV_F4"


def test_sending_twice_is_an_error():
    transport = LocalTransport()
    transport.send(message(), 1)
    with pytest.raises(TransportError, match="received before it is sent again"):
        transport.send(message(), 2)
    transport.release()
    transport.send(message(), 3)


def test_a_move_is_told_both_ranks():
    transport = LocalTransport(lambda sender, receiver, value: (sender, receiver, value))
    transport.send(message(sender=1, receiver=2), "x")
    assert transport.receive(message(sender=1, receiver=2)) == (1, 2, "x")


def test_recording_notes_names_in_order_and_changes_nothing():
    transport = RecordingTransport(LocalTransport())
    for microbatch in (1, 0):
        transport.send(message(microbatch), microbatch)
    assert transport.num_pending() == 2
    assert transport.receive(message(0)) == 0
    assert [m.microbatch for m in transport.sent] == [1, 0]
    assert [m.microbatch for m in transport.received] == [0]
    transport.release()
    assert transport.num_pending() == 0
