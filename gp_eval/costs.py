"""What items cost, and what is left of a budget, without rounding."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction

import torch
from torch import Tensor

from gp_eval.data.validation import some
from gp_eval.errors import DataError

__all__ = ["ItemCosts", "Purse"]


class ItemCosts:
    """The cost of each item, in any unit: money, seconds, tokens.

    Costs count as the decimals they are written as, so that ten items of 0.1 cost
    exactly 1.

    Args:
        values: ``N`` finite numbers >= 0, in the order of ``items``.
        items: Item ids.

    Raises:
        DataError: For another number of costs, or one that is unknown or negative: it
            must not count as zero.

    Attributes:
        values (Tensor): Shape ``N``, float64.
        exact (list): The same as fractions.
    """

    def __init__(self, values: Sequence[float], items: Sequence[str]) -> None:
        numbers = [_as_float(value) for value in values]
        if len(numbers) != len(items):
            raise DataError(
                f"costs: expected one per item ({len(items)}), got {len(numbers)}"
            )
        wrong = [
            item
            for item, cost in zip(items, numbers, strict=True)
            if not 0.0 <= cost < math.inf
        ]
        if wrong:
            raise DataError(
                f"costs: expected finite costs >= 0, not so for {some(wrong)}; an "
                "unknown cost does not count as 0"
            )
        self.items = tuple(items)
        self.values = torch.tensor(numbers, dtype=torch.float64)
        self.exact = [Fraction(repr(cost)) for cost in numbers]

    @classmethod
    def of_items(cls, costs: Mapping[str, float], items: Sequence[str]) -> ItemCosts:
        """The costs of these items from costs by id; others in it are not used.

        Raises:
            DataError: For an item without a cost, or one that is not a finite number
                >= 0.
        """
        if absent := [item for item in items if item not in costs]:
            raise DataError(
                f"costs: nothing for {len(absent)} of the {len(items)} items: "
                f"{some(absent)}; an unknown cost does not count as 0"
            )
        return cls([costs[item] for item in items], items)

    @property
    def fingerprint(self) -> str:
        """SHA-256 over ids and costs."""
        rows = [list(row) for row in zip(self.items, self.values.tolist(), strict=True)]
        return hashlib.sha256(json.dumps(rows).encode()).hexdigest()

    def total(self, items: Iterable[int] | None = None) -> float:
        """Cost of the items of these indices, or of all."""
        costs = self.exact if items is None else (self.exact[i] for i in items)
        return float(sum(costs, Fraction(0)))


class Purse:
    """What a run has committed and may still spend.

    Committed is what was evaluated, what is being evaluated, and what was asked and
    then skipped: that was tried, and what is not known to be free is not free.

    Args:
        costs: Costs of the items.
        max_cost: The budget, ``None`` for no limit.

    Attributes:
        committed (dict): The items, each counted once.
    """

    def __init__(self, costs: ItemCosts, max_cost: float | None = None) -> None:
        self.costs = costs
        self._budget = None if max_cost is None else Fraction(repr(float(max_cost)))
        self.committed: dict[int, None] = {}
        self._sum = Fraction(0)

    def commit(self, item: int) -> None:
        """Count an item; again it changes nothing."""
        if item not in self.committed:
            self.committed[item] = None
            self._sum += self.costs.exact[item]

    @property
    def left(self) -> float:
        """What is left of the budget, below 0 where it was exceeded, or infinity."""
        return math.inf if self._budget is None else float(self._budget - self._sum)

    def affordable(self, available: Tensor, chosen: Sequence[int] = ()) -> Tensor:
        """The available items whose cost does not exceed what is left.

        Args:
            available: Booleans of shape ``N``; not changed.
            chosen: Items chosen and not committed yet.
        """
        if self._budget is None:
            return available
        spent = self._sum + sum((self.costs.exact[i] for i in chosen), Fraction(0))
        return available & (self.costs.values <= float(self._budget - spent))

    def first(self, items: Iterable[int], q: int) -> list[int]:
        """The first ``q`` items, fewer where one costs more than is left by then."""
        taken: list[int] = []
        spent = self._sum
        for item in items:
            spent += self.costs.exact[item]
            if len(taken) == q or (self._budget is not None and spent > self._budget):
                break
            taken.append(item)
        return taken


def _as_float(value: object) -> float:
    """The cost as a float, NaN for what is no number."""
    try:
        number = hasattr(value, "__float__") and not isinstance(value, str)
        return float(value) if number else math.nan  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return math.nan
