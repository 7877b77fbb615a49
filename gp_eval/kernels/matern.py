r"""The rougher of the two priors of the multi-target setting."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from gp_eval.kernels._reference_kernel import ReferenceKernel

__all__ = ["ReferenceMaternKernel"]


class ReferenceMaternKernel(ReferenceKernel):
    r"""Matern-3/2 kernel over reference score vectors.

    .. math::

        k(\phi, \phi') = \alpha \left(1 + \sqrt{3} \beta d\right)
            \exp\left(-\sqrt{3} \beta d\right), \qquad
        d^2 = (\phi - \phi')^\top W (\phi - \phi')

    as in Section 3.2 of the BayesAME paper. It equals GPyTorch's
    ``ScaleKernel(MaternKernel(nu=1.5))`` with ``lengthscale = 1 / beta``; here the
    parameters that the optimizer sees and clips are ``alpha`` and ``beta``.

    Note:
        Unlike Eq. (1) the paper's formula has no :math:`1 / K`. With 50 references and
        binary scores, :math:`d` is about 4 and, at ``beta = 1``, buckets are nearly
        independent until ``beta`` is learned.

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
        beta (Tensor): Inverse length scale, ``batch_shape x 1 x 1``.
    """

    def from_squared_distance(
        self, distance: Tensor, alpha: Tensor, beta: Tensor, n_references: int
    ) -> Tensor:
        """The formula above at squared distances of any shape."""
        scaled = math.sqrt(3.0) * beta * _root(distance)
        return alpha * (1.0 + scaled) * torch.exp(-scaled)

    def _squared_distance(self, x1: Tensor, x2: Tensor, *, diag: bool) -> Tensor:
        # The quadratic expansion leaves 1e-16 where 0 is meant, and the root of it,
        # 1e-8, is what this kernel feels.
        if diag:
            return (x1 - x2).square().sum(-1)
        mode = "donot_use_mm_for_euclid_dist"
        return torch.cdist(x1, x2, compute_mode=mode).square()


def _root(distance: Tensor) -> Tensor:
    """Square root with derivative 0 at 0, where the kernel is differentiable."""
    zero = distance == 0
    return torch.where(zero, 0.0, torch.where(zero, 1.0, distance).sqrt())
