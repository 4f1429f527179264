"""Schedules: which stage computes which microbatch when, as plain data. Needs no torch."""

from __future__ import annotations

from ppframe.schedule.action import (
    Action,
    ActionKind,
    Compute,
    Exchange,
    Overlap,
    Reduce,
    Transfer,
)
from ppframe.schedule.build import build_schedule, nearest_microbatches
from ppframe.schedule.dependencies import dependencies
from ppframe.schedule.forward import forward_only
from ppframe.schedule.generators.facts import ScheduleFacts, Shape, schedule_facts
from ppframe.schedule.ir import LoweredSchedule, Schedule
from ppframe.schedule.lowering import lower
from ppframe.schedule.placement import Placement
from ppframe.schedule.text import grid
from ppframe.schedule.verify import execution_order, verify

__all__ = [
    "Action",
    "ActionKind",
    "Compute",
    "Exchange",
    "LoweredSchedule",
    "Overlap",
    "Placement",
    "Reduce",
    "Schedule",
    "ScheduleFacts",
    "Shape",
    "Transfer",
    "build_schedule",
    "dependencies",
    "execution_order",
    "forward_only",
    "grid",
    "lower",
    "nearest_microbatches",
    "schedule_facts",
    "verify",
]
