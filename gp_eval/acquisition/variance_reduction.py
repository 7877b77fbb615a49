r"""Reduction of the variance of the benchmark score.

The quantity that Bayesian quadrature selects by. For one item it orders items as the
information gain does, :math:`-\frac12 \log(1 - x / \operatorname{Var} R)` being
monotone in ``x``, and it is finite where the benchmark score has no variance at all.
"""

from __future__ import annotations

from typing import Any, Protocol

import torch
from botorch.acquisition.acquisition import AcquisitionFunction
from botorch.acquisition.input_constructors import acqf_input_constructor
from botorch.models.model import Model
from botorch.utils.transforms import (
    concatenate_pending_points,
    t_batch_mode_transform,
)
from torch import Tensor

from gp_eval.linalg import cholesky

__all__ = ["SupportsScoreCovariance", "qVarianceReduction", "variance_reduction"]


class SupportsScoreCovariance(Protocol):
    """A model with second moments of scores and benchmark score."""

    def performance_covariance(self, items: Tensor) -> Tensor:
        """Covariance of the benchmark score with the scores of items, any shape."""

    def score_variance(self, items: Tensor) -> Tensor:
        """Variances of the scores of items, of the same shape."""

    def score_covariance(self, items: Tensor) -> Tensor:
        """Covariance ``... x q x q`` of the scores of items ``... x q``."""


def variance_reduction(model: Any, items: Tensor) -> Tensor:
    """What the scores of batches of items ``b x q`` take off the variance, ``b``."""
    factor = cholesky(
        model.score_covariance(items), name="covariance of the candidate batch"
    )
    covariance = model.performance_covariance(items).unsqueeze(-1)
    white = torch.linalg.solve_triangular(factor, covariance, upper=False)
    return white.square().sum(dim=(-2, -1))


class qVarianceReduction(AcquisitionFunction):
    r"""Variance of the benchmark score that a batch of scores would take away.

    .. math::

        \alpha(A) = c_A^\top \Sigma_{AA|C}^{-1} c_A, \qquad
        c_A = \operatorname{Cov}(R, s_A \mid s_C)

    It depends on *which* items were evaluated and not on their scores. The model is
    read at each call, so one acquisition serves a whole run.

    Args:
        model: The belief over scores, see :class:`SupportsScoreCovariance`.
        X_pending: A ``m x 1`` tensor of items that are being evaluated.
    """

    def __init__(self, model: Model, X_pending: Tensor | None = None) -> None:
        super().__init__(model=model)
        self.set_X_pending(X_pending)

    @concatenate_pending_points
    @t_batch_mode_transform()  # type: ignore[arg-type]
    def forward(self, X: Tensor) -> Tensor:
        """Variance reduction of batches of items.

        Args:
            X: A ``b x q x 1`` tensor of item indices, ``q`` different ones a batch.

        Returns:
            A ``b``-dim tensor, in squared score units.
        """
        return self.of_items(X.squeeze(-1).long())

    def of_items(self, items: Tensor) -> Tensor:
        """Variance reduction of integer item indices ``b x q``, shape ``b``."""
        model: Any = self.model
        if items.shape[-1] == 1:
            items = items.squeeze(-1)
            covariance = model.performance_covariance(items)
            return covariance.square() / model.score_variance(items)
        return variance_reduction(model, items)


@acqf_input_constructor(qVarianceReduction)
def _construct_inputs(model: Model, X_pending: Tensor | None = None) -> dict[str, Any]:
    """Inputs of :class:`qVarianceReduction` for BoTorch's factories."""
    return {"model": model, "X_pending": X_pending}
