r"""Sequential conditioning by appending rows to a triangular solve.

With :math:`L L^\top = \Sigma_{CC} + D_C` the engine keeps
:math:`V = L^{-1} \Sigma_{C,:}`. The Cholesky row of a new item is a column of ``V``,
so an append needs no triangular solve: one product of a vector with ``V`` updates the
mean, the variances and :math:`g = \Sigma_{|C} u` of *all* buckets, and everything the
next decision needs follows from them in :math:`O(B)`.
"""

from __future__ import annotations

from copy import copy as shallow_copy
from typing import Self

import torch
from torch import Tensor

from gp_eval.linalg.cholesky import cholesky
from gp_eval.linalg.kernel_table import KernelTable
from gp_eval.linalg.observations import Observations

__all__ = ["RowAppendPosterior"]

_BLOCK = 512


class RowAppendPosterior:
    r"""Posterior of the ``B`` bucket abilities, Eq. (7), one observation at a time.

    The paper states :math:`O(\min(n, B)^2)` per step for the posterior; Eq. (6) for all
    buckets needs one product with ``V``, so a step here is :math:`O(nB)`.

    Args:
        table: Prior covariance of the buckets.
        prior_mean: Prior mean, shape ``B``.
        remaining: Summed weight ``u`` of the unevaluated items by bucket, shape ``B``.

    Attributes:
        mean (Tensor): Posterior mean of the abilities, shape ``B``.
        variance (Tensor): Posterior variance of the abilities, shape ``B``.
        remaining (Tensor): The present ``u``, shape ``B``.
        covariance_with_rest (Tensor): ``g``, the posterior covariance of each ability
            with the weighted sum of the abilities of all unevaluated items, shape
            ``B``.
    """

    __slots__ = (
        "_rows",
        "covariance_with_rest",
        "mean",
        "n_rows",
        "prior_mean",
        "remaining",
        "table",
        "variance",
    )

    def __init__(
        self, table: KernelTable, prior_mean: Tensor, remaining: Tensor
    ) -> None:
        self.table = table
        self.prior_mean = prior_mean
        self.remaining = remaining.clone()
        self._rows = prior_mean.new_empty(0, prior_mean.shape[0])
        self.condition(None)

    def condition(self, observations: Observations | None) -> None:
        """Start again from the prior and these observations (``m`` values).

        Raises:
            NotPositiveDefiniteError: If their covariance has no Cholesky factor.
        """
        self.n_rows = 0
        self.mean = self.prior_mean.clone()
        self.variance = self.table.diagonal().clone()
        self.covariance_with_rest = self._prior_covariance_with_rest()
        if observations is None or observations.bucket.shape[0] == 0:
            return
        bucket = observations.bucket
        gram = self.table.block(bucket, bucket)
        gram.diagonal().add_(observations.noise)
        factor = cholesky(gram, name="covariance of the evaluated items")
        del gram
        residual = observations.value - self.prior_mean[bucket]
        white = torch.linalg.solve_triangular(
            factor, residual.unsqueeze(-1), upper=False
        ).squeeze(-1)
        self._reserve(bucket.shape[0])
        rows = self._rows[: bucket.shape[0]]
        for start in range(0, self.mean.shape[0], _BLOCK):
            columns = slice(start, start + _BLOCK)
            rows[:, columns] = torch.linalg.solve_triangular(
                factor, self.table.block(bucket, columns), upper=False
            )
            self.variance[columns] -= rows[:, columns].square().sum(0)
        self.n_rows = bucket.shape[0]
        self.mean += white @ rows
        self._condition_rest(rows)

    def append(self, bucket: int, score: float, noise: float, weight: float) -> None:
        r"""Condition on one more item.

        Args:
            bucket: Bucket of the item.
            score: Its score.
            noise: Its noise variance :math:`N_b \sigma^2`.
            weight: Its weight in ``remaining``, which it leaves.
        """
        n = self.n_rows
        if n == self._rows.shape[0]:
            self._reserve(n + 1)
        rows = self._rows[:n]
        # A product with a strided vector would take half as long again.
        loading = rows[:, bucket].clone()
        covariance = torch.addmv(self.table.row(bucket), rows.T, loading, alpha=-1)
        # Plain numbers: one item at a time waits for its score anyway, and a scalar
        # tensor costs as much as a vector of all buckets.
        variance = float(covariance[bucket]) + noise
        row = torch.mul(covariance, variance**-0.5, out=self._rows[n])
        self.n_rows = n + 1
        innovation = score - float(self.mean[bucket])
        self.mean.add_(covariance, alpha=innovation / variance)
        self.variance.addcmul_(row, row, value=-1)
        self._append_rest(bucket, covariance, variance, weight)
        self.remaining[bucket].sub_(weight)

    def _prior_covariance_with_rest(self) -> Tensor:
        return self.table.matvec(self.remaining)

    def _condition_rest(self, rows: Tensor) -> None:
        """Take off ``covariance_with_rest`` what rows ``m x B`` of ``V`` explain."""
        self.covariance_with_rest -= (rows @ self.remaining) @ rows

    def _append_rest(
        self, bucket: int, covariance: Tensor, variance: float, weight: float
    ) -> None:
        """Take off what one item explains, and the item itself.

        The rank-1 downdate with the old ``u``, and then ``u`` loses the item: both are
        multiples of the covariance with it before it was known (shape ``B``).
        """
        share = float(covariance.dot(self.remaining)) - weight * float(
            covariance[bucket]
        )
        change = share / variance + weight
        self.covariance_with_rest.sub_(covariance, alpha=change)

    def covariance(self, left: Tensor, right: Tensor) -> Tensor:
        """Posterior covariance ``... x p x q`` of buckets ``... x p``, ``... x q``."""
        size = self.mean.shape[0]
        if left.ndim == 1 and right.ndim == 1:
            rows = self._rows[: self.n_rows]
            return self.table.block(left, right) - rows[:, left].T @ rows[:, right]
        batch = torch.broadcast_shapes(left.shape[:-1], right.shape[:-1])
        left, right = left.expand(*batch, -1), right.expand(*batch, -1)
        used = torch.unique(torch.cat([left.reshape(-1), right.reshape(-1)]))
        place = torch.empty(size, dtype=torch.long, device=used.device)
        place[used] = torch.arange(used.shape[0], device=used.device)
        table = self.covariance(used, used)
        return table[place[left].unsqueeze(-1), place[right].unsqueeze(-2)]

    def covariance_of_sums(self, columns: Tensor) -> Tensor:
        """Posterior covariance ``m x m`` of ``m`` weighted sums of abilities.

        Exactly 0 in the rows and columns of sums without any weight.

        Args:
            columns: Weights of the abilities, ``B x m``.
        """
        explained = self._rows[: self.n_rows] @ columns
        prior = columns.T @ self.table.matvec(columns)
        return prior - explained.T @ explained

    def clone(self) -> Self:
        """An independent copy that shares the prior."""
        copy = object.__new__(type(self))
        # A copy of its own: `refresh` of the original must not reach this one.
        copy.table, copy.prior_mean = shallow_copy(self.table), self.prior_mean
        copy.n_rows = self.n_rows
        copy._rows = self._rows[: self.n_rows].clone()
        copy.restore(self.snapshot())
        return copy

    def snapshot(self) -> tuple[int, Tensor, Tensor, Tensor, Tensor]:
        """The present state, for :meth:`restore`; rows are only ever appended."""
        return (
            self.n_rows,
            self.mean.clone(),
            self.variance.clone(),
            self.remaining.clone(),
            self.covariance_with_rest.clone(),
        )

    def restore(self, state: tuple[int, Tensor, Tensor, Tensor, Tensor]) -> None:
        """Forget everything appended since ``state`` was taken."""
        self.n_rows, self.mean, self.variance, self.remaining, rest = state
        self.covariance_with_rest = rest

    def _reserve(self, n: int) -> None:
        """Make room for ``n`` rows and some more."""
        capacity = self._rows.shape[0]
        if n > capacity:
            kept = self._rows[: self.n_rows]
            if not self.n_rows:  # nothing to keep: free the old rows first
                self._rows = kept = kept.new_empty(0, kept.shape[1])
            grown = kept.new_empty(n + max(64, n // 8), kept.shape[1])
            grown[: self.n_rows] = kept
            self._rows = grown
