"""Simulating schedules: time, idle ranks, memory and drawings, without running anything."""

from ppframe.schedule.cost import Cost
from ppframe.simulator.draw import draw_terminal, drawing_width
from ppframe.simulator.engine import replay, simulate
from ppframe.simulator.report import SimulationReport
from ppframe.simulator.timeline import TimelineEntry
from ppframe.simulator.trace import chrome_trace

__all__ = [
    "Cost",
    "SimulationReport",
    "TimelineEntry",
    "chrome_trace",
    "draw_terminal",
    "drawing_width",
    "replay",
    "simulate",
]
