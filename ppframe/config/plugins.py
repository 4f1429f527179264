"""Names from outside: modules that register more builders when they are imported."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from importlib.metadata import entry_points
from pathlib import Path

from ppframe.config.targets import NotImportable, locate
from ppframe.errors import Fault, PPFrameError

GROUP = "ppframe.plugins"


def import_parts() -> None:
    """Import every module of ppframe that registers builders."""
    import ppframe.config.costs
    import ppframe.data
    import ppframe.engine
    import ppframe.metrics
    import ppframe.models
    import ppframe.schedule
    import ppframe.training.loss
    import ppframe.training.lr_schedule
    import ppframe.training.optim  # noqa: F401


def import_plugins(modules: Iterable[str], folder: Path) -> list[Fault]:
    """Import installed plugins and those that a configuration names.

    Args:
        modules: import paths, under the key `plugins`.
        folder: the launch folder; modules in it can be imported from now on.

    Returns:
        a fault for each one that can't be imported, with the real reason.
    """
    if str(folder) not in sys.path:
        sys.path.append(str(folder))
    faults = []
    for entry in entry_points(group=GROUP):
        try:
            entry.load()
        except (
            Exception,
            SystemExit,
        ) as error:  # foreign code may raise anything; we say which did
            faults.append(
                Fault(
                    "",
                    f"installed plugin `{entry.name}` ({entry.value}) must be importable, but "
                    f"raised {type(error).__name__}: {error}. Repair it or uninstall it.",
                )
            )
    for index, module in enumerate(modules):
        try:
            locate(module)
        except (NotImportable, PPFrameError) as error:
            faults.append(Fault(f"plugins[{index}]", f"{error}."))
    return faults
