"""Tells when a target leaves what the references span, and estimates without them."""

from gp_eval.alarm.check import LEVEL, RangeCheck, check_range
from gp_eval.alarm.design import ControlVariate, design_estimate
from gp_eval.alarm.state import RangeState
from gp_eval.alarm.watch import ENOUGH, OnAlarm, RangeWatch

__all__ = [
    "ENOUGH",
    "LEVEL",
    "ControlVariate",
    "OnAlarm",
    "RangeCheck",
    "RangeState",
    "RangeWatch",
    "check_range",
    "design_estimate",
]
