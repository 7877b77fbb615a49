"""From how many models on DISCO's plan pays (Appendix B of its paper)."""

from __future__ import annotations

import math
from dataclasses import dataclass

__all__ = ["Costs"]


@dataclass(frozen=True)
class Costs:
    """Costs in any one unit: GPU hours, money, calls.

    Attributes:
        full: Of one full evaluation of one model.
        online: Of one model on the chosen items.
        offline: Once: responses of the references to all items, and the plan.

    Raises:
        ValueError: For a cost that is negative or not finite.
    """

    full: float
    online: float
    offline: float

    def __post_init__(self) -> None:
        for name in ("full", "online", "offline"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value >= 0.0):
                raise ValueError(f"{name}: expected a finite cost >= 0, got {value!r}")

    @property
    def saved(self) -> float:
        """What each later model saves; negative if the plan costs more."""
        return self.full - self.online

    @property
    def break_even(self) -> int | None:
        """Fewest later models for which the plan costs no more than full evaluation.

        ``None`` if it never does. With the figures of Table 4 of the DISCO paper, 8.53,
        0.07 and 3284 GPU hours, these are 389.
        """
        if self.offline == 0.0 and self.saved >= 0.0:
            return 0
        if self.saved <= 0.0:
            return None
        ratio = self.offline / self.saved
        nearest = round(ratio)  # 3 * 0.1 / 0.1 is a little more than 3
        return nearest if math.isclose(ratio, nearest) else math.ceil(ratio)

    def total(self, n_models: int) -> tuple[float, float]:
        """Cost of ``n_models`` later models with the plan, and by full evaluation."""
        return self.offline + n_models * self.online, n_models * self.full
