"""Transports: how boundaries and gradients get from one rank to another."""

from ppframe.transport.base import Direction, Message, Transport
from ppframe.transport.distributed import DistributedTransport
from ppframe.transport.local import LocalTransport
from ppframe.transport.peers import Alone, Group, Peers
from ppframe.transport.recording import RecordingTransport

__all__ = [
    "Alone",
    "Direction",
    "DistributedTransport",
    "Group",
    "LocalTransport",
    "Message",
    "Peers",
    "RecordingTransport",
    "Transport",
]
