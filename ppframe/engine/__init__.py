"""Engines: how ranks come to exist and how they end."""

from ppframe.engine.base import Engine, Ranks
from ppframe.engine.local import LocalEngine
from ppframe.engine.processes import ProcessesEngine
from ppframe.engine.reports import RemoteError
from ppframe.engine.torchrun import TorchrunEngine

__all__ = ["Engine", "LocalEngine", "ProcessesEngine", "Ranks", "RemoteError", "TorchrunEngine"]
