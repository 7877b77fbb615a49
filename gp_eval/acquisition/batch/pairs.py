"""The best pair of items, exactly."""

from __future__ import annotations

import torch
from torch import Tensor

from gp_eval.acquisition.batch.objective import BatchObjective
from gp_eval.acquisition.select import TIE

__all__ = ["best_pair", "pair_values"]

_BLOCK = 256


def pair_values(objective: BatchObjective, left: Tensor, right: Tensor) -> Tensor:
    r""":math:`\beta(\{i, j\})` by the closed form of Appendix B.1, ``p x q``.

    Args:
        objective: The candidates, ``M`` of them.
        left: Some of them, shape ``p``.
        right: Others, shape ``q``; equal ones give ``-inf``.
    """
    cross = objective.cross(left, right)
    c, v = objective.covariance, objective.variance
    ci, cj, vi, vj = c[left, None], c[right], v[left, None], v[right]
    top = (
        (cj.square() * vi).addcmul_(ci.square(), vj).addcmul_(ci * cj, cross, value=-2)
    )
    values = top.div_((vi * vj).addcmul_(cross, cross, value=-1))
    return values.masked_fill_(left[:, None] == right, -torch.inf)


def best_pair(objective: BatchObjective) -> Tensor:
    """The pair of the highest value, two candidates in rising order.

    All :math:`M (M - 1) / 2` pairs are looked at, in blocks of rows. Ties within a
    relative ``1e-12`` go to the pair that comes first.
    """
    size = len(objective)
    highest = objective.covariance.new_full((size,), -torch.inf)
    for start in range(0, size - 1, _BLOCK):
        left = torch.arange(start, min(start + _BLOCK, size))
        values = pair_values(objective, left, torch.arange(start, size))
        # Each pair once, from its first item; no value is below the zeros put in.
        highest[left] = values.triu_(1).max(1).values
    threshold = highest.max() * (1.0 - TIE)
    first = int((highest >= threshold).nonzero()[0])
    right = torch.arange(first + 1, size)
    values = pair_values(objective, torch.tensor([first]), right)[0]
    return torch.tensor([first, int(right[values >= values.max() * (1 - TIE)][0])])
