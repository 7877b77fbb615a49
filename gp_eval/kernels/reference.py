r"""The prior covariance of the BayesAME paper as a GPyTorch kernel."""

from __future__ import annotations

import torch
from torch import Tensor

from gp_eval.kernels._reference_kernel import ReferenceKernel

__all__ = ["ReferenceScoreKernel"]


class ReferenceScoreKernel(ReferenceKernel):
    r"""Squared-exponential kernel over reference score vectors.

    .. math::

        k(\phi, \phi') = \alpha \exp\left(
            -\frac{\beta}{K} (\phi - \phi')^\top W (\phi - \phi') \right)

    where :math:`K` is the number of references (read from the inputs, so that
    ``beta`` keeps its meaning when the reference set changes) and :math:`W` is the
    identity by default: Eq. (1) of the BayesAME paper. With ``weights`` it is the
    metadata-weighted prior of Appendix B.2, :math:`W = \operatorname{diag}(w)`.

    The constraints carry no transform: ``raw_alpha`` *is* ``alpha``, so an optimizer
    sees the paper's parameters and their bound of ``1e-5``.

    Note:
        The paper calls ``w_k = 1 / K`` the uniform weights. In the formula above they
        rescale ``beta`` by ``1 / K``; only ``weights=None`` is Eq. (1).

    Args:
        weights: A ``K``-dim tensor of non-negative reference weights ``w``.
        batch_shape: Batch shape of the hyperparameters.
        active_dims: Input columns the kernel reads.
        alpha_constraint: Constraint on ``alpha``; default ``alpha >= 1e-5``.
        beta_constraint: Constraint on ``beta``; default ``beta >= 1e-5``.
        alpha_prior: Prior on ``alpha``.
        beta_prior: Prior on ``beta``.

    Attributes:
        alpha (Tensor): Prior variance, ``batch_shape x 1 x 1``, in squared score units.
        beta (Tensor): Inverse squared length scale, ``batch_shape x 1 x 1``.

    Example:
        >>> kernel = ReferenceScoreKernel().double()
        >>> phi = torch.rand(5, 3, dtype=torch.float64)
        >>> kernel(phi).to_dense().shape
        torch.Size([5, 5])
    """

    def from_squared_distance(
        self, distance: Tensor, alpha: Tensor, beta: Tensor, n_references: int
    ) -> Tensor:
        """Eq. (1) at squared distances of any shape."""
        return alpha * torch.exp(-beta / n_references * distance)
