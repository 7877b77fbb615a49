"""What PIT values of calibrated beliefs look like when runs are alike."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from gp_eval.experiments.clusters import Clusters
from gp_eval.experiments.scoring import calibration_error

__all__ = ["UniformReference", "uniform_reference"]

_DRAWS = 2000
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


def uniform_reference(
    clusters: Clusters,
    correlations: tuple[float, float],
    *,
    level: float = 0.95,
    seed: int = 0,
) -> UniformReference:
    r"""Simulate uniform values of runs that are alike by target and by seed.

    A Gaussian copula with :math:`2 \sin(\pi \rho / 6)` between runs of a target or of a
    seed, which gives uniform values the correlation :math:`\rho`. The band is that of
    Säilynoja, Bürkner and Vehtari, "Graphical test for discrete uniformity" (2022):
    pointwise quantiles, all at the one level at which a share ``level`` of the
    simulated functions is within all of them.

    Args:
        clusters: Of the ``R`` runs.
        correlations: :math:`\rho` of two runs of a target and of two runs of a seed, as
            of :func:`~gp_eval.experiments.clusters.run_correlations`.
        level: Probability of the band.
        seed: Of the simulation.

    Raises:
        ValueError: For a correlation below 0, or two that sum to more than 1.
    """
    if min(correlations) < 0.0 or sum(correlations) > 1.0 + 1e-12:
        raise ValueError(
            "correlations: expected two that are not negative and sum to at most 1, "
            f"got {correlations}"
        )
    generator = torch.Generator().manual_seed(seed)

    def normal(labels: Tensor) -> Tensor:
        shape = (_DRAWS, int(labels.max()) + 1)
        values = torch.randn(shape, generator=generator, dtype=torch.float64)
        return values[:, labels]

    target, run = (2.0 * math.sin(math.pi * rho / 6.0) for rho in correlations)
    own = max(1.0 - target - run, 0.0)
    pit = torch.special.ndtr(
        math.sqrt(target) * normal(clusters.target)
        + math.sqrt(run) * normal(clusters.seed)
        + math.sqrt(own) * normal(clusters.single)
    )
    grid = torch.arange(1, _GRID, dtype=torch.float64) / _GRID
    ordered = pit.sort(-1).values
    counts = torch.searchsorted(ordered, grid.expand(_DRAWS, -1).contiguous())
    gaps = counts / len(clusters) - grid
    low, high = _simultaneous(gaps, level)
    limit = float(calibration_error(pit).quantile(level))
    return UniformReference(grid, low, high, limit)


def _simultaneous(curves: Tensor, level: float) -> tuple[Tensor, Tensor]:
    """Ends that a share ``level`` of the curves, ``draws x G``, stay within.

    Half of the curves give the quantiles, the other half says which to take: the same
    ones for both would make the band too narrow.
    """
    half = curves.shape[0] // 2
    ordered = curves[:half].T.sort(-1).values.contiguous()
    place = curves[half:].T.contiguous()
    # Of equal values the rank nearer the middle counts: F has but R + 1 values.
    rank_low = torch.searchsorted(ordered, place, right=True)
    rank_high = half - torch.searchsorted(ordered, place)
    depth = torch.minimum(rank_low, rank_high).amin(0)
    # Curves of a depth below this leave the band; so many may.
    allowed = math.floor((1.0 - level) * place.shape[1])
    keep = max(int(depth.sort().values[allowed]), 1)
    return ordered[:, keep - 1], ordered[:, half - keep]
