"""Ability of one target by quadrature, and what it says of the unseen items."""

from __future__ import annotations

import torch
from torch import Tensor

from gp_eval.models.irt.family import ability_grid
from gp_eval.models.irt.item_parameters import ItemParameters

__all__ = ["ABILITY_LIMIT", "ABILITY_POINTS", "AbilityPosterior", "rest_moments"]

ABILITY_POINTS = 161
ABILITY_LIMIT = 6.0

_BLOCK = 256


def rest_moments(
    log_density: Tensor, mean: Tensor, variance: Tensor
) -> tuple[Tensor, Tensor]:
    r"""Moments of the weighted sum of unseen scores over grid points and draws.

    Draws have equal weights ("cut"): items are learned from the references alone, so
    the target's scores do not tell draws apart. The variance is that of the ability
    and of the draws, plus that of the unseen scores themselves.

    Args:
        log_density: Unnormalised log posterior of the ability, ``... x D x G``.
        mean: Sum's mean given the ability, broadcast to the same shape.
        variance: Sum's variance given the ability, likewise.

    Returns:
        Mean and variance, both of shape ``...``.
    """
    probability = torch.softmax(log_density, dim=-1) / log_density.shape[-2]
    expected = (probability * mean).sum((-2, -1), keepdim=True)
    spread = variance + (mean - expected).square()
    return expected.squeeze((-2, -1)), (probability * spread).sum((-2, -1))


class AbilityPosterior:
    """Posterior of a target's ability on ``D`` draws of the items x ``G`` grid points.

    An answer costs one update of a ``D x G`` table.

    Args:
        items: Item parameters.
        weights: Weights of the items in the benchmark score, shape ``N``.
    """

    def __init__(self, items: ItemParameters, weights: Tensor) -> None:
        self.items = items
        self.grid = ability_grid(ABILITY_POINTS, ABILITY_LIMIT)
        self._weight_of: list[float] = weights.tolist()
        shape = (items.discrimination.shape[0], ABILITY_POINTS)
        prior = items.family.ability_log_prior(self.grid)
        self.log_density = prior.expand(shape).clone()
        self._mean = prior.new_zeros(shape)
        self._variance = prior.new_zeros(shape)
        for block in torch.arange(weights.shape[0]).split(_BLOCK):
            mean, variance = self._moments(block)
            weight = weights[block].unsqueeze(-1)
            self._mean += (weight * mean).sum(1)
            self._variance += (weight.square() * variance).sum(1)

    def _moments(self, item: Tensor | int) -> tuple[Tensor, Tensor]:
        return self.items.family.moments(
            self.items.discrimination[:, item],
            self.items.difficulty[:, item],
            self.grid,
        )

    def append(self, item: int, score: float) -> None:
        """Condition on the score of one more item.

        Args:
            item: The item, which leaves the unseen ones.
            score: A score that the family can have.
        """
        items = self.items
        natural, partition = items.family.terms(
            items.discrimination[:, item], items.difficulty[:, item], self.grid
        )
        value = torch.tensor(score, dtype=torch.float64)
        statistics = items.family.statistics(value)
        self.log_density += (statistics.view(-1, 1, 1) * natural).sum(0) - partition
        mean, variance = self._moments(item)
        weight = self._weight_of[item]
        self._mean -= weight * mean
        self._variance -= weight**2 * variance

    def rest(self) -> tuple[Tensor, Tensor]:
        """Mean and variance of the weighted sum of the unseen scores, two scalars."""
        return rest_moments(self.log_density, self._mean, self._variance.clamp_min(0.0))
