"""What a report says about a target and the range of its references."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from gp_eval.alarm.check import RangeCheck, Reason

__all__ = ["Action", "RangeState"]

Action = Literal["fallback", "warn", "adapts"]
"""What follows from an alarm: the design of the sample takes over, nothing does, or the
model says that it allows for such targets itself."""

_WHAT_TO_CHECK: dict[Reason, str] = {
    "above": "Check that its scores are on the scale of the references",
    "below": "Check that its scores are on the scale of the references and that its "
    "answers were parsed",
    "order": "Check that its scores belong to the right items and are not flipped",
}

_WHAT_IS_DONE: dict[Action, str] = {
    "fallback": "The references say little about such a model. Items are therefore "
    "drawn at random from here on, and estimate and interval rest on that sample, with "
    "the references as a control variate: safe, but it takes more items.",
    "warn": "The references say little about such a model: its estimate may be off and "
    "its interval too narrow.",
    "adapts": "The model allows for such targets itself.",
}


@dataclass(frozen=True)
class RangeState:
    """Whether the target left what its references span, and what was done about it.

    Attributes:
        raised: The comparison that raised the alarm, ``None`` without one; its ``n``
            is the number of items after which it was raised. An alarm stays on.
        now: The comparison on all items evaluated by now; ``None`` for too few.
        action: What follows from an alarm.
    """

    raised: RangeCheck | None
    now: RangeCheck | None
    action: Action

    @property
    def since(self) -> int | None:
        """Number of evaluated items at the alarm."""
        return None if self.raised is None else self.raised.n

    @property
    def fallen_back(self) -> bool:
        """Whether estimate and interval are those of a random sample."""
        return self.raised is not None and self.action == "fallback"

    @property
    def sentence(self) -> str | None:
        """What was seen, what it means and what to do; ``None`` without an alarm."""
        raised = self.raised
        if raised is None or raised.reason is None:
            return None
        later = ""
        if self.now is not None and self.now.n > raised.n:
            later = f" By now, {self.now.seen(raised.reason)}."
        return (
            f"Outside the range of the references: {raised.seen(raised.reason)}."
            f"{later} {_WHAT_IS_DONE[self.action]} {_WHAT_TO_CHECK[raised.reason]}; if "
            "they are right, references more like it would help."
        )
