"""The runtime: binds a lowered schedule to stages and a transport, and walks it."""

from ppframe.runtime.member import Member
from ppframe.runtime.pipeline import Pipeline
from ppframe.runtime.result import ActionTime, StageInfo, StepResult

__all__ = ["ActionTime", "Member", "Pipeline", "StageInfo", "StepResult"]
