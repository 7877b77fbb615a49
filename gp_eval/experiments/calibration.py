"""Whether beliefs hold: coverage, width, interval score and PIT values by n."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import torch
from torch import Tensor

from gp_eval.experiments.clusters import (
    Clusters,
    coverage_standard_error,
    run_correlations,
)
from gp_eval.experiments.scoring import (
    calibration_error,
    interval_score,
    pit_values,
)
from gp_eval.experiments.store import CellResult
from gp_eval.experiments.uniform import (
    UniformReference,
    uniform_reference,
)

__all__ = ["Calibration", "calibrate", "covers", "run_clusters"]

_BINS = 10


@dataclass(frozen=True)
class Calibration:
    """Figures that belong beside the coverage.

    Attributes:
        coverage_se: Standard error of the coverage by
            :func:`~gp_eval.experiments.clusters.coverage_standard_error`, ``n_max``.
        width: Mean full width of the 95 % interval, score units, ``n_max``.
        interval_score: Mean interval score at 95 %, score units, ``n_max``.
        pit: PIT values of the ``R`` runs by n / N; no key beyond ``n_max``, or where
            there is no estimate yet.
        normal_pit: The same if beliefs are taken as normal; ``None`` if they are.
        clusters: Target and seed of each run.
    """

    coverage_se: Tensor
    width: Tensor
    interval_score: Tensor
    pit: Mapping[float, Tensor]
    normal_pit: Mapping[float, Tensor] | None
    clusters: Clusters

    @cached_property
    def references(self) -> dict[float, UniformReference]:
        """What uniform values look like, by n / N."""
        return {
            share: _reference(self.clusters, run_correlations(pit, self.clusters))
            for share, pit in self.pit.items()
        }

    def errors(self, *, normal: bool = False) -> dict[float, float]:
        """The calibration error by n / N."""
        values = (self.normal_pit or self.pit) if normal else self.pit
        return {share: float(calibration_error(v)) for share, v in values.items()}

    def record(self) -> dict[str, Any]:
        """What ``gp-eval simulate --json`` prints of PIT values.

        ``pit`` is the share of runs in tenths of [0, 1]; 0.1 each is perfect.
        """

        def keyed(values: Mapping[float, Any]) -> dict[str, Any]:
            return {f"{share:g}": value for share, value in values.items()}

        return {
            "calibration_error": keyed(self.errors()),
            "calibration_error_limit": keyed(
                {share: r.error_limit for share, r in self.references.items()}
            ),
            "calibration_error_normal": (
                None if self.normal_pit is None else keyed(self.errors(normal=True))
            ),
            "pit": keyed({s: histogram(pit).tolist() for s, pit in self.pit.items()}),
        }


def histogram(pit: Tensor, bins: int = _BINS) -> Tensor:
    """Shares of PIT values in equal bins of [0, 1], the right end in the last bin."""
    return torch.histc(pit, bins=bins, min=0.0, max=1.0) / pit.shape[0]


def covers(error: Tensor, half_width: Tensor) -> Tensor:
    """1 and 0 for intervals that hold the truth or not; NaN where the error is."""
    # At n = N both sides are 0 up to the rounding of a sum.
    covered = (error.abs() <= half_width + 1e-12).double()
    return torch.where(error.isnan(), torch.nan, covered)


def run_clusters(group: Sequence[CellResult]) -> Clusters:
    """Target and seed of each run, over all results in order.

    A target of several draws is one: it is the same model.
    """
    return Clusters.of(
        [name for result in group for name in result.targets],
        [result.cell.seed for result in group for _ in result.targets],
    )


def calibrate(group: Sequence[CellResult], shares: Sequence[float]) -> Calibration:
    """The calibration of one model in one setting.

    Args:
        group: Results of one shape, from any draws and seeds.
        shares: Values of n / N at which PIT values are kept.
    """
    errors = torch.cat([r.curves.mean - r.truth.unsqueeze(-1) for r in group])
    half = torch.cat([r.curves.half_width() for r in group])
    clusters = run_clusters(group)
    covered = covers(errors, half)
    places = {share: max(1, round(share * group[0].n_items)) for share in shares}

    def pits(normal: bool) -> dict[float, Tensor]:
        values = torch.cat(
            [pit_values(r.curves, r.truth, normal=normal) for r in group]
        )
        columns = {
            share: values[:, n - 1]
            for share, n in places.items()
            if n <= values.shape[1]
        }
        return {s: v for s, v in columns.items() if bool(v.isfinite().all())}

    student = any(r.curves.dof is not None for r in group)
    return Calibration(
        coverage_se=coverage_standard_error(covered, clusters),
        width=2.0 * half.mean(0),
        interval_score=interval_score(errors, half).mean(0),
        pit=pits(normal=False),
        normal_pit=pits(normal=True) if student else None,
        clusters=clusters,
    )


def _reference(
    clusters: Clusters, correlations: tuple[float, float]
) -> UniformReference:
    """That of correlations rounded to 0.05, so that one simulation serves many."""
    target, seed = (round(20.0 * rho) / 20.0 for rho in correlations)
    labels = tuple(clusters.target.tolist()), tuple(clusters.seed.tolist())
    return _simulated(*labels, target, seed)


@lru_cache(maxsize=64)
def _simulated(
    targets: tuple[int, ...], seeds: tuple[int, ...], target: float, seed: float
) -> UniformReference:
    return uniform_reference(Clusters.of(targets, seeds), (target, seed))
