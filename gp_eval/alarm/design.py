"""The benchmark score from a random sample of the items, with a control variate."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist

import torch
from torch import Tensor

from gp_eval.data import References
from gp_eval.models.protocol import Performance

__all__ = ["ControlVariate", "design_estimate"]

_PSEUDO_SCORES = NormalDist().inv_cdf(0.975) ** 2
"""Residuals of a reference's size added to the squares, as Wilson's interval does.

Without them, 30 equal scores would mean a variance of 0.
"""


@dataclass(frozen=True)
class ControlVariate:
    """What the references say about items, for a target that is unlike them.

    Attributes:
        means: Mean score of the references on each item, shape ``N``.
        residual_variance: Variance of a reference's scores about its regression on
            ``means``, averaged over the references.
    """

    means: Tensor
    residual_variance: Tensor

    @classmethod
    def of(cls, references: References) -> ControlVariate:
        """Read off the references; missing cells count as the item's mean."""
        means = references.scores.nanmean(-1)
        filled = torch.where(
            references.scores.isnan(), means.unsqueeze(-1), references.scores
        )
        residual = filled - _fitted(means, means, filled)
        return cls(means, residual.square().mean())


def design_estimate(
    scores: Tensor,
    control: ControlVariate,
    *,
    certain: Tensor,
    sampled: Tensor,
    weights: Tensor,
) -> Performance:
    r"""Estimate that holds whatever the target is like, by how items were chosen.

    Items that were chosen for a reason are a stratum of which all was taken; of the
    rest :math:`U`, :math:`m` items are a simple random sample :math:`s` without
    replacement. With the regression :math:`f_i = a + b \bar\phi_i` on the references'
    mean scores and its errors :math:`e_i = w_i (s_i - f_i)`, the estimate is the
    difference estimator

    .. math::

        \hat R = \sum_{i \notin U} w_i s_i + \sum_{i \in U} w_i f_i
            + \frac{|U|}{m} \sum_{i \in s} e_i, \qquad
        \text{Var} = \frac{|U|^2}{m} \Big(1 - \frac{m}{|U|}\Big) s_e^2

    which is unbiased for any fixed ``a`` and ``b``; here they are fitted by least
    squares to all evaluated items, which costs a bias of order :math:`1 / m`. With
    :math:`m = |U|` it is the mean itself with variance 0. See Cochran, Sampling
    Techniques, Sections 7.3 (difference and regression estimators) and 5A.

    :math:`s_e^2 = (\sum_s (e_i - \bar e)^2 + 1.96^2 \bar\sigma^2) / (m - 2)` has two
    degrees of freedom less for ``a`` and ``b``, and the pseudo-residuals of Wilson's
    interval, so that equal scores do not look certain.

    Args:
        scores: Scores of the target, shape ``N``; read at evaluated items only.
        control: What the references say.
        certain: Evaluated items that were not drawn at random, integers.
        sampled: Items drawn at random from all others, at least 3 of them.
        weights: Item weights with sum 1, shape ``N``.

    Raises:
        ValueError: For fewer than 3 sampled items, unless nothing is left.
    """
    n_items, m = weights.shape[0], sampled.shape[0]
    evaluated = torch.cat([certain, sampled])
    if evaluated.shape[0] == n_items:
        return Performance(weights @ scores, weights.new_zeros(()))
    if m < 3:
        raise ValueError(f"sampled: expected at least 3 random items, got {m}")
    rest = torch.ones(n_items, dtype=torch.bool)
    rest[certain] = False
    size = n_items - certain.shape[0]
    fitted = _fitted(control.means, control.means[evaluated], scores[evaluated])
    error = weights[sampled] * (scores[sampled] - fitted[sampled])
    total = weights[certain] @ scores[certain] + weights[rest] @ fitted[rest]
    squares = (error - error.mean()).square().sum()
    mean_square = weights[rest].square().mean()
    squares = squares + _PSEUDO_SCORES * control.residual_variance * mean_square
    variance = squares / (m - 2) * size**2 / m * (1.0 - m / size)
    return Performance(total + size * error.mean(), variance)


def _fitted(at: Tensor, means: Tensor, scores: Tensor) -> Tensor:
    """Least squares of scores (``n`` or ``n x K``) on means (``n``), at other means."""
    centre = means.mean()
    spread = (means - centre).square().sum()
    flat = means.amax() == means.amin()
    slope = (means - centre) @ scores / torch.where(flat, 1.0, spread)
    slope = torch.where(flat, torch.zeros_like(slope), slope)
    if scores.ndim == 2:
        at = at.unsqueeze(-1)
    return scores.mean(0) + slope * (at - centre)
