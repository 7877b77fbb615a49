"""Leave-one-out posteriors in closed form."""

from __future__ import annotations

import torch
from torch import Tensor

from gp_eval.linalg.cholesky import cholesky
from gp_eval.linalg.kernel_table import KernelTable
from gp_eval.linalg.observations import Observations

__all__ = ["leave_one_out"]


def leave_one_out(
    table: KernelTable, prior_mean: Tensor, observations: Observations, weights: Tensor
) -> tuple[Tensor, Tensor]:
    r"""Posteriors that each leave out one of the ``m`` observations.

    With :math:`P = (\Sigma_{CC} + D_C)^{-1}` and :math:`a = P (s - \mu)` the residual
    of a left-out value is :math:`a_i / P_{ii}`, and leaving it out moves the mean of
    any ability by :math:`-\Sigma_{b,C} P_{:,i} a_i / P_{ii}`: one inverse serves all.

    Args:
        table: Prior covariance of the buckets.
        prior_mean: Prior mean, shape ``B``.
        observations: The ``m`` observed values, one an item.
        weights: Weights of a linear functional of the abilities, shape ``B``.

    Returns:
        ``s_i`` minus its posterior mean without it, and the functional's posterior
        mean without it, both of shape ``m``.
    """
    bucket = observations.bucket
    gram = table.block(bucket, bucket)
    gram.diagonal().add_(observations.noise)
    precision = torch.cholesky_inverse(
        cholesky(gram, name="covariance of the evaluated items")
    )
    scaled = precision @ (observations.value - prior_mean[bucket])
    residual = scaled / precision.diagonal()
    cross = table.matvec(weights)[bucket]
    full = weights @ prior_mean + cross @ scaled
    return residual, full - (precision @ cross) * residual
