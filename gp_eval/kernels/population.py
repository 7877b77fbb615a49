r"""Covariance of a target's scores from how the references vary item by item."""

from __future__ import annotations

from typing import Any

import torch
from gpytorch.kernels import Kernel
from torch import Tensor

from gp_eval.kernels.population_statistics import PopulationStatistics

__all__ = ["COMPONENTS", "PopulationKernel"]

COMPONENTS = ("population", "wide", "narrow", "difficulty")
"""Names of the variance components, in the order of ``log_variances``."""

_EFFECTS_MEAN = (0.0, 1.0, 0.0)
_EFFECTS_STD = (3.0, 0.5, 1.0)
"""Prior of ability (vague), slope and offset; without a link the first is the offset's.

A prior of the slope that the references suggest may take its place.
"""

_WIDTHS = (1.0, 0.2)
"""Widths of the two squared exponentials, in typical squared distances."""

_DIFFICULTY_LENGTH = 1.5
"""How far apart, in units of the link, items are of another difficulty."""


class PopulationKernel(Kernel):
    r"""A sum of variance components in working units of the target.

    With the working standard deviation :math:`d_i` of item ``i``, the derivative
    :math:`J_i` of its working mean, and features :math:`x_i`,

    .. math::

        k(i, j) = d_i d_j \Big(a\, S_{ij} + \sum_{w} s_w\,
            e^{-\lVert \phi_i - \phi_j \rVert^2 / (2 w \bar D)}\Big)
            + J_i J_j \Big(g\, e^{-(\ell_i - \ell_j)^2 / (2 \lambda^2)}
            + \sum_{e} \tau_e^2 x_{ie} x_{je} \Big)

    where ``S`` is the sample covariance of the standardised reference scores: what
    usually goes together. The squared exponentials say that items alike to the
    references are alike to the target; the rest is what is not known of its mean over
    the level :math:`\ell` of items. The prior of its ability is vague, so that it may
    be far above or below all references.

    Not in the BayesAME paper, whose prior has one squared exponential and no more.

    Args:
        statistics: Of the references that the rows come from.

    Attributes:
        log_variances (Tensor): Logarithms of ``a``, two ``s_w`` and ``g``, shape 4.
        effects (Tensor): Present effects of the target, shape 3, or 1 without a link;
            not trained by gradient.
        effects_mean (Tensor): Their prior mean.
        effects_std (Tensor): Their prior standard deviations :math:`\tau_e`.
    """

    effects: Tensor
    effects_mean: Tensor
    effects_std: Tensor
    has_lengthscale = False

    def __init__(self, statistics: PopulationStatistics) -> None:
        super().__init__()
        self.statistics = statistics
        start = torch.full((len(COMPONENTS),), -2.0, dtype=torch.float64)
        self.register_parameter("log_variances", torch.nn.Parameter(start))
        names = ("effects", "effects_mean", "effects_std")
        prior = (_EFFECTS_MEAN, _EFFECTS_MEAN, _EFFECTS_STD)
        for name, values in zip(names, prior, strict=True):
            used = torch.tensor(values[: statistics.n_effects], dtype=torch.float64)
            self.register_buffer(name, used)

    def mean(self, x: Tensor) -> Tensor:
        """Working mean of rows ``... x n x K``, shape ``... x n``."""
        return self.statistics.mean_at(x, self.effects)

    def scale(self, x: Tensor) -> Tensor:
        """Working standard deviation of rows, ``... x n``."""
        return self.statistics.scale_at(x, self.mean(x))

    def sensitivity(self, x: Tensor) -> Tensor:
        """Derivative of the working mean by the predictor, ``... x n``."""
        return self.statistics.sensitivity_at(self.mean(x))

    def forward(
        self,
        x1: Tensor,
        x2: Tensor,
        diag: bool = False,
        last_dim_is_batch: bool = False,
        **params: Any,
    ) -> Tensor:
        """Covariance of ``... x n x K`` with ``... x m x K`` reference scores."""
        if last_dim_is_batch:
            raise RuntimeError(
                "PopulationKernel does not accept the last_dim_is_batch argument."
            )
        z1, z2 = self.statistics.standardised(x1), self.statistics.standardised(x2)
        l1, l2 = self.statistics.level(x1), self.statistics.level(x2)
        f1, f2 = self.scaled_features(x1), self.scaled_features(x2)
        d1, d2 = self.scale(x1), self.scale(x2)
        j1, j2 = self.sensitivity(x1), self.sensitivity(x2)
        distance = self.covar_dist(x1, x2, square_dist=True, diag=diag)
        if diag:
            product, linear = (z1 * z2).sum(-1), (f1 * f2).sum(-1)
        else:
            product, linear = z1 @ z2.mT, f1 @ f2.mT
            l1, d1, j1 = (t.unsqueeze(-1) for t in (l1, d1, j1))
            l2, d2, j2 = (t.unsqueeze(-2) for t in (l2, d2, j2))
        population, wide, narrow, difficulty = self.log_variances.exp()
        near, nearer = self.similarities(distance)
        working = population * product + wide * near + narrow * nearer
        curve = difficulty * self.difficulty(l1, l2) + linear
        return d1 * d2 * working + j1 * j2 * curve

    def scaled_features(self, x: Tensor) -> Tensor:
        """Features of rows times the prior deviations of effects, ``... x n x 3``."""
        return self.statistics.features(x) * self.effects_std

    def similarities(self, distance: Tensor) -> list[Tensor]:
        """The two squared exponentials of squared distances."""
        typical = self.statistics.distance
        return [(distance / (-2.0 * width * typical)).exp() for width in _WIDTHS]

    def difficulty(self, left: Tensor, right: Tensor) -> Tensor:
        """The squared exponential over difficulties."""
        return (((left - right) / _DIFFICULTY_LENGTH).square() / -2.0).exp()
