"""When enough items were run: the two conditions of the BayesAME paper."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["StoppingRule"]


@dataclass(frozen=True, kw_only=True)
class StoppingRule:
    r"""Stop when the estimate is stable *and* its interval narrow (Section 3.1).

    Both are needed: a target that was right on every item so far has a perfectly
    stable estimate, and only the width tells that the rest is unknown.

    Attributes:
        width: :math:`\epsilon_2`, the largest acceptable full width of the 95 %
            interval, in score units.
        stable: :math:`\epsilon_1`, the largest acceptable range of the last estimates,
            in score units.
        window: ``W``, the number of last estimates looked at, one an item; a run
            cannot stop before.
        max_items: Budget of evaluated items, ``None`` for no limit.
    """

    width: float = 0.03
    stable: float = 0.005
    window: int = 30
    max_items: int | None = None

    def __post_init__(self) -> None:
        """Check the values."""
        for name in ("width", "stable"):
            value = getattr(self, name)
            if not (isinstance(value, (int, float)) and 0 < value < math.inf):
                raise ValueError(f"{name}: expected a finite number > 0, got {value!r}")
        if self.window < 1:
            raise ValueError(f"window: expected at least 1, got {self.window!r}")
        if self.max_items is not None and self.max_items < 1:
            raise ValueError(f"max_items: expected at least 1, got {self.max_items!r}")

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
        window, n = math.ceil(self.window / batch), len(estimates)
        if n % batch or n < window * batch or not width <= self.width:
            return False
        last = estimates[n - 1 - (window - 1) * batch :: batch]
        return max(last) - min(last) <= self.stable
