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

from gp_eval.experiments.calibration import Calibration, calibrate, covers
from gp_eval.experiments.metrics import evaluation_weighted_rmse
from gp_eval.experiments.paired import squares_per_target
from gp_eval.experiments.stops import Stop, first_stop, stop_at
from gp_eval.experiments.store import CellResult

__all__ = ["FRACTIONS", "WIDTHS", "Stop", "Summary", "first_stop", "summarise"]

FRACTIONS = (0.05, 0.1, 0.2, 0.33, 0.5, 0.75)
"""Values of n / N at which summaries print curves."""

WIDTHS = (0.005, 0.0075, 0.01, 0.015, 0.02, 0.025, 0.03, 0.05)
"""Thresholds on the width: those of the BayesAME paper's cost-accuracy trade-off, and
0.05 as people choose it."""


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
        calibration: Whether the beliefs hold.
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
    calibration: Calibration

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
            "coverage_se": at(self.calibration.coverage_se),
            "width": at(self.calibration.width),
            "interval_score": at(self.calibration.interval_score),
            **self.calibration.record(),
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
    calibration = calibrate(group, FRACTIONS)
    squares = torch.stack(list(squares_per_target(group).values()))
    stops = [
        stop_at(
            width,
            estimates,
            errors,
            half,
            calibration.clusters,
            stable=stable,
            window=window,
            n_items=group[0].n_items,
        )
        for width in widths
    ]
    return Summary(
        *key,
        n_items=group[0].n_items,
        n_seeds=len({r.cell.seed for r in group}),
        n_targets=squares.shape[0],
        rmse=squares.mean(0).sqrt(),
        rmse_per_target=squares.sqrt().mean(0),
        coverage=covers(errors, half).mean(0),
        spearman=torch.stack([_spearman(r) for r in group]).nanmean(0),
        stops=tuple(stops),
        cpu_s=float(np.mean([r.cpu_s for r in group])),
        calibration=calibration,
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
