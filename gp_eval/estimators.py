r"""Estimators of the full-benchmark score, Section 3.1 and Appendices A.2, A.3.

All of them hold for weighted items as well. The benchmark score is
:math:`R = \frac{1}{N} \sum_i w_i s_i` with weights scaled to sum to ``N`` (1 each for
the plain mean), :math:`T_b` is the summed weight of bucket ``b`` and :math:`u_b` that
of its unevaluated items: the paper's :math:`N_b` and :math:`N_b - n_b`.
"""

from __future__ import annotations

import torch
from torch import Tensor

from gp_eval.linalg import KernelTable, Observations, leave_one_out

__all__ = [
    "bayes_estimate",
    "control_variate_estimate",
    "out_of_sample_estimate",
    "performance_estimate",
    "posterior_mse",
]


def performance_estimate(
    observed: Tensor,
    abilities: Tensor,
    totals: Tensor,
    remaining: Tensor,
    *,
    scale: float,
) -> Tensor:
    r"""The estimator that unifies both regimes, Eq. (5).

    .. math::

        \hat R = w \sum_{i \in C} w_i s_i
            + \sum_b \left(\frac{T_b}{N} - (T_b - u_b) w\right) \mu_{b|C}

    Args:
        observed: Weighted sum of the evaluated scores, a scalar.
        abilities: Posterior means of the bucket abilities, shape ``B``.
        totals: ``T``, shape ``B``, with sum ``N``.
        remaining: ``u``, shape ``B``.
        scale: The paper's ``w``: ``1 / N`` in the nearly unique regime, else ``1 / n``.
    """
    n_items = totals.sum()
    coefficient = totals / n_items - (totals - remaining) * scale
    return observed * scale + coefficient @ abilities


def bayes_estimate(
    observed: Tensor, abilities: Tensor, remaining: Tensor, n_items: int
) -> Tensor:
    """Posterior mean of the benchmark score, Eq. (3): exact at ``n = N``.

    The same arguments as :func:`performance_estimate`; ``n_items`` is ``N``.
    """
    return (observed + remaining.dot(abilities)) / n_items


def control_variate_estimate(
    observed: Tensor,
    abilities: Tensor,
    totals: Tensor,
    remaining: Tensor,
    *,
    n: int,
) -> Tensor:
    r"""In-sample control variate estimator, Eq. (4), of ``n`` random items.

    The same arguments as :func:`performance_estimate`. Weighted items enter by their
    weight (Horvitz-Thompson): items are drawn uniformly, whatever they weigh.

    Raises:
        ValueError: For ``n = 0``, where there is no sample mean.
    """
    if n < 1:
        raise ValueError(f"n: expected at least 1 evaluated item, got {n}")
    return performance_estimate(observed, abilities, totals, remaining, scale=1.0 / n)


def out_of_sample_estimate(
    table: KernelTable,
    prior_mean: Tensor,
    observations: Observations,
    weights: Tensor,
    totals: Tensor,
) -> Tensor:
    r"""Control variate estimator with out-of-sample posteriors, Appendix A.2.

    .. math::

        \hat R_{CVO} = \frac{1}{n} \sum_{i \in C} \Big( w_i (s_i - \mu_{i|C \setminus
            \{i\}}) + \frac{1}{N} \sum_j w_j \mu_{j|C \setminus \{i\}} \Big)

    Unbiased over coresets drawn uniformly with replacement. The paper does without it
    because of the ``n`` posteriors; in closed form they cost one inverse.

    Args:
        table: Prior covariance of the buckets.
        prior_mean: Prior mean, shape ``B``.
        observations: The ``n`` evaluated items, by item.
        weights: Their weights (sum ``N`` over all items), shape ``n``.
        totals: Summed weight of the items by bucket, shape ``B``, with sum ``N``.
    """
    shares = totals / totals.sum()
    residual, average = leave_one_out(table, prior_mean, observations, shares)
    return torch.mean(weights * residual + average)


def posterior_mse(variance: Tensor, bayes: Tensor, reported: Tensor) -> Tensor:
    r"""Posterior mean squared error of a reported estimate, Appendix A.3.

    :math:`E[(R - \hat R)^2 \mid s_C] = \operatorname{Var}(R \mid s_C) +
    (\hat R_{Bayes} - \hat R)^2`, in squared score units.
    """
    return variance + (bayes - reported).square()
