"""ppframe: pipeline-parallel training, declared by a config or driven as a library.

Names are imported when first asked for, so `import ppframe` and `ppframe.schedule` need no torch.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ppframe.runtime import Pipeline, StepResult
    from ppframe.stage import Replicate, Split, add_auxiliary_loss

__all__ = ["Pipeline", "Replicate", "Split", "StepResult", "add_auxiliary_loss"]

_HOME = {
    "Pipeline": "ppframe.runtime",
    "Replicate": "ppframe.stage",
    "Split": "ppframe.stage",
    "StepResult": "ppframe.runtime",
    "add_auxiliary_loss": "ppframe.stage",
}


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module `ppframe` has no attribute `{name}`; it has {__all__}")
    return getattr(import_module(_HOME[name]), name)
