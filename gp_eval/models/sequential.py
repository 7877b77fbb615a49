"""The bucketed ability model, conditioned item by item."""

from __future__ import annotations

from collections.abc import Callable, Iterator, KeysView
from contextlib import contextmanager
from typing import Any

import torch
from gpytorch.kernels import Kernel
from gpytorch.means import Mean
from torch import Tensor

from gp_eval.data import Buckets
from gp_eval.estimators import bayes_estimate, performance_estimate
from gp_eval.kernels import ReferenceScoreKernel
from gp_eval.linalg import (
    KernelTable,
    Observations,
    RowAppendPosterior,
    make_kernel_table,
)
from gp_eval.means import ReferenceMean
from gp_eval.models.item_model import ItemModel
from gp_eval.models.protocol import as_items

__all__ = ["SequentialBucketModel"]


class SequentialBucketModel(ItemModel):
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
        self.noise_variance = noise * buckets.counts
        self.totals = self._by_bucket(buckets.item_weights)
        with torch.no_grad():
            self.prior_mean = self.mean_module(buckets.phi).detach()
        self.table: KernelTable = make_kernel_table(self.covar_module, buckets.phi)
        self.engine = RowAppendPosterior(self.table, self.prior_mean, self.totals)
        self._seen: dict[int, None] = {}
        self._scores = torch.zeros_like(buckets.item_weights)
        self._unseen = torch.ones_like(buckets.item_weights)
        self._bucket_of: list[int] = buckets.item_bucket.tolist()
        self._weight_of: list[float] = buckets.item_weights.tolist()
        self._uniform = bool((buckets.item_weights == 1).all())
        weights = buckets.item_weights
        self._noise = self.noise_variance[buckets.item_bucket]
        self._weighted_noise = weights * self._noise
        self._squared_noise = weights * self._weighted_noise
        self._noise_of: list[float] = self._noise.tolist()
        # Not an attribute of its own: torch checks every assignment to a module.
        self._memo: dict[str, Tensor] = {}

    def _by_bucket(self, item_values: Tensor) -> Tensor:
        """Sums over the items of each bucket, exact zeros where all terms are 0."""
        zeros = torch.zeros_like(self.buckets.counts)
        return zeros.index_add_(0, self.buckets.item_bucket, item_values)

    @property
    def n(self) -> int:
        """Number of evaluated items."""
        return len(self._seen)

    @property
    def seen(self) -> KeysView[int]:
        """The evaluated items, for membership tests."""
        return self._seen.keys()

    @property
    def evaluated(self) -> list[int]:
        """Evaluated items in the order in which they came."""
        return list(self._seen)

    def _apply(self, fn: Any, recurse: bool = True) -> Any:
        """Refuse to move: tables and posterior would stay behind."""
        raise RuntimeError(
            "SequentialBucketModel cannot be moved or cast; build it from "
            "buckets.to(device). It computes in float64"
        )

    # Conditioning

    def append(self, item: int, score: float) -> None:
        """Condition on the score of one more item, in place.

        Raises:
            ValueError: If the item was evaluated before.
        """
        if item in self._seen:
            raise ValueError(f"item: {item} is evaluated already")
        self._append(item, float(score))
        self._seen[item] = None
        self._scores[item] = score

    def _append(self, item: int, score: float) -> None:
        self.engine.append(
            self._bucket_of[item], score, self._noise_of[item], self._weight_of[item]
        )
        self._unseen[item] = 0.0
        self._memo.clear()
        if not self._uniform:
            # Differences of weights would leave rounding where 0 is meant.
            weights = self.buckets.item_weights
            self.engine.remaining = self._by_bucket(weights * self._unseen)

    def refresh(self) -> None:
        """Take over new hyperparameters: condition again, by Eq. (7) or Eq. (8)."""
        self.table.refresh()
        with torch.no_grad():
            self.prior_mean = self.mean_module(self.buckets.phi).detach()
        self.engine.prior_mean = self.prior_mean
        self.engine.condition(self.observations(shortest=True))
        self._memo.clear()

    def observations(self, *, shortest: bool = False) -> Observations:
        """The evaluated items, one value each or in the shorter of both forms."""
        items = torch.tensor(self.evaluated, dtype=torch.long).to(self._scores.device)
        form = Observations.shortest if shortest else Observations.by_item
        buckets = self.buckets.item_bucket[items]
        return form(buckets, self._scores[items], self.noise_variance)

    @contextmanager
    def lookahead(self) -> Iterator[Callable[[int], None]]:
        """Condition the *variances* on items before their scores are known.

        Yields a function that adds one item, as if its score were the posterior mean;
        on exit the model is as before. Since no variance depends on scores, what is
        selected inside equals what one-by-one evaluation would have selected.
        """
        state, unseen = self.engine.snapshot(), self._unseen.clone()

        def add(item: int) -> None:
            self._append(item, float(self.engine.mean[self._bucket_of[item]]))

        try:
            yield add
        finally:
            self.engine.restore(state)
            self._unseen = unseen
            self._memo.clear()

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

    def score_covariance(self, items: Tensor) -> Tensor:
        """Predictive covariance ``... x q x q`` of items ``... x q``, with noise."""
        bucket = self.buckets.item_bucket[items]
        noise = torch.diag_embed(self.noise_variance[bucket])
        return self.engine.covariance(bucket, bucket) + noise

    # BoTorch's Model interface

    def latent(self, items: Tensor) -> tuple[Tensor, Tensor]:
        """Posterior mean and covariance of the abilities behind items ``... x q``."""
        bucket = self.buckets.item_bucket[items]
        return self.engine.mean[bucket], self.engine.covariance(bucket, bucket)

    def condition_on_observations(
        self, X: Tensor, Y: Tensor, **kwargs: Any
    ) -> SequentialBucketModel:
        """A new model with these items (``n x 1``) and scores (``n x 1``) as well."""
        if X.ndim != 2 or Y.shape != X.shape:
            raise ValueError(
                "X, Y: expected shapes n x 1 and n x 1, got "
                f"{tuple(X.shape)} and {tuple(Y.shape)}"
            )
        copy = self.clone()
        items = as_items(X, self.buckets.n_items)
        for item, score in zip(items, Y.reshape(-1), strict=True):
            copy.append(item, score)
        return copy

    def clone(self) -> SequentialBucketModel:
        """An independent copy that shares prior and hyperparameters."""
        copy = object.__new__(SequentialBucketModel)
        copy.__dict__.update(self.__dict__)
        copy.engine = self.engine.clone()
        copy.table = copy.engine.table
        copy._seen, copy._memo = dict(self._seen), {}
        copy._scores, copy._unseen = self._scores.clone(), self._unseen.clone()
        return copy
