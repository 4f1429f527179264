"""Membership: what a process knows of a pipeline whose ranks are processes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from ppframe.transport import Peers, Transport


@final
@dataclass(frozen=True, slots=True)
class Member:
    """One process of a pipeline; it runs one rank.

    Args:
        rank: the pipeline rank.
        transport: carries messages to and from the other ranks.
        peers: what all processes of the pipeline do together.
    """

    rank: int
    transport: Transport
    peers: Peers
