"""Clusters of items around anchors, by correlation over the references."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

__all__ = ["AnchorCoverage"]

DECIMALS = 12


class AnchorCoverage:
    r"""How well a growing set of anchors covers the items.

    Two items are as near as their scores correlate over the references. Every item
    belongs to the anchor it correlates with most; an anchor belongs to itself, whatever
    it correlates with, so that ``N`` anchors are ``N`` clusters. An item whose scores
    are all equal has no correlation with any other; it counts as 0, as in the code of
    Zhang et al.

    Equal correlations go to the anchor of lowest index, so that nothing depends on the
    order of anchors. Correlations are rounded to 12 decimals for that: binary scores
    have many that are equal but for rounding. The ``N x N`` matrix is never made; an
    anchor costs :math:`O(N K)`.

    Args:
        scores: Reference scores, ``N x K``.

    Attributes:
        centrality (Tensor): Mean correlation of an item with all items, shape ``N``.
        similarity (Tensor): Correlation with the nearest anchor, shape ``N``;
            ``-inf`` without anchors.
        anchors (list[int]): The anchors in their order.
    """

    def __init__(self, scores: Tensor) -> None:
        centred = scores - scores.mean(-1, keepdim=True)
        # Compared and not computed: the mean of equal scores may be off by rounding.
        constant = scores.amax(-1) == scores.amin(-1)
        centred[constant] = 0.0
        norm = centred.norm(dim=-1, keepdim=True)
        self.features = centred / torch.where(norm > 0.0, norm, 1.0)
        self.centrality = self.features @ self.features.mean(0)
        self.similarity = torch.full_like(self.centrality, -torch.inf)
        self.anchors: list[int] = []
        self._owner = torch.zeros(scores.shape[0], dtype=torch.long)

    def correlations(self, item: int) -> Tensor:
        """Correlation of one item with all items, shape ``N``."""
        row = self.features @ self.features[item]
        return row.round(decimals=DECIMALS)

    def add(self, item: int) -> None:
        """Make an item an anchor: it takes the items that are nearest to it."""
        row = self.correlations(item)
        tied = (row == self.similarity) & (self._owner > item)
        taken = (row > self.similarity) | tied
        taken[self.anchors] = False
        taken[item] = True
        self.similarity = torch.where(taken, row, self.similarity)
        self._owner[taken] = item
        self.anchors.append(item)

    def cluster_sizes(self) -> Tensor:
        """Items in the cluster of each anchor, shape ``N``; 0 for other items."""
        if not self.anchors:
            return torch.zeros_like(self.centrality)
        sizes = torch.bincount(self._owner, minlength=self._owner.shape[0])
        return sizes.to(self.centrality)

    @contextmanager
    def lookahead(self) -> Iterator[Callable[[int], None]]:
        """Add anchors for a while: which items come next does not depend on scores.

        Yields a function that adds one item; on exit the anchors are as before.
        """
        similarity, owner = self.similarity, self._owner.clone()
        anchors = list(self.anchors)
        try:
            yield self.add
        finally:
            self.similarity, self._owner, self.anchors = similarity, owner, anchors
