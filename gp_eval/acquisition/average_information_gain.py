r"""Information gain averaged over targets: the alternative strategy of Section 3.2."""

from __future__ import annotations

from typing import Any

import torch
from botorch.acquisition.acquisition import AcquisitionFunction
from botorch.acquisition.input_constructors import acqf_input_constructor
from botorch.models.model import Model
from botorch.utils.transforms import (
    concatenate_pending_points,
    t_batch_mode_transform,
)
from torch import Tensor

from gp_eval.acquisition.information_gain import gain_of_share
from gp_eval.linalg import cholesky

__all__ = ["qAverageInformationGain"]


class qAverageInformationGain(AcquisitionFunction):
    r"""Mean over ``T`` targets of the information gain of items about each one's score.

    .. math::

        \alpha(A) = \frac{1}{T} \sum_{t=1}^T \left(H(R^t \mid s_C) - \mathbb{E}
            [H(R^t \mid s_C, s^t_A)]\right)

    Inputs are items without a target. Where a target was evaluated on an item already,
    its score brings nothing more. The paper then draws the target uniformly; we draw
    among those that lack the item.

    Args:
        model: The belief over scores of pairs, such as
            :class:`~gp_eval.models.SequentialMultiTargetModel`.
        X_pending: A ``m x 1`` tensor of items that all targets are being evaluated on.
    """

    def __init__(self, model: Model, X_pending: Tensor | None = None) -> None:
        super().__init__(model=model)
        self.set_X_pending(X_pending)

    @concatenate_pending_points
    @t_batch_mode_transform()  # type: ignore[arg-type]
    def forward(self, X: Tensor) -> Tensor:
        """Average information gain of batches of items.

        Args:
            X: A ``b x q x 1`` tensor of item indices, ``q`` different ones a batch.

        Returns:
            A ``b``-dim tensor of gains, in nats.
        """
        if X.shape[-1] != 1:
            raise ValueError(f"X: expected items, b x q x 1, got {tuple(X.shape)}")
        model: Any = self.model
        # Checked, for item N would be the first of another target.
        return self.of_items(model.points(torch.cat([X, torch.zeros_like(X)], dim=-1)))

    def of_items(self, items: Tensor) -> Tensor:
        """Average information gain of integer item indices ``b x q``, shape ``b``."""
        model: Any = self.model
        targets = torch.arange(model.n_targets, device=items.device)
        points = targets.view(-1, 1, 1) * model.n_items + items
        if items.shape[-1] == 1:
            points = points.squeeze(-1)
            share = model.squared_correlation(points) * model.unevaluated(points)
        else:
            share = torch.stack([_share(model, row) for row in points])
        return gain_of_share(share).mean(0)


def _share(model: Any, points: Tensor) -> Tensor:
    """Share of the variance of their target's score that points ``b x q`` explain."""
    new = model.unevaluated(points).to(torch.float64)
    both = new.unsqueeze(-1) * new.unsqueeze(-2)
    # Points that are known already are taken out: uncorrelated, of variance 1.
    covariance = model.score_covariance(points) * both + torch.diag_embed(1.0 - new)
    factor = cholesky(covariance, name="covariance of the candidate batch")
    cross = (model.performance_covariance(points) * new).unsqueeze(-1)
    white = torch.linalg.solve_triangular(factor, cross, upper=False)
    total = model.performance_variance()[model.target_of(points[..., 0])]
    total = torch.where(total > 0.0, total, torch.inf)
    return white.square().sum((-2, -1)) / total


@acqf_input_constructor(qAverageInformationGain)
def _construct_inputs(model: Model, X_pending: Tensor | None = None) -> dict[str, Any]:
    """Inputs of :class:`qAverageInformationGain` for BoTorch's factories."""
    return {"model": model, "X_pending": X_pending}
