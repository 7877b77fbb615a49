r"""Information gain about the benchmark score.

Eq. (6) of the BayesAME paper for one item and Appendix B.1 for a batch. It is the
mutual information of Bayesian quadrature (:math:`-\frac12 \log(1 - \rho^2)`, with
:math:`\rho` the correlation of the items with the integral), for a sum over the
unevaluated items in place of an integral.
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

from gp_eval.acquisition.variance_reduction import variance_reduction

__all__ = ["SupportsPerformance", "gain_of_share", "qPerformanceInformationGain"]


class SupportsPerformance(Protocol):
    """A model with a joint Gaussian belief over scores and benchmark score."""

    def performance_variance(self) -> Tensor:
        """Variance of the benchmark score given what was evaluated, a scalar."""

    def performance_covariance(self, items: Tensor) -> Tensor:
        """Covariance of the benchmark score with the scores of items, any shape."""

    def squared_correlation(self, items: Tensor) -> Tensor:
        """Squared correlation of the benchmark score with items, any shape."""

    def score_covariance(self, items: Tensor) -> Tensor:
        """Covariance ``... x q x q`` of the scores of items ``... x q``."""


class qPerformanceInformationGain(AcquisitionFunction):
    r"""Expected reduction of the entropy of the benchmark score, in nats.

    .. math::

        \alpha(A) = -\frac12 \log\left(1 - \frac{c_A^\top \Sigma_{AA|C}^{-1} c_A}
            {\operatorname{Var}(R \mid s_C)}\right), \qquad
        c_A = \operatorname{Cov}(R, s_A \mid s_C)

    For ``q = 1`` this is Eq. (6), for any ``q`` the closed form of Appendix B.1. It
    depends on *which* items were evaluated and not on their scores. The model is read
    at each call, so one acquisition serves a whole run.

    For several targets inputs are rows ``[item, target]``, and :math:`R` is the score
    of the target that a batch begins with (Section 3.2): whatever else is in the batch,
    or pending, tells about it as well.

    Args:
        model: The belief over scores, such as
            :class:`~gp_eval.models.SequentialBucketModel`.
        X_pending: A ``m x 1`` tensor of items that are being evaluated, or ``m x 2``.

    Example:
        >>> gain = qPerformanceInformationGain(model)
        >>> choices = torch.arange(N, dtype=torch.double).unsqueeze(-1)
        >>> item, value = optimize_acqf_discrete(gain, q=1, choices=choices)
    """

    def __init__(self, model: Model, X_pending: Tensor | None = None) -> None:
        super().__init__(model=model)
        self.set_X_pending(X_pending)

    @concatenate_pending_points
    @t_batch_mode_transform()  # type: ignore[arg-type]
    def forward(self, X: Tensor) -> Tensor:
        """Information gain of batches of items.

        Args:
            X: A ``b x q x 1`` tensor of item indices, ``q`` different ones a batch; for
                several targets ``b x q x 2``, rows ``[item, target]``.

        Returns:
            A ``b``-dim tensor of gains, in nats.
        """
        model: Any = self.model
        return self.of_items(model.points(X))

    def of_items(self, items: Tensor) -> Tensor:
        """Information gain of integer item indices ``b x q``, shape ``b``."""
        model: Any = self.model
        if items.shape[-1] == 1:
            share = model.squared_correlation(items.squeeze(-1))
        else:
            total = model.performance_variance()
            if total.ndim:  # of several targets, the one that the batch begins with
                total = total[model.target_of(items[..., 0])]
            # With no variance left, as at n = N, no batch explains any.
            total = torch.where(total > 0.0, total, torch.inf)
            share = variance_reduction(model, items) / total
        return gain_of_share(share)


def gain_of_share(share: Tensor) -> Tensor:
    """Information gain, in nats, of what takes this share of a variance; in place."""
    # The last item takes all the variance there is: log 0 would be rounding.
    share = share.clamp_max(1.0 - torch.finfo(share.dtype).eps)
    return share.neg_().log1p_().mul_(-0.5)


@acqf_input_constructor(qPerformanceInformationGain)
def _construct_inputs(model: Model, X_pending: Tensor | None = None) -> dict[str, Any]:
    """Inputs of :class:`qPerformanceInformationGain` for BoTorch's factories."""
    return {"model": model, "X_pending": X_pending}
