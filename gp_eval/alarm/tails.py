"""How far a value lies beyond others: a rank, and beyond them all a tail."""

from __future__ import annotations

import math

import torch
from torch import Tensor

__all__ = ["tail_probability"]

_SHARE = 0.25
"""Share of the others that the tail is learned from."""
_LEAST = 5
"""At least so many of them, if there are so many."""


def tail_probability(value: float, others: Tensor, *, noise: float = 0.0) -> float:
    r"""Probability that one of ``K + 1`` exchangeable values lies so far up.

    Among the others it is the rank, :math:`(1 + \#\{k: a_k \ge a\}) / (K + 1)`, which
    holds for any distribution. Above them all the rank says no more than
    :math:`1 / (K + 1)`, so that few references could never raise an alarm. There it is
    multiplied by the tail of an exponential distribution, whose scale comes from the
    ``m`` largest others :math:`a_{(1)} \ge a_{(2)} \dots`: of ``K + 1`` exponential
    values of which the target is the largest, the normalised spacings :math:`(i + 1)
    (a_{(i)} - a_{(i+1)})` and the gap above them are independent and alike (Renyi), so
    that the gap over their mean :math:`\bar e` is F distributed with ``2`` and ``2 m``
    degrees of freedom, with tail :math:`(1 + \text{gap} / (m \bar e))^{-m}`. Abilities
    have lighter tails than that as a rule, above all near the highest score, so it errs
    towards silence.

    Args:
        value: Where the target lies.
        others: Where the references lie, shape ``K``.
        noise: Standard deviation of the gap from having few items, added to the scale
            in squares: scores of 0 and 1 have ties, whose spacings are 0.
    """
    n_others = others.shape[0]
    above = int((others >= value).sum())
    if above or n_others < 2:
        return (1 + above) / (n_others + 1)
    m = min(n_others - 1, max(_LEAST, math.ceil(_SHARE * n_others)))
    largest = torch.topk(others, m + 1).values
    excess = largest - largest[m]
    spacing = float(excess.sum() + excess[0]) / m  # the mean of (i + 1) times a spacing
    scale = math.hypot(spacing, noise)
    if scale == 0.0:
        return 1.0 / (n_others + 1)
    gap = (value - float(largest[0])) / scale
    return (1.0 + gap / m) ** -m / (n_others + 1)
