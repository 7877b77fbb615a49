"""Item response models on many targets at once: all answers as one cumulative sum."""

from __future__ import annotations

import torch
from torch import Tensor

from gp_eval.data import References
from gp_eval.experiments.curves import Curves
from gp_eval.models.irt.ability import ABILITY_LIMIT, ABILITY_POINTS, rest_moments
from gp_eval.models.irt.beta import BetaResponse
from gp_eval.models.irt.family import ItemFamily, ability_grid
from gp_eval.models.irt.item_parameters import Inference, ItemParameters
from gp_eval.models.irt.item_response import find_items
from gp_eval.models.irt.two_parameter import TwoParameterLogistic

__all__ = ["simulate_irt_2pl", "simulate_irt_beta"]

_CELLS = 2**23
"""Numbers in the largest table of a block of steps."""


def simulate_irt_2pl(
    references: References,
    scores: Tensor,
    order: Tensor,
    *,
    n_max: int,
    inference: Inference = "map",
    draws: int = 50,
    refresh: int = 1,
    seed: int = 0,
    items: ItemParameters | None = None,
) -> Curves:
    """Curves of :class:`~gp_eval.models.irt.ItemResponse2PL`.

    Args:
        references: The references of all ``R`` runs.
        scores: Binary scores of the targets on all items, ``R x N``.
        order: A permutation of the items: the order of evaluation.
        n_max: Number of items to evaluate, at most ``N``.
        inference: As in the model, and so are the options below.
        draws: As in the model.
        refresh: As in the model.
        seed: As in the model.
        items: As in the model.
    """
    family = TwoParameterLogistic()
    items = find_items(
        references, family, items, inference=inference, draws=draws, seed=seed
    )
    return _simulate(references, items, scores, order, n_max, refresh)


def simulate_irt_beta(
    references: References,
    scores: Tensor,
    order: Tensor,
    *,
    n_max: int,
    inference: Inference = "map",
    draws: int = 50,
    refresh: int = 1,
    seed: int = 0,
    clip: float = 0.01,
    items: ItemParameters | None = None,
) -> Curves:
    """Curves of :class:`~gp_eval.models.irt.ItemResponseBeta`.

    Args:
        references: The references of all ``R`` runs.
        scores: Scores of the targets on all items, ``R x N``, in [0, 1].
        order: A permutation of the items: the order of evaluation.
        n_max: Number of items to evaluate, at most ``N``.
        inference: As in the model, and so are the options below.
        draws: As in the model.
        refresh: As in the model.
        seed: As in the model.
        clip: As in the model.
        items: As in the model.
    """
    family = BetaResponse(clip=clip)
    items = find_items(
        references, family, items, inference=inference, draws=draws, seed=seed
    )
    return _simulate(references, items, scores, order, n_max, refresh)


def _simulate(
    references: References,
    items: ItemParameters,
    scores: Tensor,
    order: Tensor,
    n_max: int,
    refresh: int,
) -> Curves:
    if refresh < 1:
        raise ValueError(
            f"{items.family.name}: refresh: expected at least 1, got {refresh}"
        )
    weights = references.item_weights.to(scores)[order]
    ordered = scores[:, order]
    mean, variance = _rest_curves(items, ordered, weights, order, n_max)
    observed = (weights * ordered)[:, :n_max].cumsum(-1)
    observed = torch.cat([observed.new_zeros(len(scores), 1), observed], dim=-1)
    n_items = order.shape[0]
    n = torch.arange(1, n_max + 1, device=scores.device)
    held = n // refresh * refresh
    estimate, variance = (observed + mean)[:, held], variance[:, held]
    if n_max == n_items:
        # Nothing is unseen: what the running sums leave there is rounding.
        whole = scores @ references.item_weights.to(scores)
        estimate[:, -1] = whole if references.is_weighted else scores.mean(-1)
        variance[:, -1] = 0.0
    return Curves(mean=estimate, variance=variance)


def _rest_curves(
    items: ItemParameters, ordered: Tensor, weights: Tensor, order: Tensor, n_max: int
) -> tuple[Tensor, Tensor]:
    """Moments of the unseen part after ``0..n_max`` items, each ``R x (n_max + 1)``."""
    family = items.family
    grid = ability_grid(ABILITY_POINTS, ABILITY_LIMIT).to(ordered)
    a = items.discrimination.to(ordered)[:, order]
    b = items.difficulty.to(ordered)[:, order]
    statistics = family.statistics(ordered)
    n_runs, n_draws = ordered.shape[0], a.shape[0]
    size = max(1, _CELLS // (n_runs * n_draws * grid.shape[0]))
    rest_mean, rest_variance = _totals(family, a, b, weights, grid, size)
    density = family.ability_log_prior(grid).expand(n_runs, n_draws, -1)
    first = rest_moments(density, rest_mean, rest_variance)
    curves = [[value.unsqueeze(-1)] for value in first]
    for steps in torch.arange(n_max, device=ordered.device).split(size):
        natural, partition = family.terms(a[:, steps], b[:, steps], grid)
        gain = torch.einsum("jrn,jdng->rndg", statistics[..., steps], natural)
        gain -= partition.transpose(0, 1)
        gain[:, 0] += density
        gain = gain.cumsum(1)
        density = gain[:, -1]
        mean, variance = family.moments(a[:, steps], b[:, steps], grid)
        weight = weights[steps].unsqueeze(-1)
        means = rest_mean - (weight * mean).transpose(0, 1).cumsum(0)
        variances = rest_variance - (weight.square() * variance).transpose(0, 1).cumsum(
            0
        )
        rest_mean, rest_variance = means[-1], variances[-1]
        block = rest_moments(gain, means, variances.clamp_min(0.0))
        for curve, value in zip(curves, block, strict=True):
            curve.append(value)
    return torch.cat(curves[0], dim=-1), torch.cat(curves[1], dim=-1)


def _totals(
    family: ItemFamily, a: Tensor, b: Tensor, weights: Tensor, grid: Tensor, size: int
) -> tuple[Tensor, Tensor]:
    """Moments of the weighted sum of all scores given the ability, each ``D x G``."""
    mean = variance = grid.new_zeros(a.shape[0], grid.shape[0])
    for part in torch.arange(weights.shape[0], device=grid.device).split(size):
        by_item = family.moments(a[:, part], b[:, part], grid)
        weight = weights[part].unsqueeze(-1)
        mean = mean + (weight * by_item[0]).sum(1)
        variance = variance + (weight.square() * by_item[1]).sum(1)
    return mean, variance
