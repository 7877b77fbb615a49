"""The bucketed ability model, conditioned item by item."""

from __future__ import annotations

import torch
from gpytorch.kernels import Kernel
from gpytorch.means import Mean
from torch import Tensor

from gp_eval.data import Buckets
from gp_eval.estimators import bayes_estimate, performance_estimate
from gp_eval.kernels import ReferenceScoreKernel
from gp_eval.linalg import RowAppendPosterior, make_kernel_table
from gp_eval.means import ReferenceMean
from gp_eval.models.sequential_model import SequentialModel

__all__ = ["SequentialBucketModel"]


class SequentialBucketModel(SequentialModel):
    r"""BoTorch model of a target's scores over item *indices*.

    The same posterior as :class:`~gp_eval.models.BucketGP`, Eq. (7), kept by row
    appends at :math:`O(nB)` an item. Inputs ``X`` are ``... x q x 1`` item indices, so
    that uniqueness, ``X_avoid`` and pending points mean what they mean in BoTorch, and
    two items of one bucket have the right covariance with independent noise.

    Args:
        buckets: The items and their buckets, of weights summing to ``N``.
        noise: :math:`\sigma^2` of Section 3.1, in squared score units.
        covar_module: Any kernel over ``phi``; default
            :class:`~gp_eval.kernels.ReferenceScoreKernel`. It is used as it is: set or
            fit its parameters, then call :meth:`refresh`.
        mean_module: Any mean over ``phi``; default
            :class:`~gp_eval.means.ReferenceMean`.
    """

    def __init__(
        self,
        buckets: Buckets,
        *,
        noise: float,
        covar_module: Kernel | None = None,
        mean_module: Mean | None = None,
    ) -> None:
        super().__init__()
        if not noise > 0.0:
            raise ValueError(f"noise: expected sigma^2 > 0, got {noise}")
        self.buckets, self.n_items = buckets, buckets.n_items
        self.covar_module = (covar_module or ReferenceScoreKernel()).to(buckets.phi)
        self.mean_module = (mean_module or ReferenceMean()).to(buckets.phi)
        self._begin(
            point_ability=buckets.item_bucket,
            point_weights=buckets.item_weights,
            ability_counts=buckets.counts,
            noise=noise,
        )
        with torch.no_grad():
            self.prior_mean = self.mean_module(buckets.phi).detach()
        self.table = make_kernel_table(self.covar_module, buckets.phi)
        self.engine = RowAppendPosterior(self.table, self.prior_mean, self.totals)

    def refresh(self) -> None:
        """Take over new hyperparameters: condition again, by Eq. (7) or Eq. (8)."""
        with torch.no_grad():
            self._condition_again(self.mean_module(self.buckets.phi).detach())

    # The benchmark score

    @property
    def observed_sum(self) -> Tensor:
        """Weighted sum of the evaluated scores, in item order."""
        if self._uniform:
            return self._scores.sum()
        return (self.buckets.item_weights * self._scores).sum()

    def performance_mean(self) -> Tensor:
        """Posterior mean of the benchmark score, Eq. (3)."""
        return bayes_estimate(
            self.observed_sum,
            self.engine.mean,
            self.engine.remaining,
            self.buckets.n_items,
        )

    def performance_estimate(self, *, unique: bool) -> Tensor:
        """Eq. (5): ``w = 1 / N`` if buckets are nearly unique, else ``w = 1 / n``.

        Before the first item, where ``1 / n`` has no value, it is the prior mean; with
        all items both are the mean score.
        """
        if unique or self.n in (0, self.buckets.n_items):
            return self.performance_mean()
        return performance_estimate(
            self.observed_sum,
            self.engine.mean,
            self.totals,
            self.engine.remaining,
            scale=1.0 / self.n,
        )

    def performance_variance(self) -> Tensor:
        r"""Posterior variance of the benchmark score, Eq. (2).

        With item weights it is :math:`\frac{1}{N^2} (u^\top \Sigma_{|C} u + \sigma^2
        \sum_{i \notin C} w_i^2 N_{b(i)})`, which is Eq. (2) for unit weights.
        """
        if "variance" not in self._memo:
            engine, scale = self.engine, self.buckets.n_items**2
            if self._uniform:
                total = self._covariance_with_rest().dot(engine.remaining)
            else:
                total = engine.covariance_with_rest.dot(engine.remaining)
                total = total + self._squared_noise.dot(self._unseen)
            self._memo["variance"] = total / scale
        return self._memo["variance"]

    def _covariance_with_rest(self) -> Tensor:
        """Covariance of an item of each bucket with the sum of all left, shape ``B``.

        For equal weights, and for an item that is left: its own noise counts.
        """
        if "covariance" not in self._memo:
            covariance = self.engine.covariance_with_rest + self.noise_variance
            self._memo["covariance"] = covariance
        return self._memo["covariance"]

    def performance_covariance(self, items: Tensor) -> Tensor:
        r"""Posterior covariance of the benchmark score with unevaluated items.

        Args:
            items: Item indices of any shape.

        Returns:
            :math:`(g_{b(i)} + w_i \sigma^2 N_{b(i)}) / N`, the root of the numerator
            of Eq. (6), of the same shape.
        """
        rest = self.engine.covariance_with_rest[self.buckets.item_bucket[items]]
        return rest.add_(self._weighted_noise[items]).div_(self.buckets.n_items)

    def squared_correlation(self, items: Tensor) -> Tensor:
        """Squared posterior correlation of items (any shape) with the benchmark score.

        The fraction in Eq. (6): what part of the variance an item's score would take.
        """
        bucket, total = self.buckets.item_bucket[items], self.performance_variance()
        if not float(total) > 0.0:
            return torch.zeros_like(self._noise[items])  # nothing is left to explain
        if self._uniform:
            share = self._covariance_with_rest().square()
            share.div_(self.engine.variance + self.noise_variance)
            return share.div_(total * self.buckets.n_items**2)[bucket]
        variance = self.engine.variance[bucket] + self._noise[items]
        covariance = self.performance_covariance(items)
        return covariance.square() / variance / total
