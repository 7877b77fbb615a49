"""Row appends of many runs in lock-step, as batched linear algebra."""

from __future__ import annotations

import torch
from torch import Tensor

from gp_eval.linalg.cholesky import cholesky

__all__ = ["LockstepPosterior"]

_BLOCK = 512


class LockstepPosterior:
    r"""Posteriors of ``R`` targets with the same references, Eq. (7).

    The batched form of :class:`~gp_eval.linalg.RowAppendPosterior` for the kernel of
    Eq. (1) and equal item weights. Until hyperparameters differ between runs the
    covariance is the same for all: it is then kept once, with ``P = 1`` in place of
    ``P = R`` leading entries. The prior covariance is computed row by row from the
    shared distances, never stored for each run.

    Args:
        distances: Squared distances of score vectors, ``B x B``.
        n_references: ``K``.
        prior_mean: Prior mean, shape ``B``.
        noise: Noise variances :math:`N_b \sigma^2`, shape ``B``.
        counts: Items per bucket, shape ``B``.
        n_runs: ``R``.
        capacity: Number of rows to make room for.

    Attributes:
        mean (Tensor): Posterior means, ``R x B``.
        variance (Tensor): Posterior variances, ``P x B``.
        remaining (Tensor): Unevaluated items ``u``, ``P x B``.
        covariance_with_rest (Tensor): ``g``, ``P x B``.
    """

    def __init__(
        self,
        distances: Tensor,
        n_references: int,
        prior_mean: Tensor,
        noise: Tensor,
        counts: Tensor,
        *,
        n_runs: int,
        capacity: int,
    ) -> None:
        self.distances, self.n_references = distances, n_references
        self.prior_mean, self.noise = prior_mean, noise
        self.remaining = counts.unsqueeze(0).clone()
        self._capacity = capacity
        self._rows = prior_mean.new_empty(1, capacity, prior_mean.shape[0])
        self.n_rows, self.n_runs = 0, n_runs
        self.alpha = self.rate = prior_mean.new_ones(1, 1)
        self.set_hyperparameters(prior_mean.new_ones(1, 2))
        self.mean = prior_mean.expand(n_runs, -1).clone()
        self.variance = self.alpha.expand(1, prior_mean.shape[0]).clone()
        self.covariance_with_rest = self._prior_times_remaining()

    def set_hyperparameters(self, alpha_beta: Tensor) -> None:
        """Take ``(alpha, beta)`` of each run, ``P x 2``; condition afterwards."""
        self.alpha = alpha_beta[:, :1].clone()
        self.rate = -alpha_beta[:, 1:] / self.n_references

    def condition(self, bucket: Tensor, value: Tensor, noise: Tensor) -> None:
        """Start again from the prior and ``m`` observed values for each run.

        Args:
            bucket: Buckets of the values, ``P x m``.
            value: The values, ``R x m``.
            noise: Their noise variances, ``P x m``.
        """
        runs, m = self.alpha.shape[0], bucket.shape[1]
        if self._rows.shape[0] != runs:
            self._rows = self._rows.new_empty(
                runs, self._capacity, self.prior_mean.shape[0]
            )
        if self.remaining.shape[0] != runs:
            self.remaining = self.remaining.expand(runs, -1).clone()
        residual = value - self.prior_mean[bucket]
        self.mean = self.prior_mean.expand(self.n_runs, -1).clone()
        self.variance = self.alpha.expand(-1, self.prior_mean.shape[0]).clone()
        self.covariance_with_rest = self._prior_times_remaining()
        for run in range(runs):
            self._condition_one(run, bucket[run], residual, noise[run])
        self.n_rows = m

    def _condition_one(
        self, run: int, bucket: Tensor, residual: Tensor, noise: Tensor
    ) -> None:
        """One factorisation: batched ones are slower on a CPU, and need more memory."""
        rows = self._rows[run, : bucket.shape[0]]
        gram = self._prior(run, self.distances[bucket.unsqueeze(-1), bucket])
        gram.diagonal().add_(noise)
        factor = cholesky(gram, name="covariance of the evaluated items")
        shared = self.alpha.shape[0] == 1
        white = torch.linalg.solve_triangular(
            factor,
            residual.T if shared else residual[run].unsqueeze(-1),
            upper=False,
        )
        for start in range(0, self.prior_mean.shape[0], _BLOCK):
            columns = slice(start, start + _BLOCK)
            block = self._prior(run, self.distances[:, columns][bucket])
            rows[:, columns] = torch.linalg.solve_triangular(factor, block, upper=False)
        self.variance[run] -= rows.square().sum(0)
        change = white.T @ rows
        if shared:
            self.mean += change
        else:
            self.mean[run] += change.squeeze(0)
        self.covariance_with_rest[run] -= (rows @ self.remaining[run]) @ rows

    def append(self, bucket: Tensor, score: Tensor) -> None:
        """Condition every run on one more item.

        Args:
            bucket: Bucket of the item, shape ``P``.
            score: Its scores, shape ``R``.
        """
        n, at = self.n_rows, bucket.unsqueeze(-1)
        rows = self._rows[:, :n]
        own_row = torch.arange(rows.shape[0], device=bucket.device)
        covariance = (self.distances[bucket] * self.rate).exp_().mul_(self.alpha)
        if n:
            loading = rows[own_row, :, bucket].unsqueeze(1)
            covariance -= torch.bmm(loading, rows).squeeze(1)
        own = covariance.gather(1, at)
        variance = own + self.noise[at]
        row = covariance * variance.rsqrt()
        self._rows[:, n] = row
        self.n_rows = n + 1
        expected = self.mean.gather(1, at.expand(self.n_runs, 1))
        self.mean.addcmul_(covariance, (score.unsqueeze(-1) - expected) / variance)
        self.variance.addcmul_(row, row, value=-1)
        share = (covariance * self.remaining).sum(1, keepdim=True) - own
        self.covariance_with_rest.sub_(covariance * (share / variance + 1.0))
        self.remaining.scatter_add_(1, at, -torch.ones_like(own))

    def _prior(self, run: int, distances: Tensor) -> Tensor:
        return (distances * self.rate[run]).exp_().mul_(self.alpha[run])

    def _prior_times_remaining(self) -> Tensor:
        products = []
        for run in range(self.alpha.shape[0]):
            left = self.remaining[min(run, self.remaining.shape[0] - 1)]
            blocks = self.distances.split(_BLOCK)
            products.append(torch.cat([self._prior(run, b) @ left for b in blocks]))
        return torch.stack(products)
