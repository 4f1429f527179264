"""A rank in a process of its own: the same losses, gradients and state as all ranks in one."""

from __future__ import annotations

import copy
import queue
import threading
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from ppframe import Pipeline
from ppframe.errors import CheckpointError, ConfigError
from ppframe.runtime.member import Member
from ppframe.stage import boundary
from ppframe.transport import Message, Peers, Transport
from tests.runtime.plain import small_chain


class Wires(defaultdict):
    """A queue for each channel between the threads that stand for processes."""

    def __init__(self) -> None:
        super().__init__(queue.Queue)


class WireTransport(Transport):
    """Copies what it sends, as a wire does, and insists on what it was told to expect."""

    def __init__(self, rank: int, wires: Wires) -> None:
        self.rank, self.wires = rank, wires
        self.expected: list[Message] = []

    def expect(self, messages: Sequence[Message]) -> None:
        self.expected = list(messages)

    def send(self, message: Message, value: Any) -> None:
        assert message.sender == self.rank
        copied = boundary.map_tensors(
            lambda t: t.detach().clone().requires_grad_(t.requires_grad), value
        )
        self.wires[message.sender, message.receiver, message.direction].put((message, copied))

    def receive(self, message: Message) -> Any:
        assert message == self.expected.pop(0)
        channel = (message.sender, message.receiver, message.direction)
        sent, value = self.wires[channel].get(timeout=20)
        assert sent == message
        return value

    def finish(self) -> None:
        assert not self.expected

    def num_pending(self) -> int:
        return 0

    def release(self) -> None:
        self.expected = []


class ThreadPeers(Peers):
    """What threads do together, by a barrier and a shared table."""

    def __init__(self, rank: int, size: int, table: dict[int, Any], meeting: threading.Barrier):
        self._rank, self._size = rank, size
        self.table, self.meeting = table, meeting

    @property
    def rank(self) -> int:
        return self._rank

    @property
    def size(self) -> int:
        return self._size

    def _all(self, value: Any) -> list[Any]:
        self.table[self.rank] = value
        self.meeting.wait(20)
        values = [self.table[rank] for rank in range(self.size)]
        self.meeting.wait(20)
        return values

    def sum(self, tensor: Tensor) -> Tensor:
        return torch.stack(self._all(tensor)).sum(0)

    def broadcast(self, value: Any, source: int) -> Any:
        return self._all(value)[source]

    def gather(self, value: Any) -> list[Any] | None:
        values = self._all(value)
        return values if self.rank == 0 else None

    def barrier(self) -> None:
        self._all(None)


def on_each(size: int, work: Any) -> list[Any]:
    """What `work(member)` gives on each rank, run side by side."""
    wires, table, meeting = Wires(), {}, threading.Barrier(size)
    results: list[Any] = [None] * size
    errors: list[BaseException] = []

    def run(rank: int) -> None:
        try:
            peers = ThreadPeers(rank, size, table, meeting)
            results[rank] = work(Member(rank, WireTransport(rank, wires), peers))
        except BaseException as error:
            errors.append(error)
            meeting.abort()

    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return results


def data() -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(1)
    return tuple(torch.randn(2, 15, 3, generator=generator, dtype=torch.float64))


@pytest.mark.parametrize(
    ("schedule", "ranks"),
    [("gpipe", 3), ("1f1b", 4), ("dora-dfs", 2), ("zbv", 2), ("dualpipe-v", 2), ("zb-h2", 4)],
)
def test_ranks_apart_give_what_ranks_together_give(schedule, ranks):
    modules = small_chain(12)
    x, y = data()
    options = {"schedule": schedule, "ranks": ranks, "microbatch_size": 2, "loss": nn.MSELoss()}
    options["chunks_per_rank"] = 2 if schedule in ("dora-dfs", "zbv", "dualpipe-v") else 1

    def work(member: Member | None) -> dict[str, Any]:
        own = copy.deepcopy(modules)
        with Pipeline(own, **options, member=member) as pipe:
            pipe.record = True
            results = [pipe.step(x, y), pipe.step(x[:9], y[:9])]
            return {
                "losses": [result.microbatch_losses for result in results],
                "loss": [result.loss for result in results],
                "gradients": {name: p.grad for name, p in pipe.named_parameters()},
                "evaluated": pipe.evaluate(x, y).loss,
                "output": pipe.forward(x),
                "state": pipe.state_dict(),
                "actions": {(t.rank, t.action) for t in results[0].timeline or ()},
            }

    together, apart = work(None), on_each(ranks, work)
    gradients = {name: g for result in apart for name, g in result["gradients"].items()}
    assert gradients.keys() == together["gradients"].keys()
    assert sum(len(result["gradients"]) for result in apart) == len(gradients)
    for name, gradient in gradients.items():
        assert torch.equal(gradient, together["gradients"][name])
    for result in apart:
        for key in ("losses", "loss", "evaluated", "output"):
            torch.testing.assert_close(result[key], together[key], rtol=0, atol=0)
        assert result["state"].keys() == together["state"].keys()
        for name, value in result["state"].items():
            assert torch.equal(value, together["state"][name])
    assert apart[0]["actions"] == together["actions"]
    assert all(not result["actions"] for result in apart[1:])


def test_a_rank_holds_no_memory_of_others():
    def work(member: Member) -> list[torch.device]:
        with Pipeline(
            copy.deepcopy(modules), loss=nn.MSELoss(), ranks=2, schedule="1f1b",
            microbatch_size=2, member=member,
        ) as pipe:  # fmt: skip
            return [parameter.device for parameter in pipe._model.parameters()]

    modules = small_chain(2)
    cpu, meta = torch.device("cpu"), torch.device("meta")
    first, second = on_each(2, work)
    half = len(first) // 2
    assert first == [cpu] * half + [meta] * half
    assert second == [meta] * half + [cpu] * half


def test_loading_takes_what_is_here():
    modules = small_chain(2)
    wanted = {k: torch.full_like(v, 7.0) for k, v in nn.Sequential(*modules).state_dict().items()}

    def work(member: Member) -> dict[str, Tensor]:
        with Pipeline(
            copy.deepcopy(modules), loss=nn.MSELoss(), ranks=2, schedule="1f1b",
            microbatch_size=2, member=member,
        ) as pipe:  # fmt: skip
            pipe.load_state_dict(wanted)
            return pipe.state_dict()

    for state in on_each(2, work):
        assert all(torch.equal(state[name], value) for name, value in wanted.items())


def test_a_state_of_another_model_is_refused_on_every_rank():
    modules = small_chain(2)
    state = nn.Sequential(*modules).state_dict()
    last = list(state)[-1]
    state[last] = torch.zeros(99)
    del state[next(iter(state))]

    def work(member: Member) -> str:
        with Pipeline(
            copy.deepcopy(modules), loss=nn.MSELoss(), ranks=2, schedule="1f1b",
            microbatch_size=2, member=member,
        ) as pipe:  # fmt: skip
            with pytest.raises(CheckpointError) as error:
                pipe.load_state_dict(state)
            return str(error.value)

    first, second = on_each(2, work)
    assert first == second
    assert "is missing" in first
    assert f"`{last}` has shape [99]" in first


def test_two_chains_are_refused():
    with pytest.raises(ConfigError, match="single chain"):
        on_each(
            2,
            lambda member: Pipeline(
                small_chain(2), loss=nn.MSELoss(), ranks=2, schedule="chimera",
                microbatch_size=2, member=member,
            ),
        )  # fmt: skip
