"""Metrics: where a run's numbers go, and the contract that such places keep."""

from ppframe.metrics.base import Plan, RunInfo, Sink, StagePlan
from ppframe.metrics.console import LineSink, TerminalSink
from ppframe.metrics.fanout import Fanout
from ppframe.metrics.jsonl import JsonlSink
from ppframe.metrics.plain import jsonable, to_json
from ppframe.metrics.wandb import WandbOptions, WandbSink

__all__ = [
    "Fanout",
    "JsonlSink",
    "LineSink",
    "Plan",
    "RunInfo",
    "Sink",
    "StagePlan",
    "TerminalSink",
    "WandbOptions",
    "WandbSink",
    "jsonable",
    "to_json",
]
