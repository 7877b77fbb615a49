r"""Eq. (12) of the BayesAME paper over the candidates of one decision."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from gp_eval.linalg import cholesky

__all__ = ["BatchObjective"]


class BatchObjective:
    r"""Variance of the benchmark score that batches of candidates would take away.

    .. math::

        \beta(A) = c_A^\top \Sigma_{AA|C}^{-1} c_A, \qquad
        c_A = \operatorname{Cov}(R, s_A \mid s_C)

    which is Eq. (12): :math:`c_A = \Sigma_{A,U|C} \mathbf{1} / N` for equal weights.
    Candidates are numbered ``0 .. M - 1`` here. Rows of their covariance are computed
    when they are asked for and kept, so that a search which looks at few items costs
    :math:`O(M)` a row and never the :math:`M \times M` matrix. It computes on the CPU,
    wherever the model is, and must not be used once the model has changed.

    Args:
        model: A belief over scores with ``performance_covariance``, ``score_variance``
            and ``score_covariance``; with ``score_cross_covariance`` rows are lazy.
        items: Item index of each candidate, integers of shape ``M``.

    Attributes:
        covariance (Tensor): ``c``, shape ``M``.
        variance (Tensor): Variance of each candidate's score, shape ``M``.
    """

    def __init__(self, model: Any, items: Tensor) -> None:
        self.model, self.items = model, items
        self.covariance = model.performance_covariance(items).cpu()
        self.variance = model.score_variance(items).cpu()
        self._cross = getattr(model, "score_cross_covariance", None)
        self._slot = torch.full((len(self),), -1)
        self._rows = self.covariance.new_empty(0, len(self))
        if self._cross is None:
            self._rows = model.score_covariance(items).cpu()
            self._slot = torch.arange(len(self))
        self._n_rows = self._rows.shape[0]

    def __len__(self) -> int:
        """Number of candidates ``M``."""
        return self.items.shape[0]

    def rows(self, candidates: Tensor) -> Tensor:
        """Covariance of candidates (any shape) with all, ``... x M``."""
        wanted = torch.unique(candidates)
        self._add(wanted[self._slot[wanted] < 0])
        return self._rows[self._slot[candidates]]

    def _add(self, candidates: Tensor) -> None:
        """Compute and keep the rows of these, none of which is kept yet."""
        if self._cross is None or not candidates.shape[0]:
            return
        rows = self._cross(self.items[candidates], self.items).cpu()
        end = self._n_rows + rows.shape[0]
        if end > self._rows.shape[0]:
            grown = self._rows.new_empty(max(end, 2 * self._rows.shape[0]), len(self))
            grown[: self._n_rows] = self._rows[: self._n_rows]
            self._rows = grown
        self._rows[self._n_rows : end] = rows
        self._slot[candidates] = torch.arange(self._n_rows, end)
        self._n_rows = end

    def block(self, candidates: Tensor) -> Tensor:
        """Covariance ``m x m`` of candidates, without keeping it."""
        return self.cross(candidates, candidates)

    def cross(self, left: Tensor, right: Tensor) -> Tensor:
        """Covariance ``p x q`` of candidates, without keeping it."""
        if self._cross is None:
            return self._rows[left][:, right]
        return self._cross(self.items[left], self.items[right]).cpu()

    def among(self, batches: Tensor) -> Tensor:
        r""":math:`\Sigma_{AA|C}` of batches ``b x q``, shape ``b x q x q``."""
        return self.rows(batches).gather(
            -1, batches.unsqueeze(-2).expand(*batches.shape, batches.shape[-1])
        )

    def values(self, batches: Tensor) -> Tensor:
        r""":math:`\beta` of batches ``b x q``, from a fresh factor, shape ``b``."""
        factor = cholesky(self.among(batches), name="covariance of the batch")
        target = self.covariance[batches].unsqueeze(-1)
        white = torch.linalg.solve_triangular(factor, target, upper=False)
        return white.square().sum((-2, -1))

    def inverses(self, batches: Tensor) -> Tensor:
        r""":math:`\Sigma_{AA|C}^{-1}` of batches ``b x q``, shape ``b x q x q``."""
        factor = cholesky(self.among(batches), name="covariance of the batch")
        return torch.cholesky_inverse(factor)
