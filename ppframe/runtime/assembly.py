"""Assembly: the runners of every stage on every chain, from modules and layout."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import torch
from torch import nn

from ppframe.runtime.head import LossHead
from ppframe.runtime.layout import Layout
from ppframe.runtime.replicas import Replicas
from ppframe.runtime.runner import StageRunner
from ppframe.stage import BatchLoss, Stage
from ppframe.stage.stage import Head
from ppframe.transport import Transport

Chains = list[list[StageRunner]]
"""For each chain the runner of each stage."""


def assemble(
    modules: Sequence[nn.Module],
    layout: Layout,
    devices: Sequence[torch.device],
    *,
    make_stage: Callable[..., Stage],
    head: LossHead,
    transport: Transport,
) -> tuple[Chains, Replicas]:
    """The runners, and the replicas that the second chain runs where it can't run the modules.

    Args:
        modules: modules of the unsplit model.
        layout: which stage has which modules and ranks.
        devices: device of each rank.
        make_stage: `Stage` with what all stages have in common: the seed of the random streams,
            which are the same on every chain, and how a forward keeps what its backward needs.
        head: the loss, at the end of the last stage.
        transport: carries messages between ranks.
    """
    replicas = Replicas()
    chains: Chains = []
    last = len(layout.modules) - 1
    for ranks in layout.chains:
        on = [
            (devices[own], devices[rank]) for own, rank in zip(layout.placement, ranks, strict=True)
        ]
        stages = [
            make_stage(
                index,
                [(m, _module(modules[m], str(m), on[index], replicas)) for m in members],
                device=on[index][1],
                head=_head(head, on[last], replicas) if index == last else None,
            )
            for index, members in enumerate(layout.modules)
        ]
        chains.append([StageRunner(s, transport, is_last=s.index == last) for s in stages])
        _join(chains[-1], ranks)
    return chains, replicas


def _module(
    master: nn.Module, name: str, on: tuple[torch.device, torch.device], replicas: Replicas
) -> nn.Module:
    """The module itself, or its replica where the chain needs it on another device."""
    own, wanted = on
    return master if own == wanted else replicas.add(name, master, wanted)


def _head(head: LossHead, on: tuple[torch.device, torch.device], replicas: Replicas) -> Head:
    """The end of the pipeline; on another device a loss that holds tensors is copied too."""
    function = head.loss.function
    if isinstance(function, nn.Module) and function.state_dict(keep_vars=True):
        module = _module(function, "loss", on, replicas)
        return head if module is function else head.with_copy(BatchLoss(module))
    return head


def _join(runners: list[StageRunner], ranks: Sequence[int]) -> None:
    """Let neighbours on one rank hand over directly."""
    for stage, (runner, following) in enumerate(pairwise(runners)):
        if ranks[stage] == ranks[stage + 1]:
            runner.join(following)
