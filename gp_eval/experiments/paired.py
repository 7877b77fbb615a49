"""One model against another on the same targets, references and seeds."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from gp_eval.experiments.metrics import evaluation_weighted_rmse
from gp_eval.experiments.store import CellResult

__all__ = ["RmseRatio", "geometric_mean", "rmse_ratio", "squares_per_target"]


@dataclass(frozen=True)
class RmseRatio:
    """Integrated RMSE of a model relative to another's, on the same runs.

    Attributes:
        ratio: The model's integral over the base's; below 1 the model is better.
        log_se: Standard error of the ratio's logarithm, by the jackknife over targets;
            NaN for one target.
        integral: The model's evaluation-weighted integrated RMSE over n / N in
            ``n_first / N .. n_max / N``, all of it unless runs were cut.
        base_integral: The base's.
        n_first: The first ``n`` at which both have an estimate.
        n_max: The last ``n`` of both.
        n_seeds: Pairs of seed and draw that both have; others are left out.
        n_targets: Targets over all draws.
    """

    ratio: float
    log_se: float
    integral: float
    base_integral: float
    n_first: int
    n_max: int
    n_seeds: int
    n_targets: int

    @property
    def se(self) -> float:
        """Standard error of the ratio itself, to first order."""
        return self.ratio * self.log_se


def squares_per_target(
    results: Iterable[CellResult],
) -> dict[tuple[int, str], Tensor]:
    """Mean over seeds of the squared errors, ``n_max``, by draw and target."""
    errors: dict[tuple[int, str], list[Tensor]] = defaultdict(list)
    for result in results:
        for name, mean, truth in zip(
            result.targets, result.curves.mean, result.truth, strict=True
        ):
            errors[result.cell.draw, name].append((mean - truth).square())
    return {key: torch.stack(rows).mean(0) for key, rows in errors.items()}


def rmse_ratio(results: Sequence[CellResult], base: Sequence[CellResult]) -> RmseRatio:
    r"""Ratio of integrated RMSEs, with targets pooled in the squared domain.

    Both are read on the same draws, seeds and ``n``. Leaving out one target at a time
    in both gives the standard error of the log ratio,
    :math:`\sqrt{\frac{T - 1}{T} \sum_t (\theta_t - \bar\theta)^2}`: errors of a target
    go together, so that this is far less than that of two integrals by themselves.

    Args:
        results: Results of the model in one setting.
        base: Results of the model to compare with, in the same setting.

    Raises:
        ValueError: If they share no seed, or are of other data, targets or settings.
    """
    shared = _keys(results) & _keys(base)
    if not shared:
        raise ValueError("results, base: expected a common seed and draw, found none")
    mine = [r for r in results if (r.cell.draw, r.cell.seed) in shared]
    theirs = [r for r in base if (r.cell.draw, r.cell.seed) in shared]
    settings = {
        (r.cell.data, r.cell.regime, r.cell.reference_fraction, r.fingerprint)
        for r in (*mine, *theirs)
    }
    if len(settings) > 1:
        raise ValueError(f"results, base: expected one setting, got {sorted(settings)}")
    a, b = squares_per_target(mine), squares_per_target(theirs)
    if a.keys() != b.keys():
        raise ValueError("results, base: expected the same targets")
    n_items = mine[0].n_items
    squares = _aligned(list(a.values()), [b[key] for key in a])
    first = int(squares.isfinite().all(0).all(0).long().argmax())
    whole = _integrals(squares.mean(1), first, n_items)
    n_targets = squares.shape[1]
    total = squares.sum(1, keepdim=True)
    without = _integrals((total - squares) / max(n_targets - 1, 1), first, n_items)
    return RmseRatio(
        ratio=float(whole[0] / whole[1]),
        log_se=_jackknife((without[0] / without[1]).log()),
        integral=float(whole[0]),
        base_integral=float(whole[1]),
        n_first=first + 1,
        n_max=squares.shape[-1],
        n_seeds=len(shared),
        n_targets=n_targets,
    )


def geometric_mean(ratios: Sequence[RmseRatio]) -> tuple[float, float]:
    """Geometric mean of ratios over cells and the standard error of its logarithm.

    Cells count alike, and as independent of each other.

    Raises:
        ValueError: For no ratios.
    """
    if not ratios:
        raise ValueError("ratios: expected at least one, got none")
    logs = [math.log(r.ratio) for r in ratios]
    error = math.sqrt(math.fsum(r.log_se**2 for r in ratios)) / len(ratios)
    return math.exp(math.fsum(logs) / len(logs)), error


def _keys(results: Sequence[CellResult]) -> set[tuple[int, int]]:
    return {(r.cell.draw, r.cell.seed) for r in results}


def _aligned(mine: list[Tensor], theirs: list[Tensor]) -> Tensor:
    """Squared errors ``2 x T x n`` over the ``n`` that both have."""
    n_max = min(row.shape[0] for row in (*mine, *theirs))
    return torch.stack(
        [torch.stack([row[:n_max] for row in rows]) for rows in (mine, theirs)]
    )


def _integrals(squares: Tensor, first: int, n_items: int) -> Tensor:
    """Evaluation-weighted integrals of the roots, from the given column on."""
    # Rounding of a sum from which one target was taken away.
    rmse = squares[..., first:].clamp_min(0.0).sqrt()
    return evaluation_weighted_rmse(rmse, n_first=first + 1, n_items=n_items)


def _jackknife(values: Tensor) -> float:
    """Standard error of an estimate from those with one cluster left out."""
    n = values.shape[0]
    if n < 2:
        return math.nan
    spread = (values - values.mean()).square().sum()
    return float((spread * (n - 1) / n).sqrt())
