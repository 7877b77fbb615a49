"""What an item response family has to say, and the quadrature grid of abilities."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

__all__ = ["ItemFamily", "JointDensity", "ability_grid"]


@dataclass(frozen=True)
class JointDensity:
    """Log density of scores, abilities and item parameters with its gradient.

    Attributes:
        value: Log density in nats, up to a constant, a scalar.
        ability: Derivative with respect to the abilities, shape ``K``.
        discrimination: With respect to the discriminations, shape ``N``.
        difficulty: With respect to the difficulties, shape ``N``.
    """

    value: Tensor
    ability: Tensor
    discrimination: Tensor
    difficulty: Tensor


class ItemFamily(Protocol):
    r"""An exponential family of scores given ability and two parameters an item.

    :math:`\log p(s_i \mid \theta) = \sum_j T_j(s_i) \eta_{ij}(\theta) -
    A_i(\theta)`, up to what depends on the score alone. Abilities are on the whole
    real line.
    """

    name: str

    def statistics(self, scores: Tensor) -> Tensor:
        """Statistics ``T`` of scores of any shape, ``J x ...``.

        Raises:
            ValueError: For a score that the family cannot have.
        """

    def terms(
        self, discrimination: Tensor, difficulty: Tensor, ability: Tensor
    ) -> tuple[Tensor, Tensor]:
        """``eta`` of shape ``J x ... x G`` and ``A`` of shape ``... x G``.

        Args:
            discrimination: Shape ``...``, such as ``N`` or ``D x N``.
            difficulty: The same shape.
            ability: Grid points, shape ``G``.
        """

    def moments(
        self, discrimination: Tensor, difficulty: Tensor, ability: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Mean and variance of a score, both ``... x G``; arguments of ``terms``."""

    def logit(
        self, ability: Tensor, discrimination: Tensor, difficulty: Tensor
    ) -> Tensor:
        """Logit of the mean score, of the arguments' broadcast shape."""

    def ability_log_prior(self, ability: Tensor) -> Tensor:
        """Log prior density of abilities, up to a constant, elementwise."""

    def item_log_prior(self, discrimination: Tensor, difficulty: Tensor) -> Tensor:
        """Log prior density of item parameters, up to a constant, elementwise."""

    def joint(
        self,
        statistics: Tensor,
        ability: Tensor,
        discrimination: Tensor,
        difficulty: Tensor,
    ) -> JointDensity:
        """Joint log density of ``J x N x K`` statistics and all parameters."""


def ability_grid(points: int, limit: float) -> Tensor:
    """Equally spaced abilities from ``-limit`` to ``limit``, shape ``G``."""
    return torch.linspace(-limit, limit, points, dtype=torch.float64)
