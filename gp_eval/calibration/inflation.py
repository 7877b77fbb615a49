"""How much wider intervals have to be, from standardised errors of known targets."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Self

import numpy as np
import torch
from scipy.special import ndtri, stdtrit
from torch import Tensor

from gp_eval.models.protocol import Hyperparameters

__all__ = ["Inflation", "fit_inflation", "without_inflation"]

_SHARES = (0.02, 0.05, 0.1, 0.2, 0.33, 0.5, 0.75, 0.9)
_SHARES_KEY, _FACTORS_KEY = "inflation.shares", "inflation.factors"


@dataclass(frozen=True)
class Inflation:
    """Factors of the standard deviation by ``n / N``.

    Attributes:
        shares: Ascending ``n / N`` in (0, 1).
        factors: Factor at each, at least 1.

    Raises:
        ValueError: For none, unequal numbers, or values out of range.
    """

    shares: tuple[float, ...]
    factors: tuple[float, ...]

    def __post_init__(self) -> None:
        """Check what may come from a file."""
        if not 0 < len(self.shares) == len(self.factors):
            raise ValueError(
                "inflation: expected as many shares as factors, at least one, got "
                f"{len(self.shares)} and {len(self.factors)}"
            )
        bounds = (0.0, *self.shares, 1.0)
        if not all(a < b for a, b in pairwise(bounds)):
            raise ValueError(
                f"inflation: expected ascending shares in (0, 1), got {self.shares}"
            )
        if not all(1.0 <= factor < math.inf for factor in self.factors):
            raise ValueError(
                f"inflation: expected finite factors >= 1, got {self.factors}"
            )

    def at(self, share: float) -> float:
        """Factor at ``n / N``: linear in its logarithm, constant beyond both ends."""
        place = math.log(max(share, self.shares[0]))
        return float(np.interp(place, np.log(self.shares), self.factors))

    def record(self) -> Hyperparameters:
        """What a session writes down."""
        return {_SHARES_KEY: list(self.shares), _FACTORS_KEY: list(self.factors)}

    @classmethod
    def from_record(cls, record: Mapping[str, list[float]]) -> Self | None:
        """The inflation in a record, ``None`` if there is none.

        Raises:
            ValueError: For a record that cannot be one.
        """
        if _SHARES_KEY not in record or _FACTORS_KEY not in record:
            return None
        return cls(tuple(record[_SHARES_KEY]), tuple(record[_FACTORS_KEY]))


def without_inflation(record: Mapping[str, list[float]]) -> Hyperparameters:
    """What else there is in a record."""
    ours = (_SHARES_KEY, _FACTORS_KEY)
    return {name: values for name, values in record.items() if name not in ours}


def fit_inflation(
    squared: Tensor,
    *,
    n_items: int,
    n_first: int = 1,
    prior_factor: float = 1.5,
    prior_targets: float = 4.0,
) -> Inflation:
    r"""Factors under which a new target's 95 % interval holds.

    Errors of targets are taken as normal with variance :math:`\lambda(n / N)` times
    the believed one, and :math:`\lambda` as scaled inverse :math:`\chi^2` around
    ``prior_factor ** 2`` with the weight of ``prior_targets``. Around each of eight
    shares :math:`m_t` is the mean of target ``t``'s squared standardised errors, and

    .. math:: \hat\lambda = (\nu_0 f_0^2 + \sum_t m_t) / (\nu_0 + T).

    A new target's error is then of Student's t with :math:`\nu_0 + T` degrees of
    freedom: the factor is :math:`\sqrt{\hat\lambda}` times the ratio of its 97.5 %
    quantile to the normal one, at least 1. Logarithms of :math:`\hat\lambda` are
    smoothed over neighbouring shares with weights 1/4, 1/2, 1/4.

    A second moment, not a quantile: of ten targets the 95 % quantile is the largest
    error. With heavy tails, which odd targets make, it is no less safe: Student's t
    with 4 degrees of freedom has 95 % of its mass within 1.96 standard deviations.

    Args:
        squared: Squared standardised errors, ``T x m``, after ``n_first`` items, one
            more, and so on.
        n_items: ``N``, above the last of these.
        n_first: Items of the first column.
        prior_factor: :math:`f_0`, what is expected before any target was seen.
        prior_targets: :math:`\nu_0`.

    Raises:
        ValueError: For errors that are not finite, or as many items as there are.
    """
    n_targets, columns = squared.shape
    n_max = n_first - 1 + columns
    if n_max >= n_items:
        raise ValueError(
            f"squared: expected errors of fewer than {n_items} items, got {n_max}"
        )
    if not bool(squared.isfinite().all()):
        raise ValueError("squared: expected finite standardised errors")
    shares, means = _means(squared, n_items, n_first)
    total = prior_targets + n_targets
    scale = (prior_targets * prior_factor**2 + means.sum(0)) / total
    quantiles = float(stdtrit(total, 0.975)) / float(ndtri(0.975))
    factors = _smooth(scale.log()).mul(0.5).exp() * quantiles
    return Inflation(shares, tuple(factors.clamp_min(1.0).tolist()))


def _means(
    squared: Tensor, n_items: int, n_first: int
) -> tuple[tuple[float, ...], Tensor]:
    """Shares with errors around them, and each target's mean there, ``T x shares``.

    Without any error, as of a single item, all shares with no target to average over.
    """
    n_targets, columns = squared.shape
    if not columns:
        return _SHARES, squared.new_zeros(n_targets, len(_SHARES))
    at = torch.tensor(_SHARES, dtype=squared.dtype)
    edges = (at[:-1] * at[1:]).sqrt()
    share = torch.arange(n_first, n_first + columns, dtype=squared.dtype) / n_items
    place = torch.bucketize(share, edges)
    found = place.unique().tolist()
    means = [squared[:, place == j].mean(-1) for j in found]
    return tuple(_SHARES[j] for j in found), torch.stack(means, -1)


def _smooth(values: Tensor) -> Tensor:
    """Weights 1/4, 1/2, 1/4; the ends count for what is beyond them."""
    padded = torch.cat([values[:1], values, values[-1:]])
    return padded[:-2] / 4.0 + padded[1:-1] / 2.0 + padded[2:] / 4.0
