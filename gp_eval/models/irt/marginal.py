"""Item parameters at the mode of their posterior with abilities integrated out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from scipy.optimize import minimize
from torch import Tensor

from gp_eval.models.irt.family import ItemFamily, ability_grid

__all__ = ["MapFit", "ability_posterior", "fit_by_lbfgs", "initial_items"]


@dataclass(frozen=True)
class MapFit:
    """Item parameters at the mode.

    Attributes:
        discrimination: Shape ``N``.
        difficulty: Shape ``N``.
        ability: Posterior means of the references' abilities, shape ``K``.
        history: Objective of each iteration, or the last one alone, in nats.
    """

    discrimination: Tensor
    difficulty: Tensor
    ability: Tensor
    history: tuple[float, ...]


def initial_items(family: ItemFamily, scores: Tensor) -> tuple[Tensor, Tensor]:
    """Discriminations 1, and difficulties that give the mean of ``N x K`` scores.

    An ability of 0 then has the mean score in both families.
    """
    mean = scores.mean(-1).clamp(0.01, 0.99)
    return torch.ones_like(mean), -torch.logit(mean)


def ability_posterior(
    family: ItemFamily,
    statistics: Tensor,
    discrimination: Tensor,
    difficulty: Tensor,
    grid: Tensor,
) -> tuple[Tensor, Tensor]:
    """Posteriors of the references' abilities on a grid, and the marginal objective.

    Args:
        family: The item response family.
        statistics: Of the references' scores, ``J x N x K``.
        discrimination: Shape ``N``.
        difficulty: Shape ``N``.
        grid: Abilities of equal distances, shape ``G``.

    Returns:
        Probabilities ``K x G``, and the log posterior density of the item parameters
        up to a constant, a scalar.
    """
    natural, partition = family.terms(discrimination, difficulty, grid)
    log_prior = torch.log_softmax(family.ability_log_prior(grid), dim=0)
    joint = log_prior - partition.sum(0)
    for term, statistic in zip(natural, statistics, strict=True):
        joint = joint + statistic.T @ term
    marginal = joint.logsumexp(-1, keepdim=True)
    prior = family.item_log_prior(discrimination, difficulty)
    return (joint - marginal).exp(), marginal.sum() + prior.sum()


def fit_by_lbfgs(
    family: ItemFamily, scores: Tensor, *, points: int = 161, limit: float = 6.0
) -> MapFit:
    """L-BFGS on the marginal posterior of the item parameters of any family.

    Args:
        family: The item response family.
        scores: Scores of the references, ``N x K``.
        points: Grid points; continuous scores tell abilities apart finely.
        limit: The grid reaches from ``-limit`` to ``limit``.
    """
    statistics = family.statistics(scores)
    grid = ability_grid(points, limit)
    n_items = scores.shape[0]

    def loss(x: np.ndarray) -> tuple[float, np.ndarray]:
        z = torch.from_numpy(x).requires_grad_()
        a, b = z[:n_items], z[n_items:]
        value = -ability_posterior(family, statistics, a, b, grid)[1]
        (gradient,) = torch.autograd.grad(value, z)
        return float(value.detach()), gradient.numpy()

    start = torch.cat(initial_items(family, scores)).numpy()
    result = minimize(
        loss, start, jac=True, method="L-BFGS-B", options={"maxiter": 500}
    )
    optimum = torch.from_numpy(result.x)
    a, b = optimum[:n_items].clone(), optimum[n_items:].clone()
    posterior = ability_posterior(family, statistics, a, b, grid)[0]
    return MapFit(a, b, posterior @ grid, (-float(result.fun),))
