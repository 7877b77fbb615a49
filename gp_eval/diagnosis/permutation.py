"""Is a correlation more than chance? Permutation moments, and Holm's correction."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = [
    "Correlations",
    "below",
    "holm",
    "permutation_correlations",
    "z_quantile",
]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Correlations:
    """Correlations of pairs of columns, with what chance makes of them.

    Attributes:
        r: Pearson's correlation over the rows both columns have, one a column; NaN
            where there are fewer than 3 of them or one of the two is constant.
        n: Number of those rows.
        low: ``P(chance <= r)``, one-sided.
        high: ``P(chance >= r)``, one-sided.
        attainable: The correlation that the same values would have if both columns
            were sorted: the most that their distributions allow.
    """

    r: Floats
    n: NDArray[np.int64]
    low: Floats
    high: Floats
    attainable: Floats


def permutation_correlations(x: Floats, y: Floats) -> Correlations:
    r"""Correlate column by column and compare with all reorderings of the rows.

    Chance means that the rows of ``x`` are in any order. Over all orders,
    :math:`S = \sum_i u_i v_i` of the centred columns has mean 0, variance
    :math:`\sum u^2 \sum v^2 / (n - 1)` and third moment
    :math:`n \sum u^3 \sum v^3 / ((n - 1)(n - 2))`, whatever the distribution of the
    scores. The tail is that of the Pearson type III distribution of these moments,
    as is usual for permutation tests (Mielke and Berry, *Permutation Methods*); it is
    the normal one where a column is symmetric.

    Args:
        x: Scores, rows by columns; NaN marks what is missing.
        y: What to correlate them with, of the same shape.
    """
    from scipy.stats import pearson3

    gaps = np.isnan(x) | np.isnan(y)
    n = (~gaps).sum(0)
    x, y = np.where(gaps, np.nan, x), np.where(gaps, np.nan, y)
    u, v = _centred(x, n), _centred(y, n)
    scale = np.sqrt((u**2).sum(0) * (v**2).sum(0))
    usable = (n >= 3) & (scale > 0.0)
    scale = np.where(usable, scale, np.nan)
    r = (u * v).sum(0) / scale
    # NaN sorts to the end in both, so that values still meet values.
    u_sorted, v_sorted = (_centred(np.sort(t, 0), n) for t in (x, y))
    attainable = (u_sorted * v_sorted).sum(0) / scale
    size = np.where(usable, n, 3).astype(float)
    skew = (
        size * np.sqrt(size - 1) / (size - 2) * (u**3).sum(0) * (v**3).sum(0) / scale**3
    )
    z, skew = r * np.sqrt(size - 1), np.where(usable, skew, 0.0)
    low, high = pearson3.cdf(z, skew), pearson3.sf(z, skew)
    return Correlations(r, n, low, high, attainable)


def _centred(table: Floats, n: NDArray[np.int64]) -> Floats:
    """Columns minus their means, 0 where missing; a constant column is exactly 0."""
    gaps = np.isnan(table)
    filled = np.where(gaps, 0.0, table)
    mean = filled.sum(0) / np.maximum(n, 1)
    centred = np.where(gaps, 0.0, table - mean)
    spread = np.abs(centred).max(0, initial=0.0)
    # What is left of a constant by the rounding of its mean is no variance.
    rounding = 1e-12 * np.maximum(np.abs(filled).max(0, initial=0.0), 1e-300)
    return np.where(spread > rounding, centred, 0.0)


def holm(p: Floats, level: float) -> NDArray[np.bool_]:
    """Which hypotheses Holm's step-down procedure rejects.

    The probability of one or more false rejections is at most ``level``, however the
    tests depend on each other. NaN is never rejected and not counted.
    """
    p = np.asarray(p, dtype=np.float64)
    rejected = np.zeros(p.shape, dtype=bool)
    order = [i for i in np.argsort(p, kind="stable") if not np.isnan(p[i])]
    for step, i in enumerate(order):
        if p[i] > level / (len(order) - step):
            break
        rejected[i] = True
    return rejected


def below(
    r: ArrayLike, expected: ArrayLike, n: ArrayLike, z: float
) -> NDArray[np.bool_]:
    """Whether correlations are lower than expected, by ``z`` standard errors.

    On Fisher's scale, where the standard error is ``1 / sqrt(n - 3)``. False where one
    of the two is not known or ``n`` is less than 4.
    """
    most = 1.0 - 1e-12  # where Fisher's scale ends in double precision
    typical, seen = (
        np.arctanh(np.clip(np.asarray(a, dtype=np.float64), -most, most))
        for a in (expected, r)
    )
    root = np.sqrt(np.maximum(np.asarray(n, dtype=np.float64) - 3.0, 0.0))
    flags: NDArray[np.bool_] = (typical - seen) * root >= z
    return flags


def z_quantile(level: float, tests: int = 1) -> float:
    """One-sided normal quantile at ``level``, shared among ``tests`` (Bonferroni)."""
    from scipy.stats import norm

    return float(norm.isf(level / max(tests, 1)))
