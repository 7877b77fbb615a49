"""Buckets: items on which all reference models scored the same."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from gp_eval.data.references import References
from gp_eval.errors import DataError

__all__ = ["Buckets"]


@dataclass(frozen=True)
class Buckets:
    """Partition of ``N`` items into ``B`` buckets (Section 3.1 of the BayesAME paper).

    Buckets are numbered by their first item, so ``B = N`` gives bucket ``i`` = item
    ``i``.

    Attributes:
        phi: Unique reference score vectors, ``B x K``.
        counts: Items per bucket, the paper's ``N_b``, as float64 of shape ``B``.
        item_bucket: Bucket of each item, integers of shape ``N``.
        item_weights: Weights of the items scaled to sum to ``N``, shape ``N``; 1 each
            for the plain mean.
    """

    phi: Tensor
    counts: Tensor
    item_bucket: Tensor
    item_weights: Tensor

    @classmethod
    def from_references(
        cls, references: References, *, tolerance: float = 0.0
    ) -> Buckets:
        """Group the items with equal rows.

        Args:
            references: Complete reference scores.
            tolerance: Scores are rounded to multiples of it before they are compared;
                ``phi`` is then the mean of the rows of a bucket. 0 compares exactly.

        Raises:
            DataError: For missing cells or a negative tolerance.
        """
        if not tolerance >= 0.0:
            raise DataError(f"tolerance: expected a number >= 0, got {tolerance}")
        if references.n_missing:
            raise DataError(
                f"references: {references.n_missing} missing cells; read them with "
                "missing='drop-items', 'drop-models' or 'mean'"
            )
        scores = references.scores.numpy()
        rows = np.round(scores / tolerance) if tolerance else scores
        rows = np.ascontiguousarray(rows + 0.0)  # -0.0 and 0.0 are the same score
        keys = rows.view(np.dtype((np.void, rows.strides[0]))).ravel()
        _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
        rank = np.argsort(np.argsort(first))
        item_bucket = rank[inverse]
        counts = np.bincount(item_bucket)
        phi = scores[np.sort(first)]
        if tolerance:
            phi = np.zeros_like(phi)
            np.add.at(phi, item_bucket, scores)
            phi /= counts[:, None]
        n_items = len(references.items)
        weights = (
            references.item_weights * n_items
            if references.is_weighted
            else torch.ones(n_items, dtype=torch.float64)
        )
        return cls(
            phi=torch.from_numpy(phi),
            counts=torch.from_numpy(counts).double(),
            item_bucket=torch.from_numpy(item_bucket),
            item_weights=weights,
        )

    @property
    def n_items(self) -> int:
        """Number of items ``N``."""
        return self.item_bucket.shape[0]

    @property
    def n_buckets(self) -> int:
        """Number of buckets ``B``."""
        return self.phi.shape[0]

    @property
    def inputs(self) -> Tensor:
        """Rows ``[phi, count]`` of the GP layer, ``B x (K + 1)``."""
        return torch.cat([self.phi, self.counts.unsqueeze(-1)], dim=-1)

    def unique(self, margin: int = 10) -> bool:
        """Whether buckets are nearly unique: the paper's ``B >= N - N_0``."""
        return self.n_buckets >= self.n_items - margin

    def to(self, device: torch.device | str) -> Buckets:
        """The same buckets on another device."""
        return Buckets(
            phi=self.phi.to(device),
            counts=self.counts.to(device),
            item_bucket=self.item_bucket.to(device),
            item_weights=self.item_weights.to(device),
        )
