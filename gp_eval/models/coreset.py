"""What was evaluated so far, checked before anything is changed."""

from __future__ import annotations

import torch
from torch import Tensor

from gp_eval.data import References
from gp_eval.models.protocol import check_batch

__all__ = ["Coreset"]


class Coreset:
    r"""Evaluated items and their scores, for models that have no use for buckets.

    Args:
        references: Items and their weights.

    Attributes:
        weights (Tensor): Weights of the items in :math:`R = \sum_i w_i s_i`, shape
            ``N``, with sum 1.
    """

    def __init__(self, references: References) -> None:
        self.weights = references.item_weights
        self._uniform = not references.is_weighted
        self._scores = torch.zeros_like(self.weights)
        self._seen: dict[int, None] = {}

    @property
    def n_items(self) -> int:
        """Number of items ``N``."""
        return self.weights.shape[0]

    @property
    def n(self) -> int:
        """Number of evaluated items."""
        return len(self._seen)

    @property
    def complete(self) -> bool:
        """Whether every item was evaluated."""
        return self.n == self.n_items

    @property
    def evaluated(self) -> list[int]:
        """Evaluated items in the order in which they came."""
        return list(self._seen)

    def check(self, items: Tensor, scores: Tensor) -> list[tuple[int, float]]:
        """Pairs of item and score that may be added; nothing is changed.

        Raises:
            ValueError: For an item out of range, given twice or evaluated before, for
                a score that is not finite, or for unequal numbers of both.
        """
        fresh = check_batch(items, scores, n_items=self.n_items, seen=self._seen)
        return list(fresh.items())

    def add(self, item: int, score: float) -> None:
        """Add a pair that was checked."""
        self._seen[item] = None
        self._scores[item] = score

    @property
    def observed(self) -> Tensor:
        """What the evaluated items contribute to the benchmark score, a scalar.

        The sum is in item order, whatever the order of evaluation: at ``n = N`` it is
        the benchmark score to the last bit.
        """
        if self._uniform:
            return self._scores.sum() / self.n_items
        return self.weights.dot(self._scores)
