"""Metrics over many runs (Section 5 of the BayesAME paper)."""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ["evaluation_weighted_rmse", "random_sample_rmse", "rmse_curve"]


def rmse_curve(estimates: Tensor, truth: Tensor) -> Tensor:
    """Root mean squared error over seeds, for every number of evaluated items.

    Args:
        estimates: Estimates after ``n = 1..N`` items, ``R x N`` for ``R`` seeds.
        truth: The full-benchmark score, a scalar.

    Returns:
        A tensor of shape ``N``, in score units.
    """
    return (estimates - truth).square().mean(dim=0).sqrt()


def evaluation_weighted_rmse(
    rmse: Tensor, *, n_first: int = 1, n_items: int | None = None
) -> Tensor:
    r"""Evaluation-weighted integrated RMSE of a curve over ``n = 1..N``.

    :math:`10^4 \int_0^1 x \, \mathrm{RMSE}(x) \, dx` with :math:`x = n / N`, by the
    trapezoid rule over ``n = 1..N``. The paper prints
    :math:`100 \int_0^N n' \mathrm{RMSE}(n') dn'`; with ``x`` for ``n'`` and the RMSE
    in percent, RS-Mean on IFEval has its published value.

    Args:
        rmse: RMSE in score units, ``... x N``.
        n_first: The ``n`` of the first column.
        n_items: ``N``, for a curve that ends before; the integral is then over the part
            of n / N that it covers, and is comparable only over that part.
    """
    n = torch.arange(
        n_first, n_first + rmse.shape[-1], dtype=rmse.dtype, device=rmse.device
    )
    x = n / (n[-1] if n_items is None else n_items)
    return 1e4 * torch.trapezoid(x * rmse, x, dim=-1)


def random_sample_rmse(scores: Tensor) -> Tensor:
    r"""Exact RMSE of the mean of a random sample, without any simulation.

    :math:`\sqrt{\frac{S^2}{n} (1 - \frac{n}{N})}` with the variance :math:`S^2` of
    divisor ``N - 1``: sampling without replacement.

    Args:
        scores: All scores of a target, ``... x N``.

    Returns:
        A tensor ``... x N`` for ``n = 1..N``, in score units.
    """
    n_items = scores.shape[-1]
    n = torch.arange(1, n_items + 1, dtype=scores.dtype, device=scores.device)
    variance = scores.var(dim=-1, keepdim=True)
    return (variance / n * (1.0 - n / n_items)).clamp_min(0.0).sqrt()
