"""Driving evaluation tools: only the chosen items, resumable at any moment.

:func:`drive` runs a session to its stop with a driver; the tools are imported by their
drivers only when these are used.
"""

from gp_eval.drivers.command import CommandDriver
from gp_eval.drivers.drive import drive
from gp_eval.drivers.inspect import InspectDriver
from gp_eval.drivers.lm_eval import LmEvalDriver
from gp_eval.drivers.on_error import OnError
from gp_eval.drivers.protocol import Batch, Driver, Outcome

__all__ = [
    "Batch",
    "CommandDriver",
    "Driver",
    "InspectDriver",
    "LmEvalDriver",
    "OnError",
    "Outcome",
    "drive",
]
