"""Leave-one-out posteriors in closed form."""

from __future__ import annotations

import torch
from torch import Tensor

from gp_eval.linalg.cholesky import cholesky
from gp_eval.linalg.kernel_table import KernelTable
from gp_eval.linalg.observations import Observations

__all__ = ["leave_one_out", "leave_one_out_scores"]


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


def leave_one_out_scores(
    table: KernelTable, prior_mean: Tensor, bucket: Tensor, score: Tensor, noise: Tensor
) -> tuple[Tensor, Tensor]:
    r"""Prediction of each evaluated score from all the others.

    With :math:`P` and :math:`a` as in :func:`leave_one_out`, a score is predicted as
    :math:`s_i - a_i / P_{ii}` with variance :math:`1 / P_{ii}`. Both come from the
    means of buckets (Eq. (8)), of precision :math:`Q = (\Sigma + D / n_b)^{-1}`: within
    a bucket deviations from the mean are noise alone, so :math:`P_{ii} = Q_{bb} /
    n_b^2 + (1 - 1 / n_b) / d_b`, and :math:`a_i = [Q (\bar s - \mu)]_b / n_b +
    (s_i - \bar s_b) / d_b`. That takes :math:`O(\min(n, B)^3)`, and nothing cancels.

    Args:
        table: Prior covariance of the buckets.
        prior_mean: Prior mean, shape ``B``.
        bucket: Buckets of the evaluated items, shape ``n``.
        score: Their scores, shape ``n``.
        noise: Noise variance :math:`d_b` of all buckets, shape ``B``.

    Returns:
        Predictive means and variances (with the noise of the score), both of shape
        ``n``.
    """
    means = Observations.by_bucket(bucket, score, noise)
    seen, place, counts = torch.unique(bucket, return_inverse=True, return_counts=True)
    gram = table.block(seen, seen)
    gram.diagonal().add_(means.noise)
    precision = torch.cholesky_inverse(
        cholesky(gram, name="covariance of the evaluated items")
    )
    scaled = precision @ (means.value - prior_mean[seen])
    n, own = counts[place].to(score), noise[bucket]
    own_precision = precision.diagonal()[place] / n.square() + (1.0 - 1.0 / n) / own
    own_scaled = scaled[place] / n + (score - means.value[place]) / own
    return score - own_scaled / own_precision, own_precision.reciprocal()
