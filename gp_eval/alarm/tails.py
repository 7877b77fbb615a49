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
    multiplied by the tail of an exponential distribution whose scale is estimated from
    the ``m`` largest others: with the mean excess :math:`\bar e = \frac1m \sum_{i \le
    m} (a_{(i)} - a_{(m+1)})`, the gap over :math:`\bar e` is F distributed with ``2``
    and ``2 m`` degrees of freedom, and its tail is :math:`(1 + \text{gap} / (m \bar
    e))^{-m}`. Abilities have lighter tails than that as a rule, above all near the
    highest score, so it errs towards silence.

    Args:
        value: Where the target lies.
        others: Where the references lie, shape ``K``.
        noise: Standard deviation of the gap from having few items, added to the mean
            excess in squares: scores of 0 and 1 have ties, whose mean excess is 0.
    """
    n_others = others.shape[0]
    above = int((others >= value).sum())
    if above or n_others < 2:
        return (1 + above) / (n_others + 1)
    m = min(n_others - 1, max(_LEAST, math.ceil(_SHARE * n_others)))
    largest = torch.topk(others, m + 1).values
    excess = float((largest[:m] - largest[m]).mean())
    scale = math.hypot(excess, noise)
    if scale == 0.0:
        return 1.0 / (n_others + 1)
    gap = (value - float(largest[0])) / scale
    return (1.0 + gap / m) ** -m / (n_others + 1)
