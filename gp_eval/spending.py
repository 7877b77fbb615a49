"""Selection of items that cost something, within a budget."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from botorch.acquisition.acquisition import AcquisitionFunction

from gp_eval.acquisition import inverse_cost, measures_information, qGainPerCost
from gp_eval.costs import ItemCosts, Purse

__all__ = ["Spending", "check_costs"]


class Spending:
    """The costs of a run: what is spent, and how that weighs on selection.

    Items in random order are not picked by cost: the run ends with the first that costs
    more than is left, for going on with cheaper ones would make the sample one of cheap
    items.

    Args:
        model: The belief of the run, before any item.
        costs: What items cost.
        max_cost: The budget.
        cost_aware: Whether to select by information per cost; default where the model
            selects by information.

    Raises:
        ValueError: For what this model cannot do, or a budget below every cost.

    Attributes:
        purse (Purse): What is committed and left.
        cost_aware (bool): Whether information per cost selects.
        at_random (bool): Whether items come in random order.
    """

    def __init__(
        self,
        model: Any,
        costs: ItemCosts,
        *,
        max_cost: float | None,
        cost_aware: bool | None,
    ) -> None:
        acquisition = model.acquisition()
        self.at_random = acquisition is None
        batches = getattr(model, "batch_selection", None) is not None
        if batches and max_cost is not None:
            raise ValueError(
                "max_cost: optimal batches do not mind it; leave out the option batch"
            )
        possible = measures_information(acquisition) and not batches
        if cost_aware and not possible:
            raise ValueError(
                f"cost_aware: {type(model).__name__} selects "
                + (
                    "optimal batches"
                    if batches
                    else "items at random"
                    if self.at_random
                    else "by no measure of information"
                )
                + ", so that there is no information per cost to select by"
            )
        self.cost_aware = possible if cost_aware is None else cost_aware
        self.purse = Purse(costs, max_cost)
        cheapest = float(costs.values.min())
        if max_cost is not None and max_cost < cheapest:
            raise ValueError(
                f"max_cost: the cheapest item costs {cheapest:g}, got {max_cost:g}"
            )
        self._weighed: qGainPerCost | None = None
        self._utility = inverse_cost(costs.values) if self.cost_aware else None

    def weigh(self, acquisition: AcquisitionFunction) -> AcquisitionFunction:
        """The acquisition per cost, if that is what selects."""
        if self._utility is None:
            return acquisition
        if self._weighed is None or self._weighed.acquisition is not acquisition:
            self._weighed = qGainPerCost(acquisition, self._utility)
        return self._weighed

    def exhausted(self, order: Iterable[int], available: Any) -> bool:
        """Whether no item is left that may be asked, with nothing pending.

        Args:
            order: The items in their random order.
            available: Items neither asked nor skipped, booleans of shape ``N``.
        """
        if self.at_random:
            return not self.purse.first((i for i in order if available[i]), 1)
        return not bool(self.purse.affordable(available).any())


def check_costs(
    costs: ItemCosts | None, *, max_cost: float | None, cost_aware: bool | None
) -> None:
    """Refuse what makes no sense without costs.

    Raises:
        ValueError: For a budget, or cost-aware selection, without costs.
    """
    if costs is None and max_cost is not None:
        raise ValueError("max_cost: needs the costs of the items")
    if costs is None and cost_aware:
        raise ValueError("cost_aware: needs the costs of the items")
