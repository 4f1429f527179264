"""Layout: how many ranks and chunks there are, and which modules and device each stage gets."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import final

import torch
from torch import nn

from ppframe.errors import ConfigError
from ppframe.schedule import Schedule, build_schedule, nearest_microbatches, schedule_facts
from ppframe.stage import partition_modules
from ppframe.stage.partition import Partition

Devices = str | torch.device | Sequence[str | torch.device] | None


@final
@dataclass(frozen=True, slots=True)
class Layout:
    """Where everything is.

    Args:
        ranks: number of pipeline ranks.
        chunks_per_rank: stages of each rank.
        chains: for each chain through the ranks, one or two, the rank of each stage.
        modules: for each stage the indices of its modules.
        here: the ranks that live in this process; None where all do.
    """

    ranks: int
    chunks_per_rank: int
    chains: tuple[tuple[int, ...], ...]
    modules: tuple[range, ...]
    here: tuple[int, ...] | None = None

    def in_process_of(self, rank: int) -> Layout:
        """The same in a process that runs one rank.

        Raises:
            ConfigError: the schedule has two chains, whose copies would have to be kept equal.
        """
        if len(self.chains) > 1:
            raise ConfigError(
                "must be one with a single chain where ranks are processes, but has two, whose "
                "copies of the parameters only one process can hold. Use engine=local.",
                path="schedule",
            )
        return replace(self, here=(rank,))

    def is_here(self, rank: int) -> bool:
        """Whether a rank lives in this process."""
        return self.here is None or rank in self.here

    @property
    def placement(self) -> tuple[int, ...]:
        """Rank of each stage on chain 0, where the user's own modules lie."""
        return self.chains[0]


def make_layout(
    modules: Sequence[nn.Module],
    schedule: str | Schedule,
    *,
    ranks: int | None,
    chunks_per_rank: int | None,
    partition: Partition | None,
) -> Layout:
    """Settle ranks, chunks and partition from what was given.

    Raises:
        ConfigError: the numbers contradict each other or the schedule.
        PartitionError: the modules can't be shared out.
    """
    for path, count in (("ranks", ranks), ("chunks_per_rank", chunks_per_rank)):
        require_count(path, count)
    if isinstance(schedule, Schedule):
        example = schedule
        _require_same("ranks", ranks, schedule.ranks)
        _require_same("chunks_per_rank", chunks_per_rank, schedule.chunks_per_rank)
    else:
        ranks, chunks = _settle(len(modules), schedule, ranks, chunks_per_rank)
        example = example_schedule(schedule, ranks, chunks)
    placement = example.placement
    return Layout(
        ranks=example.ranks,
        chunks_per_rank=example.chunks_per_rank,
        chains=(placement.owners, *([placement.mirrored] if example.chains else ())),
        modules=partition_modules(modules, example.num_stages, partition or "even"),
    )


def modules_of(stages: Iterable[nn.Module]) -> list[nn.Module]:
    """The modules in forward order.

    Raises:
        ConfigError: there are none, or something else is among them.
    """
    try:
        modules = list(stages)
    except TypeError as error:
        raise ConfigError(
            "must be a list of modules in forward order, or an nn.Sequential, but is a "
            f"{type(stages).__name__}. Put it into a list.",
            path="stages",
        ) from error
    for index, module in enumerate(modules):
        if not isinstance(module, nn.Module):
            raise ConfigError(
                f"must be modules, but the one at {index} is {module!r}.", path="stages"
            )
    if not modules:
        raise ConfigError("must hold at least one module, but holds none.", path="stages")
    return modules


def require_count(path: str, value: int | None) -> None:
    """Refuse what is neither None nor a whole number of at least 1.

    Raises:
        ConfigError: with `path`.
    """
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, int):
        raise ConfigError(f"must be a whole number, but is {value!r}.", path=path)
    if value < 1:
        raise ConfigError(f"must be at least 1, but is {value}.", path=path)


def example_schedule(name: str, ranks: int, chunks_per_rank: int | None) -> Schedule:
    """The schedule of this name for a number of microbatches near `ranks` that it takes."""
    microbatches = nearest_microbatches(name, ranks, ranks, chunks_per_rank)
    return build_schedule(name, ranks, microbatches, chunks_per_rank=chunks_per_rank)


def rank_devices(
    modules: Sequence[nn.Module], layout: Layout, devices: Devices
) -> tuple[torch.device, ...]:
    """The device of each rank; None leaves modules where they are.

    Raises:
        ConfigError: the number of devices isn't the number of ranks.
    """
    if devices is None:
        return tuple(_device_of(modules, layout, rank) for rank in range(layout.ranks))
    if isinstance(devices, str | torch.device):
        return (torch.device(devices),) * layout.ranks
    if len(devices) != layout.ranks:
        raise ConfigError(
            f"must be one device, or one for each of the {layout.ranks} ranks, but are "
            f"{len(devices)}.",
            path="devices",
        )
    return tuple(torch.device(device) for device in devices)


def place_modules(
    modules: Sequence[nn.Module], layout: Layout, devices: Sequence[torch.device]
) -> None:
    """Move parameters and buffers of each stage to its rank's device.

    Those of ranks in other processes lose their memory: they go to the device `meta`.

    Raises:
        ConfigError: a parameter is shared by stages on different devices, or in two processes.
    """
    home: dict[int, torch.device] = {}
    for rank, member in members(layout):
        device = devices[rank] if layout.is_here(rank) else torch.device("meta")
        for name, parameter in modules[member].named_parameters():
            if home.setdefault(id(parameter), device) != device:
                raise ConfigError(
                    f"parameter `{member}.{name}` must lie on one device, but its stages are "
                    f"on {home[id(parameter)]} and {device}. Put both on one rank.",
                    path="stages",
                )
        modules[member].to(device)


def _settle(
    num_modules: int, schedule: str, ranks: int | None, chunks_per_rank: int | None
) -> tuple[int, int]:
    """Ranks and chunks per rank where one of them, or both, may be left open."""
    if ranks is None:
        chunks = chunks_per_rank or _own_chunks(schedule)
        ranks, path = num_modules // chunks, "ranks"
        if ranks * chunks != num_modules:
            raise ConfigError(
                f"must be given, as {num_modules} stages make no whole number of ranks with "
                f"{chunks} chunks each.",
                path=path,
            )
        return ranks, chunks
    if chunks_per_rank is None:
        if ranks > num_modules:
            raise ConfigError(
                f"must be at most the number of modules, {num_modules}, as every rank needs one, "
                f"but is {ranks}.",
                path="ranks",
            )
        chunks_per_rank, rest = divmod(num_modules, ranks)
        if rest:
            raise ConfigError(
                f"must be given where the number of modules is no multiple of the ranks, but is "
                f"None ({num_modules} modules, {ranks} ranks). With chunks_per_rank=1 they are "
                f"grouped into {ranks} stages.",
                path="chunks_per_rank",
            )
    return ranks, chunks_per_rank


def _own_chunks(schedule: str) -> int:
    """Stages of each rank that a schedule has by itself."""
    facts = schedule_facts(schedule)
    if facts is None:
        return example_schedule(schedule, 1, None).chunks_per_rank
    return facts.chunks_per_rank


def _require_same(path: str, given: int | None, own: int) -> None:
    if given is not None and given != own:
        raise ConfigError(
            f"must be {own}, as the schedule has it, but is {given}. Leave it out.", path=path
        )


def _device_of(modules: Sequence[nn.Module], layout: Layout, rank: int) -> torch.device:
    mine = (modules[member] for owner, member in members(layout) if owner == rank)
    tensors = (tensor for module in mine for tensor in (*module.parameters(), *module.buffers()))
    first = next(tensors, None)
    return torch.device("cpu") if first is None else first.device


def members(layout: Layout) -> Iterator[tuple[int, int]]:
    """(rank, index of a module) for all modules in forward order."""
    for rank, members in zip(layout.placement, layout.modules, strict=True):
        for member in members:
            yield rank, member
