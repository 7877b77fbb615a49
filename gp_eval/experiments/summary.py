"""From stored curves to the figures that a table or a plot shows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from scipy.stats import rankdata
from torch import Tensor

from gp_eval.experiments.metrics import evaluation_weighted_rmse
from gp_eval.experiments.store import CellResult

__all__ = ["FRACTIONS", "WIDTHS", "Stop", "Summary", "first_stop", "summarise"]

FRACTIONS = (0.05, 0.1, 0.2, 0.33, 0.5, 0.75)
"""Values of n / N at which summaries print curves."""

WIDTHS = (0.005, 0.0075, 0.01, 0.015, 0.02, 0.025, 0.03)
"""Thresholds on the width in the cost-accuracy trade-off of the BayesAME paper."""


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
    """

    width: float
    mean_fraction: float
    rmse: float
    coverage: float
    stopped: float


@dataclass(frozen=True)
class Summary:
    """All runs of one model in one setting.

    Attributes:
        data: Name of the data set.
        regime: How targets were split off.
        reference_fraction: Share of the pool used as references.
        model: Name of the model.
        n_items: ``N``.
        n_seeds: Seeds.
        n_targets: Targets over all draws.
        rmse: RMSE over seeds, pooled over targets in the squared domain, ``n_max``.
        rmse_per_target: Mean over targets of the RMSE over seeds, ``n_max``.
        coverage: Share of runs whose 95 % interval holds the truth, ``n_max``.
        spearman: Mean rank correlation of estimates and truths over the targets of a
            draw, ``n_max``; sets of targets that are all tied do not count.
        stops: Figures at the stop for each width.
        cpu_s: CPU seconds of one run.
    """

    data: str
    regime: str
    reference_fraction: float
    model: str
    n_items: int
    n_seeds: int
    n_targets: int
    rmse: Tensor
    rmse_per_target: Tensor
    coverage: Tensor
    spearman: Tensor
    stops: tuple[Stop, ...]
    cpu_s: float

    @property
    def is_complete(self) -> bool:
        """Whether runs went to ``n = N``, as the integrated RMSE needs."""
        return self.rmse.shape[0] == self.n_items

    def record(self) -> dict[str, Any]:
        """What ``gp-eval simulate --json`` prints."""

        def at(curve: Tensor) -> dict[str, float | None]:
            places = {f: max(1, round(f * self.n_items)) for f in FRACTIONS}
            values = {
                f"{f:g}": float(curve[n - 1])
                for f, n in places.items()
                if n <= curve.shape[0]
            }
            return {f: None if np.isnan(v) else v for f, v in values.items()}

        def integral(curve: Tensor) -> float | None:
            if not (self.is_complete and bool(curve.isfinite().all())):
                return None
            return float(evaluation_weighted_rmse(curve))

        return {
            "data": self.data,
            "regime": self.regime,
            "reference_fraction": self.reference_fraction,
            "model": self.model,
            "seeds": self.n_seeds,
            "targets": self.n_targets,
            "ewi_rmse": integral(self.rmse),
            "ewi_rmse_per_target": integral(self.rmse_per_target),
            "rmse": at(self.rmse),
            "coverage": at(self.coverage),
            "spearman": at(self.spearman),
            "stops": [vars(stop) for stop in self.stops],
            "cpu_s_per_run": self.cpu_s,
        }


def summarise(
    results: Iterable[CellResult],
    *,
    stable: float = 0.005,
    window: int = 30,
    widths: Sequence[float] = WIDTHS,
) -> list[Summary]:
    """One summary for each data set, regime, fraction and model, in order of arrival.

    Stopping rules are applied to the stored curves: one simulation serves them all.

    Args:
        results: Finished cells.
        stable: Threshold on the range of the last estimates.
        window: How many last estimates.
        widths: Thresholds on the width.
    """
    groups: dict[tuple[str, str, float, str], list[CellResult]] = defaultdict(list)
    for result in results:
        cell = result.cell
        key = (cell.data, cell.regime, cell.reference_fraction, cell.model)
        groups[key].append(result)
    return [
        _summarise(key, group, stable, window, widths) for key, group in groups.items()
    ]


def _summarise(
    key: tuple[str, str, float, str],
    group: list[CellResult],
    stable: float,
    window: int,
    widths: Sequence[float],
) -> Summary:
    shapes = {tuple(r.curves.mean.shape) for r in group}
    if len(shapes) > 1:
        raise ValueError(
            f"results of {key}: expected one number of targets and items, got "
            f"{sorted(shapes)}"
        )
    errors = torch.cat([r.curves.mean - r.truth.unsqueeze(-1) for r in group])
    estimates = torch.cat([r.curves.mean for r in group])
    half = torch.cat([r.curves.half_width() for r in group])
    # At n = N both sides are 0 up to the rounding of a sum.
    covered = (errors.abs() <= half + 1e-12).double()
    covered = torch.where(errors.isnan(), torch.nan, covered)
    targets: dict[tuple[int, str], list[Tensor]] = defaultdict(list)
    for result in group:
        for name, mean, truth in zip(
            result.targets, result.curves.mean, result.truth, strict=True
        ):
            targets[result.cell.draw, name].append((mean - truth).square())
    squares = torch.stack([torch.stack(rows).mean(0) for rows in targets.values()])
    stops = [
        _stop(width, estimates, errors, half, stable, window, group[0].n_items)
        for width in widths
    ]
    return Summary(
        *key,
        n_items=group[0].n_items,
        n_seeds=len({r.cell.seed for r in group}),
        n_targets=len(targets),
        rmse=squares.mean(0).sqrt(),
        rmse_per_target=squares.sqrt().mean(0),
        coverage=covered.mean(0),
        spearman=torch.stack([_spearman(r) for r in group]).nanmean(0),
        stops=tuple(stops),
        cpu_s=float(np.mean([r.cpu_s for r in group])),
    )


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


def _stop(
    width: float,
    estimates: Tensor,
    errors: Tensor,
    half: Tensor,
    stable: float,
    window: int,
    n_items: int,
) -> Stop:
    n, stopped = first_stop(
        estimates, 2 * half, width=width, stable=stable, window=window
    )
    place = (n - 1).unsqueeze(-1)
    error = errors.gather(1, place).squeeze(-1)
    inside = error.abs() <= half.gather(1, place).squeeze(-1) + 1e-12
    return Stop(
        width=width,
        mean_fraction=float(n.double().mean()) / n_items,
        rmse=float(error.square().mean().sqrt()),
        coverage=float(inside.double().mean()),
        stopped=float(stopped.double().mean()),
    )


def _spearman(result: CellResult) -> Tensor:
    """Rank correlation over targets at every n; NaN where all are tied."""
    estimates = rankdata(result.curves.mean.cpu().numpy(), axis=0)
    truth = rankdata(result.truth.numpy())[:, None]
    estimates = estimates - estimates.mean(0)
    truth = truth - truth.mean(0)
    scale = np.sqrt((estimates**2).sum(0) * (truth**2).sum(0))
    with np.errstate(invalid="ignore", divide="ignore"):
        return torch.from_numpy((estimates * truth).sum(0) / scale)
