"""Simulating schedules: time, idle ranks, memory and drawings, without running anything."""

from ppframe.schedule.cost import Cost
from ppframe.simulator.draw import draw_terminal, drawing_width
from ppframe.simulator.engine import replay, simulate
from ppframe.simulator.html import draw_html
from ppframe.simulator.picture import DrawingOptions
from ppframe.simulator.report import SimulationReport
from ppframe.simulator.svg import draw_svg
from ppframe.simulator.timeline import TimelineEntry
from ppframe.simulator.trace import chrome_trace

__all__ = [
    "Cost",
    "DrawingOptions",
    "SimulationReport",
    "TimelineEntry",
    "chrome_trace",
    "draw_html",
    "draw_svg",
    "draw_terminal",
    "drawing_width",
    "replay",
    "simulate",
]
