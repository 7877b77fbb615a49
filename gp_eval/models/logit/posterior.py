"""The posterior of the latent values of all buckets."""

from __future__ import annotations

from functools import cached_property

import torch
from torch import Tensor

from gp_eval.models.logit.sites import Sites

__all__ = ["LatentPosterior"]


class LatentPosterior:
    """Gaussian posterior of ``f``, computed as far as it is asked for.

    Mean and products cost ``O(nB)``, the variances ``O(n^2 B)``.

    Args:
        prior: Prior covariance, ``B x B``.
        prior_mean: Prior mean, shape ``B``.
        sites: What was observed; ``None`` for the prior itself.
    """

    def __init__(self, prior: Tensor, prior_mean: Tensor, sites: Sites | None) -> None:
        self.prior, self.sites = prior, sites
        self.mean = prior_mean
        if sites is not None:
            self.mean = prior_mean + sites.coefficient @ prior[sites.bucket]

    @cached_property
    def _rows(self) -> Tensor:
        """``m x B`` rows whose products are what the observations explain."""
        if self.sites is None:
            return self.prior.new_empty(0, self.prior.shape[0])
        cross = self.sites.root.unsqueeze(-1) * self.prior[self.sites.bucket]
        return torch.linalg.solve_triangular(self.sites.factor, cross, upper=False)

    @cached_property
    def variance(self) -> Tensor:
        """Posterior variances, shape ``B``."""
        return self.prior.diagonal() - self._rows.square().sum(0)

    def covariance(self, buckets: Tensor) -> Tensor:
        """Posterior covariance ``q x q`` of ``q`` buckets."""
        rows = self._rows[:, buckets]
        return self.prior[buckets][:, buckets] - rows.mT @ rows

    def matvec(self, vector: Tensor) -> Tensor:
        """Posterior covariance times a vector, shape ``B``."""
        product, sites = self.prior @ vector, self.sites
        if sites is None:
            return product
        right = (sites.root * product[sites.bucket]).unsqueeze(-1)
        solved = torch.cholesky_solve(right, sites.factor).squeeze(-1)
        return product - (sites.root * solved) @ self.prior[sites.bucket]
