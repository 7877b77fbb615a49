"""What stopping rules cost and give, applied to stored curves."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from gp_eval.experiments.calibration import covers
from gp_eval.experiments.clusters import Clusters, coverage_standard_error
from gp_eval.experiments.scoring import interval_score

__all__ = ["Stop", "first_stop", "stop_at"]


@dataclass(frozen=True)
class Stop:
    """What stopping at a width costs and gives.

    Attributes:
        width: The threshold, in score units.
        mean_fraction: Mean of n / N at the stop.
        rmse: RMSE at the stop, in score units.
        coverage: Share of runs whose 95 % interval at the stop holds the truth.
        stopped: Share of runs that met the rule; the others count at their last item,
            which is no stop if runs were cut before ``n = N``.
        coverage_se: Standard error of the coverage, clustered by target and seed;
            ``None`` for one of each.
        mean_width: Mean width of the interval at the stop, in score units.
        interval_score: Mean interval score at the stop, in score units.
        coverage_stopped: Coverage among the runs that met the rule before ``n = N``,
            without those that are exact because nothing is left; ``None`` if there are
            none.
        coverage_stopped_se: Its standard error, ``None`` if they are of one target and
            one seed.
    """

    width: float
    mean_fraction: float
    rmse: float
    coverage: float
    stopped: float
    coverage_se: float | None
    mean_width: float
    interval_score: float
    coverage_stopped: float | None
    coverage_stopped_se: float | None


def first_stop(
    estimates: Tensor, widths: Tensor, *, width: float, stable: float, window: int
) -> tuple[Tensor, Tensor]:
    """Number of items at which each run stops, and whether it does, shape ``R`` each.

    The two conditions of :class:`~gp_eval.StoppingRule`, without its budget, on whole
    curves ``R x n_max``. Runs that do not stop have ``n_max``.
    """
    n_max = estimates.shape[1]
    stops = torch.full((estimates.shape[0],), n_max, dtype=torch.long)
    if n_max < window:
        return stops, torch.zeros_like(stops, dtype=torch.bool)
    last = estimates.unfold(1, window, 1)
    met = last.amax(-1) - last.amin(-1) <= stable
    met &= widths[:, window - 1 :] <= width
    first = met.long().argmax(1) + window
    return torch.where(met.any(1), first, stops), met.any(1)


def stop_at(
    width: float,
    estimates: Tensor,
    errors: Tensor,
    half: Tensor,
    clusters: Clusters,
    *,
    stable: float,
    window: int,
    n_items: int,
) -> Stop:
    """Figures at the stop of ``R`` runs.

    Args:
        width: Threshold on the width, in score units.
        estimates: Estimates, ``R x n_max``.
        errors: Estimates minus truths, ``R x n_max``.
        half: Half widths of the 95 % interval, ``R x n_max``.
        clusters: Target and seed of each run.
        stable: Threshold on the range of the last estimates.
        window: How many last estimates.
        n_items: ``N``.
    """
    n, stopped = first_stop(
        estimates, 2.0 * half, width=width, stable=stable, window=window
    )
    place = (n - 1).unsqueeze(-1)
    error = errors.gather(1, place).squeeze(-1)
    half_at = half.gather(1, place).squeeze(-1)
    inside = covers(error, half_at)
    before = stopped & (n < n_items)
    coverage_stopped, coverage_stopped_se = _coverage(
        inside[before], clusters.subset(before)
    )
    return Stop(
        width=width,
        mean_fraction=float(n.double().mean()) / n_items,
        rmse=float(error.square().mean().sqrt()),
        coverage=float(inside.mean()),
        stopped=float(stopped.double().mean()),
        coverage_se=_coverage(inside, clusters)[1],
        mean_width=float(2.0 * half_at.mean()),
        interval_score=float(interval_score(error, half_at).mean()),
        coverage_stopped=coverage_stopped,
        coverage_stopped_se=coverage_stopped_se,
    )


def _coverage(inside: Tensor, clusters: Clusters) -> tuple[float | None, float | None]:
    """Coverage and its standard error, ``None`` where there is none."""
    if not inside.shape[0]:
        return None, None
    error = float(coverage_standard_error(inside, clusters))
    return float(inside.mean()), None if math.isnan(error) else error
