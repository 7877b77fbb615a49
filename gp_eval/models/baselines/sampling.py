"""What the baselines that estimate from a sample of items have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import torch
from botorch.acquisition.acquisition import AcquisitionFunction
from torch import Tensor

from gp_eval.data import References
from gp_eval.errors import DataError
from gp_eval.models.coreset import Coreset
from gp_eval.models.protocol import Performance

__all__ = [
    "SampleModel",
    "effective_sample_size",
    "require_complete",
    "require_uniform",
    "sample_variance",
    "sampling_variance",
    "score_variance",
]


def effective_sample_size(weights: Tensor) -> Tensor:
    r"""Number of equally weighted items that are worth a weighted sample.

    :math:`n_\text{eff} = (\sum_i w_i)^2 / \sum_i w_i^2` of Eq. (9). Weights may have
    any scale, and whole numbers give a whole number without rounding.

    Args:
        weights: Weights of the evaluated items, ``... x n``.
    """
    return weights.sum(-1).square() / weights.square().sum(-1)


def sampling_variance(
    variance: Tensor, effective_size: Tensor | float, n_items: int
) -> Tensor:
    r"""Eq. (9) of the BayesAME paper: variance of a weighted sample mean.

    :math:`s^2 (\sum_i w_i^2) (N - n_\text{eff}) / N`, where weights with sum 1 have
    :math:`\sum_i w_i^2 = 1 / n_\text{eff}`.

    Args:
        variance: Sample variance :math:`s^2` of the scores.
        effective_size: :math:`n_\text{eff}`; ``n`` for equal weights.
        n_items: Number of items ``N``.
    """
    return variance / effective_size * (n_items - effective_size) / n_items


def sample_variance(values: Tensor, single: Tensor) -> Tensor:
    """Sample variance (divisor ``n - 1``), a scalar.

    Args:
        values: ``n`` values, at least one.
        single: What to use for ``n = 1``, where the sample has no variance.
    """
    return values.var() if values.shape[0] > 1 else single


def score_variance(references: References) -> Tensor:
    """Variance of one score, pooled over all items and references, a scalar.

    It stands in where a target's scores have no variance of their own yet: one
    evaluated item tells nothing about the spread. It is 0 only if every reference has
    the same score on every item.
    """
    return references.scores.var(correction=0)


def require_complete(name: str, references: References) -> None:
    """Raise a ``DataError`` that names the model for missing cells."""
    if references.n_missing:
        raise DataError(
            f"{name}: {references.n_missing} missing cells; read the references with "
            "missing='drop-items', 'drop-models' or 'mean'"
        )


def require_uniform(name: str, references: References) -> None:
    """Raise an error that names the model for missing cells or item weights."""
    require_complete(name, references)
    if references.is_weighted:
        raise ValueError(
            f"{name}: item weights are not supported, for its variance is that of a "
            "sample from equally weighted items; use bayesame, bayesame-rs, rs-learn "
            "or bayes-rs-learn"
        )


class SampleModel(ABC):
    """A :class:`~gp_eval.models.PerformanceModel` of randomly chosen items.

    Subclasses say what they estimate from the evaluated items; nothing they do depends
    on the order of evaluation. Before the first item the estimate is the mean score
    of the references. Its variance is that of a single score: the benchmark score is
    a mean of scores, so theirs is an upper bound.

    Args:
        references: Complete reference scores.
    """

    name: ClassVar[str]

    def __init__(self, references: References) -> None:
        self.coreset = Coreset(references)
        self.n_items = len(references.items)
        self._prior = Performance(
            references.performance.mean(), score_variance(references)
        )
        self._belief: Performance | None = None
        self._values = torch.zeros(self.n_items, dtype=torch.float64)

    @property
    def items(self) -> Tensor:
        """Evaluated items in ascending order, shape ``n``."""
        return torch.tensor(sorted(self.coreset.evaluated), dtype=torch.long)

    @property
    def scores(self) -> Tensor:
        """Scores of the evaluated items in that order, shape ``n``."""
        return self._values[self.items]

    def condition(self, items: Tensor, scores: Tensor) -> None:
        """Take in ``m`` more items and their scores, in any order.

        Raises:
            ValueError: For an item out of range or evaluated before, or a score that
                is not finite; nothing is changed then.
        """
        for item, score in self.coreset.check(items, scores):
            self.coreset.add(item, score)
            self._values[item] = score
        self._belief = None

    def performance(self) -> Performance:
        """Estimate and variance, computed once for every set of evaluated items."""
        if not self.coreset.n:
            return self._prior
        if self._belief is None:
            self._belief = self._estimate()
        return self._belief

    def acquisition(self) -> AcquisitionFunction | None:
        """``None``: items are chosen at random."""
        return None

    @abstractmethod
    def _estimate(self) -> Performance:
        """Estimate and variance after at least one item."""

    def _exact(self) -> Performance:
        """The mean of all scores, which is known once every item was evaluated."""
        mean = self.scores.mean()
        return Performance(mean, torch.zeros_like(mean))
