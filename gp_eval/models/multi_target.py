"""The bucketed ability model of several targets, conditioned pair by pair."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from gpytorch.means import Mean
from torch import Tensor

from gp_eval.data import Buckets
from gp_eval.estimators import bayes_estimate, performance_estimate
from gp_eval.kernels import LMCKernel, default_latents
from gp_eval.likelihoods import BucketGaussianLikelihood
from gp_eval.linalg import LMCTable, MultiTargetPosterior
from gp_eval.means import ReferenceMean
from gp_eval.models.protocol import as_items
from gp_eval.models.sequential_model import SequentialModel
from gp_eval.optim.pair_scores import PairScores

__all__ = ["SequentialMultiTargetModel"]


class SequentialMultiTargetModel(SequentialModel):
    r"""BoTorch model of the scores of ``T`` targets over rows ``[item, target]``.

    The same posterior as :class:`~gp_eval.models.MultiTargetGP` (Section 3.2 of the
    BayesAME paper), kept by row appends at :math:`O(n T B)` a pair, with ``n`` over all
    targets. Long format: each target has a coreset of its own, and nothing is masked.
    Inside, the pair of item ``i`` and target ``t`` is the point ``t * N + i``.

    Args:
        buckets: The items and their buckets, of weights summing to ``N``.
        n_targets: ``T``.
        noise: Initial :math:`\sigma^2`, in squared score units; learned.
        covar_module: The linear model of coregionalization; default ``L = T`` latents
            of :func:`~gp_eval.kernels.default_latents`. It is used as it is: set or fit
            its parameters, then call :meth:`refresh`.
        mean_module: Any mean over ``phi``, the same for all targets; default
            :class:`~gp_eval.means.ReferenceMean`.

    Example:
        >>> model = SequentialMultiTargetModel(buckets, n_targets=3, noise=0.1)
        >>> model.condition_on_observations(
        ...     torch.tensor([[4.0, 0.0], [4.0, 2.0]]), torch.tensor([[1.0], [0.0]])
        ... ).performance_mean()
    """

    engine: MultiTargetPosterior
    table: LMCTable
    n_inputs = 2

    def __init__(
        self,
        buckets: Buckets,
        *,
        n_targets: int,
        noise: float = 0.1,
        covar_module: LMCKernel | None = None,
        mean_module: Mean | None = None,
    ) -> None:
        super().__init__()
        if not noise > 0.0:
            raise ValueError(f"noise: expected sigma^2 > 0, got {noise}")
        if covar_module is None:
            covar_module = LMCKernel(default_latents(n_targets), n_targets)
        if covar_module.num_tasks != n_targets:
            raise ValueError(
                f"covar_module: expected {n_targets} targets, got "
                f"{covar_module.num_tasks}"
            )
        self.buckets, self.n_items = buckets, buckets.n_items
        self.n_targets = n_targets
        self.covar_module = covar_module.to(buckets.phi)
        self.mean_module = (mean_module or ReferenceMean()).to(buckets.phi)
        self.likelihood = BucketGaussianLikelihood(count_dim=-2).to(buckets.phi)
        self.likelihood.noise = noise
        shift = torch.arange(n_targets, device=buckets.phi.device) * buckets.n_buckets
        self._begin(
            point_ability=(buckets.item_bucket + shift.unsqueeze(-1)).view(-1),
            point_weights=buckets.item_weights.repeat(n_targets),
            ability_counts=buckets.counts.repeat(n_targets),
            noise=self.likelihood.noise.detach(),
        )
        self.prior_mean = self._prior_mean()
        self.table = LMCTable(self.covar_module, buckets.phi)
        self.engine = MultiTargetPosterior(
            self.table, self.prior_mean, self.totals, n_targets=n_targets
        )

    def _prior_mean(self) -> Tensor:
        with torch.no_grad():
            return self.mean_module(self.buckets.phi).detach().repeat(self.n_targets)

    def points(self, X: Tensor) -> Tensor:
        """Checked points ``... x q`` of rows ``[item, target]``, ``... x q x 2``."""
        as_items(X[..., 0], self.n_items)
        targets, whole = X[..., 1], X[..., 1].long()
        if not bool(
            ((whole >= 0) & (whole < self.n_targets) & (whole == targets)).all()
        ):
            raise ValueError(
                f"X: expected targets 0..{self.n_targets - 1} in the second column, "
                f"got {sorted(set(targets.reshape(-1).tolist()))[:5]}"
            )
        return whole * self.n_items + X[..., 0].long()

    def point_name(self, point: int) -> str:
        """How error messages call a point."""
        target, item = divmod(point, self.n_items)
        return f"{item} of target {target}"

    def target_of(self, points: Tensor) -> Tensor:
        """Target of each point, of the same shape."""
        return points // self.n_items

    def refresh(self) -> None:
        """Take over new hyperparameters: condition again, by Eq. (7) or Eq. (8)."""
        self._set_noise(self.likelihood.noise.detach())
        self._condition_again(self._prior_mean())

    def pair_scores(self) -> PairScores:
        """The evaluated points as the marginal likelihood takes them."""
        points = torch.tensor(self.evaluated, dtype=torch.long).to(self._scores.device)
        return PairScores.from_scores(
            self.point_ability[points],
            self._scores[points],
            self.prior_mean,
            self.buckets.counts,
        )

    # The benchmark scores

    def _views(self) -> Iterator[tuple[Tensor, Tensor, Tensor, Tensor]]:
        """Observed sum, abilities, totals and remaining weights of each target."""
        size = self.n_targets
        observed = (self.point_weights * self._scores).view(size, -1).sum(-1)
        rows = (self.engine.mean, self.totals, self.engine.remaining)
        return zip(observed, *(row.view(size, -1) for row in rows), strict=True)

    def performance_mean(self) -> Tensor:
        """Posterior mean of the benchmark scores, Eq. (3), shape ``T``."""
        estimates = [
            bayes_estimate(observed, abilities, remaining, self.n_items)
            for observed, abilities, _, remaining in self._views()
        ]
        return torch.stack(estimates)

    def performance_estimate(self, *, unique: bool) -> Tensor:
        """Eq. (5) of each target, shape ``T``; see :class:`SequentialBucketModel`."""
        estimates = self.performance_mean()
        if unique:
            return estimates
        seen = (1.0 - self._unseen).view(self.n_targets, -1).sum(-1).tolist()
        for target, (observed, abilities, totals, remaining) in enumerate(
            self._views()
        ):
            if seen[target] not in (0.0, self.n_items):
                estimates[target] = performance_estimate(
                    observed, abilities, totals, remaining, scale=1.0 / seen[target]
                )
        return estimates

    def performance_covariance_matrix(self) -> Tensor:
        r"""Posterior covariance of the benchmark scores, ``T x T``.

        :math:`\frac{1}{N^2} u_t^\top \Sigma^{t t'}_{|C} u_{t'}`, with the noise of the
        unevaluated items on the diagonal as in Eq. (2).
        """
        if "joint" not in self._memo:
            covariance = self.engine.rest_covariance()
            noise = (self._squared_noise * self._unseen).view(self.n_targets, -1)
            covariance = covariance + torch.diag(noise.sum(-1))
            self._memo["joint"] = covariance / self.n_items**2
        return self._memo["joint"]

    def performance_variance(self) -> Tensor:
        """Posterior variance of the benchmark scores, Eq. (2), shape ``T``."""
        return self.performance_covariance_matrix().diagonal()

    def weighted_sums(self, weights: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Posterior of weighted sums of each target's scores.

        Args:
            weights: Weights of the items, ``m x N``, the same for all targets.

        Returns:
            Means and variances, both ``T x m``, and the covariance ``T x m x T x m``.
        """
        shape = (self.n_targets, weights.shape[0])
        blocks = torch.block_diag(*[weights] * self.n_targets)
        mean, variance, covariance = super().weighted_sums(blocks)
        joint = covariance.view(*shape, *shape)
        return mean.view(shape), variance.view(shape), joint

    # What acquisition functions read

    def unevaluated(self, points: Tensor) -> Tensor:
        """Whether points of any shape are not evaluated, as booleans."""
        return self._unseen[points] > 0.0

    def performance_covariance(self, items: Tensor) -> Tensor:
        """Covariance of points ``... x q`` with the score of the first one's target.

        The points may be of several targets: what is pending for others informs too.

        Returns:
            A tensor ``... x q``. For unevaluated points only.
        """
        meant = self.target_of(items[..., :1])
        ability = self.point_ability[items]
        covariance = self.engine.covariance_with_rest[meant, ability]
        own = (self.target_of(items) == meant).to(covariance)
        return (covariance + own * self._weighted_noise[items]) / self.n_items

    def squared_correlation(self, items: Tensor) -> Tensor:
        """Squared correlation of points (any shape) with their own target's score."""
        target, ability = self.target_of(items), self.point_ability[items]
        total = self.performance_variance()[target] * self.n_items**2
        covariance = self.engine.covariance_with_rest[target, ability]
        covariance = covariance + self._weighted_noise[items]
        variance = self.engine.variance[ability] + self._noise[items]
        share = covariance.square() / variance / total
        return torch.where(total > 0.0, share, 0.0)  # else nothing is left to explain
