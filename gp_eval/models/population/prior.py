"""The prior of a population model from references that play the target."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from gp_eval.data import Buckets
from gp_eval.kernels import PopulationKernel, PopulationStatistics
from gp_eval.linalg.population_table import PopulationTable
from gp_eval.models.population.effects import fit_effects
from gp_eval.optim.variance_components import (
    ComponentPrior,
    Components,
    fit_variance_components,
)

__all__ = ["PopulationPrior", "fit_population_prior"]

_ITEMS = 300
"""Items that a fold is fitted to: more change the prior less than other folds would."""

_FOLD = 20
"""Pseudo-targets of a fold at most."""

_STRONGEST = 0.15
"""Share of references that is one fold because they are the best."""

_HYPERPRIOR = ComponentPrior(
    mean=torch.tensor([-2.0, -2.0, -2.0, -2.0, -0.5], dtype=torch.float64),
    std=torch.ones(5, dtype=torch.float64),
)
"""What is expected of log-variances before any reference was seen."""

_SLOPES = 3.0
"""Pseudo-targets of slope 1 +- 0.5 that are added to those of the references."""

_FREE = 2.0
"""Prior standard deviation of the slope of a pseudo-target with all its scores."""

_VARIANCE_STD, _NOISE_STD = 0.7, 0.25
"""How far log-variances of a target are from the centre; the noise is known best."""

_TOTAL_STD = 0.2

_LEAST_NOISE = -1.0
"""Least log-noise of 0/1 scores. Items that all references get right teach none: every
pseudo-target gets them right as well, and a target need not."""


@dataclass(frozen=True)
class PopulationPrior:
    """What the references suggest about targets like them.

    Attributes:
        log_variances: Centre of the log-variances, shape 5, the noise last.
        effects_mean: Prior mean of a target's effects, shape ``F``.
        effects_std: Prior standard deviations, shape ``F``.
    """

    log_variances: Tensor
    effects_mean: Tensor
    effects_std: Tensor

    def of_components(self) -> ComponentPrior:
        """The prior of a target's log-variances around the centre."""
        std = torch.full_like(self.log_variances, _VARIANCE_STD)
        std[-1] = _NOISE_STD
        return ComponentPrior(self.log_variances, std, _TOTAL_STD)


def fit_population_prior(buckets: Buckets, *, seed: int = 0) -> PopulationPrior:
    """Empirical Bayes: references left out in folds are pseudo-targets of the rest.

    Two random quarters of the references, so that pseudo-targets are like the others,
    and the strongest seventh, which is outside what the rest spans. Each pseudo-target
    has its effects fitted to all its scores; what is left, in working units, gives the
    log-variances of highest posterior density over all folds.

    Args:
        buckets: Items and reference scores.
        seed: Of the folds and of the items that are used; fixed, so that the prior is
            a function of the references. They are drawn by rank: the order in which
            items and references are given does not matter.
    """
    kernel = PopulationKernel(PopulationStatistics.from_scores(*_rows(buckets)))
    slopes: list[float] = []
    parts: list[Components] = []
    generator = torch.Generator().manual_seed(seed)
    references = _ranked_references(buckets)
    items = _ranked_items(buckets, references)
    for fold in _folds(buckets, references, generator):
        some = torch.randperm(items.shape[0], generator=generator)[:_ITEMS]
        part, found = _pseudo_targets(
            buckets, fold, items[some], bounded=kernel.statistics.bounded
        )
        parts.append(part)
        slopes += found
    centre, _ = fit_variance_components(parts, _HYPERPRIOR, start=_HYPERPRIOR.mean)
    if kernel.statistics.binary:
        centre[-1].clamp_(min=_LEAST_NOISE)
    mean, std = kernel.effects_mean.clone(), kernel.effects_std.clone()
    if slopes:
        mean[1], std[1] = _slope_prior(slopes)
    return PopulationPrior(centre, mean, std)


def _rows(buckets: Buckets) -> tuple[Tensor, Tensor]:
    return buckets.phi.cpu(), buckets.counts.cpu()


def _ranked_references(buckets: Buckets) -> Tensor:
    """From the weakest to the strongest; ties by agreement with the others."""
    phi, counts = (rows.numpy() for rows in _rows(buckets))
    agreement = (counts * phi.mean(-1)) @ phi
    return torch.from_numpy(np.lexsort((agreement, counts @ phi)))


def _ranked_items(buckets: Buckets, references: Tensor) -> Tensor:
    """Bucket of each item from hard to easy; ties by the scores of the references."""
    phi, counts = _rows(buckets)
    by_strength = phi[:, references].numpy()
    ranked = torch.from_numpy(np.lexsort((*by_strength.T, by_strength.mean(-1))))
    return ranked.repeat_interleave(counts.long()[ranked])


def _folds(
    buckets: Buckets, ranked: Tensor, generator: torch.Generator
) -> Iterator[Tensor]:
    """References of each fold; at least two that differ are left for the others.

    With few references the others may be one model twice, which tells nothing.
    """
    phi, _ = _rows(buckets)
    n_references = phi.shape[1]
    if n_references < 3:
        return
    order = ranked[torch.randperm(n_references, generator=generator)]
    size, strongest = max(1, n_references // 4), ranked.flip(0)
    for fold in (
        order[:size],
        order[size : 2 * size],
        strongest[: max(1, int(_STRONGEST * n_references))],
    ):
        rest = torch.ones(n_references, dtype=torch.bool)
        rest[fold] = False
        if not bool((phi[:, rest] == phi[:, rest][:, :1]).all()):
            yield fold


def _pseudo_targets(
    buckets: Buckets, fold: Tensor, chosen: Tensor, *, bounded: bool
) -> tuple[Components, list[float]]:
    """Residuals of a fold in working units, their components, and the slopes.

    Effects are fitted to all items; the components are of these buckets alone.
    """
    phi, counts = _rows(buckets)
    rest = torch.ones(phi.shape[1], dtype=torch.bool)
    rest[fold] = False
    others = phi[:, rest]
    # The link is that of all references, though the others alone may be in [0, 1].
    statistics = PopulationStatistics.from_scores(others, counts, bounded=bounded)
    everyone = buckets.item_bucket.cpu()
    scores = phi[:, fold[:_FOLD]].T
    effects = _free_effects(statistics, others, scores, everyone)
    mean = statistics.response(others, effects @ statistics.features(others).T)
    residuals = ((scores - mean) / statistics.scale_at(others, mean))[:, chosen]
    part = Components(
        matrices=_working(statistics, others[chosen]),
        fixed=None,
        residuals=residuals.T.contiguous(),
        # Pseudo-targets of a fold are not independent.
        weight=1.0 / scores.shape[0],
    )
    return part, effects[:, 1].tolist() if statistics.bounded else []


def _free_effects(
    statistics: PopulationStatistics, phi: Tensor, scores: Tensor, items: Tensor
) -> Tensor:
    """Effects of pseudo-targets, from scores ``m x B`` of all items."""
    kernel = PopulationKernel(statistics)
    std = kernel.effects_std.clone()
    if statistics.bounded:
        std[1] = _FREE
    mean = kernel.effects_mean
    return fit_effects(statistics, phi[items], scores[:, items], mean=mean, std=std)


def _working(statistics: PopulationStatistics, phi: Tensor) -> Tensor:
    """Components of these rows in working units at the means of references."""
    table = PopulationTable(PopulationKernel(statistics), phi)
    mean = statistics.smoothed_mean(phi) if statistics.bounded else phi.mean(-1)
    ratio = statistics.sensitivity_at(mean) / statistics.scale_at(phi, mean)
    return table.working(torch.arange(phi.shape[0]), ratio)


def _slope_prior(slopes: list[float]) -> tuple[float, float]:
    """Mean and standard deviation of slopes, shrunk towards 1 +- 0.5."""
    values = torch.tensor(slopes, dtype=torch.float64)
    total = len(slopes) + _SLOPES
    mean = (float(values.sum()) + _SLOPES) / total
    spread = float((values - mean).square().sum()) + _SLOPES * 0.25
    return mean, max(0.3, (spread / total) ** 0.5)
