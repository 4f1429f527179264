"""Transports: how boundaries and gradients get from one rank to another."""

from ppframe.transport.base import Direction, Message, Transport
from ppframe.transport.local import LocalTransport
from ppframe.transport.peers import Alone, Peers
from ppframe.transport.recording import RecordingTransport

__all__ = [
    "Alone",
    "Direction",
    "LocalTransport",
    "Message",
    "Peers",
    "RecordingTransport",
    "Transport",
]
