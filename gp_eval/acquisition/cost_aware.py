"""Information per cost, by BoTorch's cost-aware utilities."""

from __future__ import annotations

from typing import Any

import torch
from botorch.acquisition.acquisition import AcquisitionFunction
from botorch.acquisition.cost_aware import (
    CostAwareUtility,
    InverseCostWeightedUtility,
)
from botorch.acquisition.input_constructors import acqf_input_constructor
from botorch.models.deterministic import DeterministicModel
from botorch.models.model import Model
from botorch.utils.transforms import t_batch_mode_transform
from torch import Tensor

from gp_eval.acquisition.information_gain import qPerformanceInformationGain
from gp_eval.acquisition.variance_reduction import qVarianceReduction

__all__ = ["ItemCostModel", "inverse_cost", "measures_information", "qGainPerCost"]

_FREE = 2.0**-600
"""Cost of a free item as a share of the smallest one there is."""


class ItemCostModel(DeterministicModel):
    """BoTorch model of what items cost; inputs are item indices.

    BoTorch's ``InverseCostWeightedUtility`` takes
    positive costs only. A free item is therefore put at ``2^-600`` of the smallest
    positive cost: small enough that any information at all makes it the first choice,
    large enough to keep the quotient finite, and a power of two, so that free items
    are ordered by their information to the last bit.

    Args:
        costs: ``N`` finite costs >= 0.

    Raises:
        ValueError: For other costs.
    """

    costs: Tensor

    def __init__(self, costs: Tensor) -> None:
        super().__init__()
        costs = torch.as_tensor(costs, dtype=torch.float64)
        if costs.ndim != 1 or not bool(((costs >= 0.0) & costs.isfinite()).all()):
            raise ValueError(
                "costs: expected finite numbers >= 0 of shape N, got shape "
                f"{tuple(costs.shape)} with values such as {costs.reshape(-1)[:5]}"
            )
        paid = costs[costs > 0.0]
        smallest = paid.min() if paid.numel() else costs.new_ones(())
        free = _FREE * torch.exp2(smallest.log2().floor())
        free = free.clamp_min(torch.finfo(free.dtype).tiny)
        self.register_buffer("costs", torch.where(costs > 0.0, costs, free))
        self._num_outputs = 1

    def forward(self, X: Tensor) -> Tensor:
        """Costs ``... x q x 1`` of item indices ``... x q x 1``."""
        return self.costs[X.long()]


def inverse_cost(costs: Tensor) -> InverseCostWeightedUtility:
    """BoTorch's utility per cost, for ``N`` costs of items.

    Args:
        costs: See :class:`ItemCostModel`.
    """
    return InverseCostWeightedUtility(cost_model=ItemCostModel(costs))


class qGainPerCost(AcquisitionFunction):
    r"""What a batch adds to an acquisition, weighed against what it costs.

    .. math::

        \frac{\alpha(A \cup P) - \alpha(P)}{\sum_{i \in A} c_i}

    with the pending items ``P``, whose cost is spent either way. For the information
    gain the numerator is the gain of ``A`` once ``P`` is known, by the chain rule, so
    that greedy selection is the same whether pending items are passed on or the model
    is conditioned on them. It depends on no score.

    Args:
        acquisition: A set function of item indices that is 0 for the empty set, such as
            :class:`~gp_eval.acquisition.qPerformanceInformationGain`; it needs
            ``of_items``.
        utility: How gain and cost are weighed, see :func:`inverse_cost`.
        X_pending: A ``m x 1`` tensor of items that are being evaluated.

    Example:
        >>> per_cost = qGainPerCost(gain, inverse_cost(costs))
        >>> item, value = optimize_acqf_discrete(per_cost, q=1, choices=choices)
    """

    def __init__(
        self,
        acquisition: AcquisitionFunction,
        utility: CostAwareUtility,
        X_pending: Tensor | None = None,
    ) -> None:
        if not hasattr(acquisition, "of_items"):
            raise ValueError(
                "acquisition: expected one with of_items, such as "
                f"qPerformanceInformationGain, got {type(acquisition).__name__}"
            )
        super().__init__(model=acquisition.model)
        self.acquisition, self.utility = acquisition, utility
        self.set_X_pending(X_pending)

    @t_batch_mode_transform()  # type: ignore[arg-type]
    def forward(self, X: Tensor) -> Tensor:
        """Gain per cost of batches of items.

        Args:
            X: A ``b x q x 1`` tensor of item indices, ``q`` different ones a batch.

        Returns:
            A ``b``-dim tensor, in nats per unit of cost for the information gain.
        """
        model: Any = self.model
        items = model.points(X)
        pending: Tensor | None = self.X_pending
        if pending is None:
            return self.of_items(items)
        of_items: Any = self.acquisition.of_items
        waiting = model.points(pending.unsqueeze(0))
        joint = torch.cat([waiting.expand(items.shape[0], -1), items], dim=-1)
        return self._per_cost(items, of_items(joint) - of_items(waiting))

    def of_items(self, items: Tensor) -> Tensor:
        """Gain per cost of integer item indices ``b x q``, shape ``b``."""
        of_items: Any = self.acquisition.of_items
        return self._per_cost(items, of_items(items))

    def _per_cost(self, items: Tensor, gains: Tensor) -> Tensor:
        return self.utility(items.unsqueeze(-1), gains)


def measures_information(acquisition: AcquisitionFunction | None) -> bool:
    """Whether a value is an amount that can be divided by a cost.

    The two measures of this package do, and an acquisition of your own that says
    ``is_information = True``; an order of items, such as DISCO's, does not.
    """
    if isinstance(acquisition, (qPerformanceInformationGain, qVarianceReduction)):
        return True
    return bool(getattr(acquisition, "is_information", False))


@acqf_input_constructor(qGainPerCost)
def _construct_inputs(
    model: Model, costs: Tensor, X_pending: Tensor | None = None
) -> dict[str, Any]:
    """Inputs of :class:`qGainPerCost` for BoTorch's factories: the information gain."""
    return {
        "acquisition": qPerformanceInformationGain(model),
        "utility": inverse_cost(costs),
        "X_pending": X_pending,
    }
