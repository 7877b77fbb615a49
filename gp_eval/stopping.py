"""When enough items were run: the two conditions of the BayesAME paper, and budgets."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from gp_eval.decision import Decision

__all__ = ["StoppingRule"]

_WIDTH = 0.03


@dataclass(frozen=True, kw_only=True)
class StoppingRule:
    r"""Stop when the estimate is stable *and* its interval narrow (Section 3.1).

    Both are needed: a target that was right on every item so far has a perfectly
    stable estimate, and only the width tells that the rest is unknown.

    With a statement to decide, ``until``, the run stops once that is decided, whatever
    the width; give a ``width`` as well to stop at whichever comes first.

    Attributes:
        width: :math:`\epsilon_2`, the largest acceptable full width of the 95 %
            interval, in score units; ``None`` does not stop by it. Default 0.03, or
            ``None`` with ``until``.
        stable: :math:`\epsilon_1`, the largest acceptable range of the last estimates,
            in score units.
        window: ``W``, the number of last estimates looked at, one an item; a run
            cannot stop before.
        max_items: Budget of evaluated items, ``None`` for no limit.
        max_cost: Budget of what evaluated items cost, in the unit of the costs that the
            run is given, ``None`` for no limit.
        until: What to decide.
    """

    width: float | None = None
    stable: float = 0.005
    window: int = 30
    max_items: int | None = None
    max_cost: float | None = None
    until: Decision | None = None

    def __post_init__(self) -> None:
        """Check the values."""
        if self.width is None and self.until is None:
            object.__setattr__(self, "width", _WIDTH)
        for name in ("width", "stable"):
            value = getattr(self, name)
            if name == "width" and value is None:
                continue
            if not (isinstance(value, (int, float)) and 0 < value < math.inf):
                raise ValueError(f"{name}: expected a finite number > 0, got {value!r}")
        if self.window < 1:
            raise ValueError(f"window: expected at least 1, got {self.window!r}")
        if self.max_items is not None and self.max_items < 1:
            raise ValueError(f"max_items: expected at least 1, got {self.max_items!r}")
        if self.max_cost is not None and not 0 <= self.max_cost < math.inf:
            raise ValueError(
                f"max_cost: expected a finite number >= 0, got {self.max_cost!r}"
            )
        self._check_until()

    def _check_until(self) -> None:
        """A budget that rules a decision out is a mistake."""
        if self.until is None or self.max_items is None:
            return
        if self.max_items < self.until.window:
            raise ValueError(
                f"max_items: nothing is decided before {self.until.window} items, got "
                f"{self.max_items}"
            )

    def met(self, estimates: Sequence[float], width: float, *, batch: int = 1) -> bool:
        r"""Whether both conditions hold.

        Where an iteration evaluates a batch, the window is over the estimates after
        each, :math:`W / |A|` of them (Appendix C.1), rounded up, and nothing stops in
        the middle of a batch.

        Args:
            estimates: Estimates after each evaluated item, the newest last.
            width: Present width of the 95 % interval.
            batch: Items that an iteration evaluates, ``|A|``.
        """
        if self.width is None:
            return False
        window, n = math.ceil(self.window / batch), len(estimates)
        if n % batch or n < window * batch or not width <= self.width:
            return False
        last = estimates[n - 1 - (window - 1) * batch :: batch]
        return max(last) - min(last) <= self.stable
