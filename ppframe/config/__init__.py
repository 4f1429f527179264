"""Configuration: the schema, what is wrong with a composed one, and its plain frozen form.

Names are imported when first asked for: `--help` needs `ppframe.config.plain` alone, and no
pydantic.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ppframe.config.instantiate import (
        make_component,
        make_cost,
        make_options,
        make_schedule,
        make_target,
        takes_cost,
    )
    from ppframe.config.load import load_config
    from ppframe.config.schema import (
        CheckpointConfig,
        ChunkSpec,
        Component,
        EvaluationConfig,
        Launch,
        ModelConfig,
        PipelineConfig,
        ProfileConfig,
        RunConfig,
        Target,
    )

__all__ = [
    "CheckpointConfig",
    "ChunkSpec",
    "Component",
    "EvaluationConfig",
    "Launch",
    "ModelConfig",
    "PipelineConfig",
    "ProfileConfig",
    "RunConfig",
    "Target",
    "load_config",
    "make_component",
    "make_cost",
    "make_options",
    "make_schedule",
    "make_target",
    "takes_cost",
]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module `ppframe.config` has no attribute `{name}`")
    home = "load" if name == "load_config" else "instantiate" if name[0].islower() else "schema"
    return getattr(import_module(f"ppframe.config.{home}"), name)
