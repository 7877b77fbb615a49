r"""Row appends over pairs of target and bucket."""

from __future__ import annotations

import torch
from torch import Tensor

from gp_eval.linalg.kernel_table import KernelTable
from gp_eval.linalg.row_append import RowAppendPosterior

__all__ = ["MultiTargetPosterior"]


class MultiTargetPosterior(RowAppendPosterior):
    r"""Posterior of ``T B`` abilities, with the benchmark scores of ``T`` targets.

    The same algebra as for one target over pairs ``t * B + b``, except that each target
    has its own sum of unevaluated items: with :math:`U` of ``T`` columns, column ``t``
    being the remaining weights of target ``t``, the engine keeps :math:`G =
    \Sigma_{|C} U`. An append costs one product with the ``n x T B`` rows.

    Args:
        table: Prior covariance of the pairs.
        prior_mean: Prior mean, shape ``T B``.
        remaining: Summed weight of the unevaluated items by pair, shape ``T B``.
        n_targets: ``T``.

    Attributes:
        covariance_with_rest (Tensor): :math:`G^\top`, ``T x T B``.
    """

    __slots__ = ("n_targets",)

    def __init__(
        self,
        table: KernelTable,
        prior_mean: Tensor,
        remaining: Tensor,
        *,
        n_targets: int,
    ) -> None:
        self.n_targets = n_targets
        super().__init__(table, prior_mean, remaining)

    def remaining_by_target(self) -> Tensor:
        """The remaining weights, ``T x B``."""
        return self.remaining.view(self.n_targets, -1)

    def rest_covariance(self) -> Tensor:
        """Posterior covariance of the targets' sums of what is left, ``T x T``."""
        size, remaining = self.n_targets, self.remaining_by_target()
        rest = self.covariance_with_rest.view(size, size, -1)
        covariance = (rest * remaining).sum(-1)
        # A target with nothing left has no covariance with others, whatever rounding
        # says about its row.
        left = (remaining != 0).any(-1).to(covariance)
        return 0.5 * (covariance + covariance.T) * torch.outer(left, left)

    def _prior_covariance_with_rest(self) -> Tensor:
        columns = torch.block_diag(*self.remaining_by_target().unsqueeze(-1))
        return self.table.matvec(columns).T.contiguous()

    def _condition_rest(self, rows: Tensor) -> None:
        columns = rows.view(rows.shape[0], self.n_targets, -1)
        explained = (columns * self.remaining_by_target()).sum(-1)
        self.covariance_with_rest.addmm_(explained.T, rows, alpha=-1)

    def _append_rest(
        self, bucket: int, covariance: Tensor, variance: float, weight: float
    ) -> None:
        target = bucket // (covariance.shape[0] // self.n_targets)
        by_target = covariance.view(self.n_targets, -1)
        shares = (by_target * self.remaining_by_target()).sum(-1) / variance
        shares[target] += weight * (1.0 - covariance[bucket] / variance)
        self.covariance_with_rest.addr_(shares, covariance, alpha=-1)

    def clone(self) -> MultiTargetPosterior:
        """An independent copy that shares the prior."""
        copy = super().clone()
        copy.n_targets = self.n_targets
        return copy
