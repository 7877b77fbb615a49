"""How well the intervals and distributions of simulated runs hold."""

from __future__ import annotations

import torch
from torch import Tensor

from gp_eval.experiments.curves import Curves
from gp_eval.intervals import probability_below

__all__ = [
    "calibration_error",
    "interval_score",
    "pit_values",
]

_EXACT = 1e-12
"""Below this an error is rounding, as at ``n = N``; in score units."""


def pit_values(curves: Curves, truth: Tensor, *, normal: bool = False) -> Tensor:
    """Probability integral transform: what each belief gave to values below the truth.

    Uniform on [0, 1] over runs if beliefs hold. Most values near 0 and 1 mean intervals
    that are too narrow, most in the middle ones that are too wide, and most on one side
    an estimate that is off. A belief without any spread gives 0 or 1, or 0.5 where it
    is right.

    Args:
        curves: Beliefs of ``R`` runs after ``n = 1..n_max`` items.
        truth: Their full-benchmark scores, shape ``R``.
        normal: Take the beliefs as normal, with their degrees of freedom left out.

    Returns:
        Probabilities ``R x n_max``; NaN where the estimate is.
    """
    error = truth.unsqueeze(-1) - curves.mean
    error = torch.where(error.abs() <= _EXACT, 0.0, error)
    scale = curves.variance.clamp_min(0.0).sqrt()
    # 0 / 0 is no deviation; anything else over 0 is infinitely many scales.
    deviation = torch.where(error == 0.0, 0.0, error / scale)
    below = probability_below(deviation, None if normal else curves.dof)
    return torch.where(error.isnan(), torch.nan, below)


def interval_score(error: Tensor, half_width: Tensor, *, level: float = 0.95) -> Tensor:
    r"""Interval score of central intervals; lower is better.

    :math:`(u - l) + \frac{2}{\alpha} (l - x)_+ + \frac{2}{\alpha} (x - u)_+` with
    :math:`\alpha = 1 - \mathrm{level}`, Eq. (43) of Gneiting and Raftery, "Strictly
    proper scoring rules, prediction, and estimation" (2007). Its mean is least for the
    true quantiles, so that neither narrow nor wide intervals gain by it.

    Args:
        error: Estimate minus truth, of any shape, in score units.
        half_width: Half widths around the estimate, of the same shape.
        level: Probability that the intervals claim.

    Returns:
        Scores of the same shape, in score units.
    """
    outside = (error.abs() - half_width).clamp_min(0.0)
    return 2.0 * half_width + 2.0 / (1.0 - level) * outside


def calibration_error(pit: Tensor) -> Tensor:
    r"""Distance of PIT values from uniform ones: :math:`\int_0^1 |F(u) - u| \, du`.

    ``F`` is their empirical distribution function. 0 is perfect, 0.25 is had by values
    that are all 0.5 or half of them 0 and half 1, and 0.5 is the most, by values that
    are all 0 or all 1. Small samples of uniform values are above 0 as well.

    Args:
        pit: Probabilities ``... x R``.

    Returns:
        A tensor of shape ``...``.
    """
    n_runs = pit.shape[-1]
    edges = torch.arange(n_runs + 1, dtype=pit.dtype, device=pit.device) / n_runs
    low, high = edges[:-1], edges[1:]
    # The same area, seen from the other axis: the i-th lowest value is the quantile
    # over (i - 1) / R .. i / R, where uniform ones have the identity.
    value = pit.sort(dim=-1).values
    inside = value.clamp(low, high)
    area = (inside - low).square() / 2.0 + (high - inside).square() / 2.0
    return (area + (value - inside).abs() / n_runs).sum(-1)
