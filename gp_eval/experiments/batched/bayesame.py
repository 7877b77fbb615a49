"""BayesAME for many targets in lock-step."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from gp_eval.acquisition.select import TIE
from gp_eval.data import Buckets, References
from gp_eval.experiments.curves import Curves
from gp_eval.kernels import ReferenceScoreKernel
from gp_eval.linalg import Observations
from gp_eval.linalg.kernel_table import squared_distances
from gp_eval.linalg.lockstep import LockstepPosterior
from gp_eval.optim.batched import fit_batched, fit_one_by_one
from gp_eval.optim.lbfgsb import Parametrization

__all__ = ["simulate_bayesame"]


def simulate_bayesame(
    references: References,
    scores: Tensor,
    order: Tensor,
    *,
    n_max: int,
    selection: Literal["auto", "random"] = "auto",
    noise: float | None = None,
    margin: int = 10,
    refit_every: int | None = 50,
    parametrization: Parametrization = "raw",
    tolerance: float = 0.0,
    device: torch.device | str = "cpu",
) -> Curves:
    """Curves of BayesAME for ``R`` targets that share their references.

    The same numbers as :class:`~gp_eval.models.BayesAME` run on each target by itself.
    All runs have evaluated the same number of items at any time; until the first
    hyperparameter update they have even selected the same items, which is done once.

    Args:
        references: References of all runs, with equal item weights.
        scores: Scores of the targets on all items, ``R x N``.
        order: A permutation of the items, shape ``N``: the order of random selection
            and of the items within a bucket.
        n_max: Number of items to evaluate.
        selection: As in :class:`~gp_eval.models.BayesAME`, like all that follow.
        noise: As there.
        margin: As there.
        refit_every: As there.
        parametrization: As there.
        tolerance: As there.
        device: Where to compute; on CUDA the fits of all runs are batched.
    """
    if references.is_weighted:
        raise ValueError("references: weighted items are simulated one run at a time")
    runs = _Runs(
        Buckets.from_references(references, tolerance=tolerance).to(device),
        scores.to(device),
        order.to(device),
        n_max=n_max,
        selection=selection,
        noise=noise,
        margin=margin,
        parametrization=parametrization,
    )
    means, variances = [], []
    for n in range(n_max):
        if refit_every is not None and n and n % refit_every == 0:
            runs.refit()
        runs.step()
        means.append(runs.estimate())
        variances.append(runs.variance().expand(scores.shape[0]))
    return Curves(torch.stack(means, -1), torch.stack(variances, -1))


class _Runs:
    """State of ``R`` runs; ``P`` of them differ in more than their scores."""

    def __init__(
        self,
        buckets: Buckets,
        scores: Tensor,
        order: Tensor,
        *,
        n_max: int,
        selection: str,
        noise: float | None,
        margin: int,
        parametrization: Parametrization,
    ) -> None:
        self.buckets, self.scores, self.order = buckets, scores, order
        self.unique = buckets.unique(margin)
        self.active = self.unique and selection == "auto"
        self.parametrization: Parametrization = parametrization
        sigma2 = noise if noise is not None else (1e-4 if self.unique else 1e-1)
        self.noise = sigma2 * buckets.counts
        kernel = ReferenceScoreKernel().to(buckets.phi)
        n_runs = scores.shape[0]
        self.posterior = LockstepPosterior(
            squared_distances(kernel, buckets.phi),
            buckets.phi.shape[-1],
            buckets.phi.mean(-1),
            self.noise,
            buckets.counts,
            n_runs=n_runs,
            capacity=n_max,
        )
        self.hyperparameters = scores.new_ones(n_runs, 2)
        self.n_items, self.n = scores.shape[-1], 0
        self.items = order.new_empty(1, n_max)
        self.seen = scores.new_zeros(1, self.n_items)
        self.queue, self.lowest = _queues(buckets, order)
        self.taken = order.new_zeros(1, buckets.n_buckets)

    def step(self) -> None:
        """Select an item for each run and condition on its score."""
        if self.active:
            bucket = self._best_bucket()
            place = self.taken.gather(1, bucket.unsqueeze(-1))
            item = self.queue[bucket.unsqueeze(-1), place].squeeze(-1)
            self.taken.scatter_add_(1, bucket.unsqueeze(-1), torch.ones_like(place))
        else:
            item = self.order[self.n : self.n + 1].expand(self.seen.shape[0])
            bucket = self.buckets.item_bucket[item]
        at = item.unsqueeze(-1)
        score = self.scores.gather(1, at.expand(self.scores.shape[0], 1)).squeeze(-1)
        self.posterior.append(bucket, score)
        self.items[:, self.n] = item
        self.seen.scatter_(1, at, 1.0)
        self.n += 1

    def _best_bucket(self) -> Tensor:
        """The tie rule of :func:`~gp_eval.acquisition.select_items`, shape ``P``."""
        posterior = self.posterior
        share = (posterior.covariance_with_rest + self.noise).square_()
        share.div_(posterior.variance + self.noise)
        share.div_(self.variance().unsqueeze(-1) * self.n_items**2)
        share.clamp_max_(1.0 - torch.finfo(share.dtype).eps)
        gain = share.neg_().log1p_().mul_(-0.5)
        gain.masked_fill_(posterior.remaining <= 0, -torch.inf)
        best = gain.amax(-1, keepdim=True)
        tied = gain >= best - TIE * best.abs()
        index = torch.arange(gain.shape[-1], device=gain.device)
        place = self.taken.clamp_max(self.lowest.shape[-1] - 1)
        lowest = self.lowest[index, place].masked_fill(~tied, self.n_items)
        return lowest.argmin(-1)

    def variance(self) -> Tensor:
        """Eq. (2), shape ``P``."""
        left = self.posterior.remaining
        total = left * (self.posterior.covariance_with_rest + self.noise)
        return total.sum(-1) / self.n_items**2

    def estimate(self) -> Tensor:
        """Eq. (5), shape ``R``."""
        left, mean = self.posterior.remaining, self.posterior.mean
        observed = (self.scores * self.seen).sum(-1)
        if self.unique:
            return (observed + (left * mean).sum(-1)) / self.n_items
        totals = self.buckets.counts
        coefficient = totals / self.n_items - (totals - left) / self.n
        return observed / self.n + (coefficient * mean).sum(-1)

    def refit(self) -> None:
        """Fit the kernel of each run to its scores so far and condition anew."""
        n_runs = self.scores.shape[0]
        items = self.items[:, : self.n].expand(n_runs, -1)
        bucket, value = self.buckets.item_bucket[items], self.scores.gather(1, items)
        if self.scores.is_cuda:
            self._fit_as_batch(bucket, value)
        else:
            self._fit_one_by_one(bucket, value)
        self.posterior.set_hyperparameters(self.hyperparameters)
        if self.items.shape[0] == 1:
            self.items = self.items.expand(n_runs, -1).clone()
            self.seen = self.seen.expand(n_runs, -1).clone()
            self.taken = self.taken.expand(n_runs, -1).clone()
        if self.active or self.n < self.buckets.n_buckets:
            self.posterior.condition(bucket, value, self.noise[bucket])
            return
        # One order for all: the bucket means of Eq. (8) are of the same buckets.
        data = [Observations.by_bucket(bucket[0], row, self.noise) for row in value]
        shared = data[0].bucket.expand(n_runs, -1)
        self.posterior.condition(
            shared,
            torch.stack([d.value for d in data]),
            data[0].noise.expand(n_runs, -1),
        )

    def _fit_one_by_one(self, bucket: Tensor, value: Tensor) -> None:
        self.hyperparameters = fit_one_by_one(
            self.hyperparameters,
            self.posterior.distances,
            self.posterior.n_references,
            self.posterior.prior_mean,
            [
                Observations.shortest(b, v, self.noise)
                for b, v in zip(bucket, value, strict=True)
            ],
            parametrization=self.parametrization,
        )

    def _fit_as_batch(self, bucket: Tensor, value: Tensor) -> None:
        self.hyperparameters = fit_batched(
            self.hyperparameters,
            self.posterior.distances,
            self.posterior.n_references,
            bucket,
            self.noise[bucket],
            value - self.posterior.prior_mean[bucket],
            parametrization=self.parametrization,
        )


def _queues(buckets: Buckets, order: Tensor) -> tuple[Tensor, Tensor]:
    """Items of each bucket in ``order``, and the lowest index from each place on.

    Both are ``B x max count``, padded with ``N``.
    """
    n_items, width = buckets.n_items, int(buckets.counts.max())
    queue = order.new_full((buckets.n_buckets, width), n_items)
    fill = [0] * buckets.n_buckets
    of_item = buckets.item_bucket.tolist()
    for item in order.tolist():
        bucket = of_item[item]
        queue[bucket, fill[bucket]] = item
        fill[bucket] += 1
    lowest = queue.flip(-1).cummin(-1).values.flip(-1)
    return queue, lowest
