"""What PIT values of calibrated beliefs look like when runs of a target are alike."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from gp_eval.experiments.scoring import calibration_error

__all__ = ["UniformReference", "cluster_correlation", "uniform_reference"]

_DRAWS = 1000
_GRID = 50


@dataclass(frozen=True)
class UniformReference:
    """How far uniform PIT values of so many, correlated, runs stray.

    Attributes:
        grid: Places in (0, 1), shape ``G``.
        low: Lower end of the band of ``F(u) - u`` at each place, for the empirical
            distribution function ``F``, shape ``G``.
        high: Upper end, shape ``G``. The whole of ``F`` stays within the band with the
            probability ``level``.
        error_limit: What the calibration error stays below with that probability.
    """

    grid: Tensor
    low: Tensor
    high: Tensor
    error_limit: float


def cluster_correlation(values: Tensor, clusters: Tensor) -> float:
    r"""Correlation of two runs of one cluster, in [0, 1].

    The intraclass correlation by analysis of variance,
    :math:`(B - W) / (B + (m_0 - 1) W)` with the mean squares between and within
    clusters and :math:`m_0 = (R - \sum_g m_g^2 / R) / (G - 1)`. 0 where it cannot be
    told: for one cluster, clusters of one run each, or values all alike.

    Args:
        values: Values of ``R`` runs.
        clusters: Index ``0..G-1`` of each run's cluster, shape ``R``.
    """
    n_runs, sizes = values.shape[0], clusters.bincount().to(values)
    n_clusters = sizes.shape[0]
    if n_clusters < 2 or n_clusters == n_runs:
        return 0.0
    means = torch.zeros_like(sizes).index_add_(0, clusters, values) / sizes
    between = (sizes * (means - values.mean()).square()).sum() / (n_clusters - 1)
    within = (values - means[clusters]).square().sum() / (n_runs - n_clusters)
    size = (n_runs - sizes.square().sum() / n_runs) / (n_clusters - 1)
    total = between + (size - 1.0) * within
    if float(total) <= 0.0:
        return 0.0
    return min(max(float((between - within) / total), 0.0), 1.0)


def uniform_reference(
    clusters: Tensor, correlation: float, *, level: float = 0.95, seed: int = 0
) -> UniformReference:
    r"""Simulate uniform values whose runs are correlated within clusters.

    A Gaussian copula with :math:`2 \sin(\pi \rho / 6)` between runs of a cluster, which
    gives uniform values the correlation :math:`\rho`. The band is that of Säilynoja,
    Bürkner and Vehtari, "Graphical test for discrete uniformity" (2022): pointwise
    quantiles, all at the one level at which a share ``level`` of the simulated
    functions is within all of them.

    Args:
        clusters: Index ``0..G-1`` of each run's cluster, shape ``R``.
        correlation: :math:`\rho` in [0, 1], as of :func:`cluster_correlation`.
        level: Probability of the band.
        seed: Of the simulation.

    Raises:
        ValueError: For a correlation outside [0, 1].
    """
    if not 0.0 <= correlation <= 1.0:
        raise ValueError(f"correlation: expected one in [0, 1], got {correlation}")
    copula = 2.0 * math.sin(math.pi * correlation / 6.0)
    generator = torch.Generator().manual_seed(seed)

    def normal(size: int) -> Tensor:
        shape = (_DRAWS, size)
        return torch.randn(shape, generator=generator, dtype=torch.float64)

    shared = normal(int(clusters.max()) + 1)[:, clusters]
    own = normal(clusters.shape[0])
    pit = torch.special.ndtr(math.sqrt(copula) * shared + math.sqrt(1 - copula) * own)
    grid = torch.arange(1, _GRID, dtype=torch.float64) / _GRID
    ordered = pit.sort(-1).values
    counts = torch.searchsorted(ordered, grid.expand(_DRAWS, -1).contiguous())
    gaps = counts / clusters.shape[0] - grid
    low, high = _simultaneous(gaps, level)
    limit = float(calibration_error(pit).quantile(level))
    return UniformReference(grid, low, high, limit)


def _simultaneous(curves: Tensor, level: float) -> tuple[Tensor, Tensor]:
    """Ends that a share ``level`` of the curves, ``draws x G``, stay within."""
    draws = curves.shape[0]
    ordered = curves.T.sort(-1).values.contiguous()
    place = curves.T.contiguous()
    # Of equal values the rank nearer the middle counts: F has but R + 1 values.
    rank_low = torch.searchsorted(ordered, place, right=True)
    rank_high = draws - torch.searchsorted(ordered, place)
    depth = torch.minimum(rank_low, rank_high).amin(0)
    # Curves of a depth below this leave the band; so many may.
    allowed = math.floor((1.0 - level) * draws)
    keep = int(depth.sort().values[allowed])
    return ordered[:, keep - 1], ordered[:, draws - keep]
