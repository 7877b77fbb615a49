"""What references say about an item beyond its mean: level, scale, dispersion."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

__all__ = ["PopulationStatistics"]

_EDGE = 0.01
"""Means of reference scores are kept so far from 0 and 1 before the logit."""

_FLOOR = 0.02
"""A variance is that of a mean at least so far from 0 and 1."""

_LEAST_SLOPE = 0.05
"""Below this average slope, abilities say nothing about items."""

_DISCRIMINATION_STD = 0.5
"""Prior standard deviation of discriminations around 1."""

_PRIOR_REFERENCES = 4.0
"""References that the average dispersion counts for in the dispersion of an item."""


@dataclass(frozen=True)
class PopulationStatistics:
    r"""Working mean and variance of an item's score as functions of its references.

    For scores in [0, 1] the link is the logit and the variance that of quasi-binomial
    scores, :math:`\varphi_i p (1 - p)` with the dispersion :math:`\varphi_i` of the
    item, 1 for 0/1 scores. Other scores have the identity link and the variance of the
    item over the references.

    A target is described by *effects* on the link's scale: its ability, which counts
    times the discrimination of an item; a slope on the level of items; and an offset.
    With the identity link there is the offset alone.

    All that is pooled over items is in the attributes, so that every method is a
    function of rows ``x`` of reference scores, ``... x n x K``.

    Attributes:
        bounded: Whether all scores are in [0, 1].
        binary: Whether all are 0 or 1.
        mean: Mean of all scores.
        dispersion: Pooled :math:`\varphi`, 1 for 0/1 scores.
        variance: Mean over the items of their variance over the references.
        distance: Typical squared distance of two rows: their mean; 1 if there is one
            row only.
        abilities: Ability of each reference, shape ``K``, centred and scaled such that
            items discriminate by 1 on average; all 0 if that cannot be told.
    """

    bounded: bool
    binary: bool
    mean: float
    dispersion: float
    variance: float
    distance: float
    abilities: Tensor

    @classmethod
    def from_scores(
        cls, phi: Tensor, counts: Tensor, *, bounded: bool | None = None
    ) -> PopulationStatistics:
        """Pool rows ``B x K`` that stand for ``B`` numbers of items each.

        Args:
            phi: Rows of reference scores.
            counts: Items of each row, shape ``B``.
            bounded: Whether to use the link of scores in [0, 1]; default: if all are.

        Raises:
            ValueError: For fewer than two references, or references that all agree.
        """
        n_references = phi.shape[-1]
        if n_references < 2:
            raise ValueError(
                "references: a population model needs at least 2 references, got "
                f"{n_references}"
            )
        weights = counts / counts.sum()
        mean, variance = phi.mean(-1), phi.var(-1)
        pooled = float(weights @ variance)
        if not pooled > 0.0:
            raise ValueError("references: all agree on every item, there is no spread")
        if bounded is None:
            bounded = bool((phi >= 0).all() and (phi <= 1).all())
        binary = bounded and bool(((phi == 0) | (phi == 1)).all())
        dispersion = 1.0
        if bounded and not binary:
            dispersion = pooled / float(weights @ (mean * (1 - mean)))
        column_means = weights @ phi
        # Of two items drawn at random, in squared score units and summed over K.
        distance = 2.0 * float((weights @ (phi - column_means).square()).sum())
        return cls(
            bounded=bounded,
            binary=binary,
            mean=float(weights @ mean),
            dispersion=dispersion,
            variance=pooled,
            distance=distance or 1.0,  # one row: all distances are 0 in any unit
            abilities=_abilities(phi, counts) if bounded else torch.zeros_like(phi[0]),
        )

    @property
    def n_effects(self) -> int:
        """Effects that describe a target: three, or one without a link."""
        return 3 if self.bounded else 1

    def smoothed_mean(self, x: Tensor) -> Tensor:
        """Mean of the references and one more of the overall mean, ``... x n``."""
        total = x.sum(-1) + self.mean
        return (total / (x.shape[-1] + 1)).clamp(_EDGE, 1.0 - _EDGE)

    def level(self, x: Tensor) -> Tensor:
        """How easy an item is: the linear predictor of an average model, ``... x n``.

        In logits, or in standard deviations from the overall mean.
        """
        if self.bounded:
            return self.smoothed_mean(x).logit()
        return (x.mean(-1) - self.mean) / self.variance**0.5

    def dispersion_of(self, x: Tensor) -> Tensor:
        r""":math:`\varphi_i`, shrunk towards the pooled one, ``... x n``."""
        if self.binary:
            return torch.ones_like(x[..., 0])
        degrees = x.shape[-1] - 1
        mean, smoothed = x.mean(-1), self.smoothed_mean(x)
        prior = _PRIOR_REFERENCES * smoothed * (1 - smoothed)
        sums = degrees * x.var(-1) + self.dispersion * prior
        return sums / (degrees * mean * (1 - mean) + prior)

    def discrimination(self, x: Tensor) -> Tensor:
        """How much more an able model scores on an item, ``... x n``.

        The slope of a logistic regression of the item on the abilities, by one Newton
        step from the mean, with the prior ``N(1, 1/4)``, and within 0 and 3.
        """
        deviations = x - x.mean(-1, keepdim=True)
        dispersion, mean = self.dispersion_of(x), self.smoothed_mean(x)
        slope = deviations @ self.abilities / dispersion
        information = mean * (1 - mean) * self.abilities.square().sum() / dispersion
        prior = 1.0 / _DISCRIMINATION_STD**2
        return ((slope + prior) / (information + prior)).clamp(0.0, 3.0)

    def features(self, x: Tensor) -> Tensor:
        """What effects count times, ``... x n x 3``, or ones ``... x n x 1``."""
        level = self.level(x)
        one = torch.ones_like(level)
        if not self.bounded:
            return one.unsqueeze(-1)
        return torch.stack([self.discrimination(x), level, one], dim=-1)

    def mean_at(self, x: Tensor, effects: Tensor) -> Tensor:
        """Working mean of a target, ``... x n``: the inverse link at
        ``features @ effects``; without a link, that is added to the mean.
        """
        return self.response(x, self.features(x) @ effects)

    def response(self, x: Tensor, predictor: Tensor) -> Tensor:
        """Working mean at given linear predictors, ``... x n``."""
        if self.bounded:
            return predictor.sigmoid()
        return x.mean(-1) + predictor * self.variance**0.5

    def scale_at(self, x: Tensor, mean: Tensor) -> Tensor:
        """Working standard deviation of scores of that mean, ``... x n``."""
        if self.bounded:
            p = mean.clamp(_FLOOR, 1.0 - _FLOOR)
            return (self.dispersion_of(x) * p * (1 - p)).sqrt()
        degrees = x.shape[-1] - 1
        sums = degrees * x.var(-1) + _PRIOR_REFERENCES * self.variance
        return (sums / (degrees + _PRIOR_REFERENCES)).sqrt()

    def sensitivity_at(self, mean: Tensor) -> Tensor:
        """Derivative of the working mean by the predictor, ``... x n``."""
        if self.bounded:
            return mean * (1 - mean)
        return torch.full_like(mean, self.variance**0.5)

    def score_weight(self, x: Tensor) -> Tensor:
        """Derivative of the working mean by the predictor over the variance, ``n``.

        What a residual counts in the quasi-likelihood of the effects; for scores in
        [0, 1] the inverse dispersion, whatever the mean.
        """
        if self.bounded:
            return 1.0 / self.dispersion_of(x)
        mean = x.mean(-1)
        return self.sensitivity_at(mean) / self.scale_at(x, mean).square()

    def standardised(self, x: Tensor) -> Tensor:
        r"""Deviations of the references, in working standard deviations.

        ``... x n x K``, divided by :math:`\sqrt{K - 1}`, so that inner products of
        rows are sample correlations ``S``.
        """
        deviations = x - x.mean(-1, keepdim=True)
        mean = self.smoothed_mean(x) if self.bounded else x.mean(-1)
        scale = self.scale_at(x, mean) * (x.shape[-1] - 1) ** 0.5
        return deviations / scale.unsqueeze(-1)


def _abilities(phi: Tensor, counts: Tensor) -> Tensor:
    """Logits of the mean scores of references, shape ``K``, centred and scaled."""
    n_items = counts.sum()
    logits = ((counts @ phi + 0.5) / (n_items + 1)).clamp(0.005, 0.995).logit()
    centred = logits - logits.mean()
    mean = phi.mean(-1)
    slope = counts @ ((phi - mean.unsqueeze(-1)) @ centred)
    information = (counts @ (mean * (1 - mean))) * centred.square().sum()
    # References as good as each other, or unlike each other: nothing to go by.
    if not float(slope) > _LEAST_SLOPE * float(information):
        return torch.zeros_like(centred)
    return centred * (slope / information)
