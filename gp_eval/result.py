"""Where a run stands, and why it stopped."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from gp_eval.alarm import RangeState

__all__ = ["Result", "StopReason"]

StopReason = Literal["converged", "decided", "max_items", "budget", "complete"]
"""Why a run stopped, see :class:`Result`."""


@dataclass(frozen=True)
class Result:
    """Where a run stands.

    Attributes:
        target: Name of the evaluated model.
        mean: Estimate of the full-benchmark score, in score units.
        low: Lower end of the 95 % interval.
        high: Upper end of the 95 % interval.
        n: Evaluated items.
        N: Items of the benchmark.
        stop_reason: ``"converged"`` (both conditions hold), ``"decided"`` (the
            statement is decided), ``"max_items"`` (so many items are evaluated),
            ``"budget"`` (the next item costs more than is left), ``"complete"``
            (nothing is left; what was skipped stays unobserved), or ``None``.
        items: Evaluated items in their order.
        estimates: Estimate after each item.
        widths: Width of the 95 % interval after each item.
        stopped_at: ``n`` at which it stopped; later scores are taken in as well.
        verdict: Whether the statement of the rule holds, exact at ``n = N``; ``None``
            while it is not decided, or again if later scores put it in doubt.
        probability: Its posterior probability; ``None`` without a statement, before the
            first item, or where the spread is unknown, as of equal scores.
        cost: What was spent, in the unit of the costs: on evaluated items, and on those
            that were asked and then skipped; ``None`` without costs.
        range: Whether the target left what its references span.
    """

    target: str
    mean: float
    low: float
    high: float
    n: int
    N: int
    stop_reason: StopReason | None
    items: list[str] = field(repr=False)
    estimates: list[float] = field(repr=False)
    widths: list[float] = field(repr=False)
    stopped_at: int | None = None
    verdict: bool | None = None
    probability: float | None = None
    cost: float | None = None
    range: RangeState | None = field(default=None, repr=False)

    @property
    def width(self) -> float:
        """Full width of the 95 % interval."""
        return self.high - self.low
