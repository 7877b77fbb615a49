"""Logit-normal abilities as a BoTorch model over item indices."""

from __future__ import annotations

from collections.abc import KeysView
from functools import cached_property
from typing import Any

import torch
from gpytorch.kernels import Kernel
from gpytorch.means import Mean
from torch import Tensor

from gp_eval.data import Buckets
from gp_eval.estimators import bayes_estimate, performance_estimate
from gp_eval.linalg import make_kernel_table
from gp_eval.models.item_model import ItemModel
from gp_eval.models.logit.abilities import (
    Abilities,
    linear_abilities,
    monte_carlo_abilities,
    probit_abilities,
)
from gp_eval.models.logit.posterior import LatentPosterior
from gp_eval.models.logit.scores import Scores
from gp_eval.optim.objective import Objective

__all__ = ["LogitModel", "prior_logits"]


def prior_logits(mean_module: Mean, phi: Tensor) -> Tensor:
    r"""Prior mean of ``f``: the logit of the smoothed prior mean score.

    The paper gives none. With the mean score :math:`m_b` of ``K`` references it is
    :math:`\operatorname{logit} \frac{K m_b + 1/2}{K + 1}`, finite where all of them
    agree.

    Args:
        mean_module: Mean over ``phi``, in score units.
        phi: Score vectors, ``B x K``.

    Raises:
        ValueError: For a mean outside [0, 1].
    """
    with torch.no_grad():
        mean = mean_module(phi).detach()
    # Weights that sum to 1 up to rounding may take a mean of ones just past 1.
    if not bool(((mean >= -1e-12) & (mean <= 1.0 + 1e-12)).all()):
        raise ValueError(
            "mean_module: expected means in [0, 1], got "
            f"{float(mean.min()):.4g} to {float(mean.max()):.4g}"
        )
    n_references = phi.shape[-1]
    return torch.logit((n_references * mean + 0.5) / (n_references + 1))


class LogitModel(ItemModel):
    r"""Abilities :math:`\theta = \sigma(f)` with a Gaussian ``f``, Appendix B.3.

    What concerns the benchmark score is linear in ``f``: :math:`\theta_b \approx
    E[\theta_b] + g_b (f_b - E[f_b])` with the slopes of
    :mod:`~gp_eval.models.logit.abilities`, so :math:`\operatorname{Cov}(\theta) = G
    \Sigma_{|C} G`, and an item's score has noise :math:`\nu_b` around its ability
    (:meth:`~gp_eval.models.logit.scores.Scores.noise`). Eq. (2) and Eq. (6) are then as
    for Gaussian scores, but depend on the scores, through the slopes.

    Inputs ``X`` are ``... x q x 1`` item indices. Everything is computed from the set
    of evaluated items when it is asked for: :math:`O(n^3 + n^2 B)` after each new one.

    Args:
        buckets: The items and their buckets, of weights summing to ``N``.
        scores: The likelihood.
        covar_module: Kernel over ``phi``, in squared logits; after a change of its
            parameters call :meth:`refresh`.
        mean_module: Mean over ``phi``, in score units; see :func:`prior_logits`.
        draws: Standard normal draws for :math:`E[\theta]` by Monte Carlo; ``None`` is
            the rescaled probit, unless :meth:`set_reference` was called.
    """

    def __init__(
        self,
        buckets: Buckets,
        *,
        scores: Scores,
        covar_module: Kernel,
        mean_module: Mean,
        draws: Tensor | None = None,
    ) -> None:
        super().__init__()
        self.buckets, self.n_items = buckets, buckets.n_items
        self.scores, self.draws = scores, draws
        self.covar_module = covar_module.to(buckets.phi)
        self.prior_mean = prior_logits(mean_module.to(buckets.phi), buckets.phi)
        self.table = make_kernel_table(self.covar_module, buckets.phi)
        self.totals = self._by_bucket(buckets.item_weights)
        self._seen: dict[int, None] = {}
        self._values = torch.zeros_like(buckets.item_weights)
        self._unseen = torch.ones_like(buckets.item_weights)
        self._start = torch.zeros_like(self.prior_mean)
        self._reference: Tensor | None = None
        self.refresh()

    @property
    def n(self) -> int:
        """Number of evaluated items."""
        return len(self._seen)

    @property
    def seen(self) -> KeysView[int]:
        """The evaluated items, for membership tests."""
        return self._seen.keys()

    def append(self, item: int, score: float) -> None:
        """Condition on the score of one more item, checked before, in place."""
        self._seen[item] = None
        self._values[item] = score
        self._unseen[item] = 0.0
        self._forget("latent_posterior")

    def set_reference(self, abilities: Tensor) -> None:
        r"""From now on, :math:`E[\theta]` is linear around these points in (0, 1)."""
        self._reference = abilities
        self._forget()

    def refresh(self) -> None:
        """Take over new hyperparameters."""
        self.table.refresh()
        every = torch.arange(self.buckets.n_buckets)
        self._prior = self.table.block(every, slice(None))
        self._forget("latent_posterior")

    def objective(self) -> Objective:
        """Minus the log-marginal likelihood of the scores so far."""
        bucket, score = self._observed()
        return self.scores.objective(
            self.covar_module,
            self.buckets.phi,
            self.prior_mean,
            bucket,
            score,
            self.table,
        )

    def _apply(self, fn: Any, recurse: bool = True) -> Any:
        """Refuse to move: tables and scores would stay behind."""
        raise RuntimeError("LogitModel cannot be moved or cast; it computes in float64")

    def _forget(self, *names: str) -> None:
        for name in ("abilities", "remaining", "rest", *names):
            self.__dict__.pop(name, None)

    def _by_bucket(self, values: Tensor) -> Tensor:
        zeros = torch.zeros_like(self.buckets.counts)
        return zeros.index_add_(0, self.buckets.item_bucket, values)

    def _observed(self) -> tuple[Tensor, Tensor]:
        """Buckets and scores of the evaluated items, in item order."""
        items = torch.nonzero(self._unseen == 0.0).squeeze(-1)
        return self.buckets.item_bucket[items], self._values[items]

    # Beliefs, computed when they are asked for

    @cached_property
    def latent_posterior(self) -> LatentPosterior:
        """Posterior of ``f``."""
        bucket, score = self._observed()
        if not self.n:
            return LatentPosterior(self._prior, self.prior_mean, None)
        sites = self.scores.sites(
            self._prior, self.prior_mean, bucket, score, self._start
        )
        self._start = torch.zeros_like(self.prior_mean)
        self._start[sites.bucket] = sites.coefficient
        return LatentPosterior(self._prior, self.prior_mean, sites)

    @cached_property
    def abilities(self) -> Abilities:
        r"""Moments of :math:`\theta`."""
        latent = self.latent_posterior
        if self._reference is not None:
            return linear_abilities(latent.mean, self._reference)
        if self.draws is not None:
            return monte_carlo_abilities(latent.mean, latent.variance, self.draws)
        return probit_abilities(latent.mean, latent.variance)

    @cached_property
    def remaining(self) -> Tensor:
        """Summed weight of the unevaluated items by bucket, shape ``B``."""
        return self._by_bucket(self.buckets.item_weights * self._unseen)

    @cached_property
    def rest(self) -> Tensor:
        """Covariance of each ability with the sum over all unevaluated items, ``B``."""
        slope = self.abilities.slope
        return slope * self.latent_posterior.matvec(slope * self.remaining)

    # The benchmark score

    def performance_estimate(self, *, unique: bool) -> Tensor:
        """Eq. (5): ``w = 1 / N`` if buckets are nearly unique, else ``w = 1 / n``."""
        weights = self.buckets.item_weights
        observed = (weights * self._values).sum()
        mean = self.abilities.mean
        if unique or self.n in (0, self.n_items):
            return bayes_estimate(observed, mean, self.remaining, self.n_items)
        return performance_estimate(
            observed, mean, self.totals, self.remaining, scale=1.0 / self.n
        )

    def performance_variance(self) -> Tensor:
        r"""Eq. (2) of the linearised belief.

        :math:`\frac{1}{N^2} (u^\top G \Sigma_{|C} G u + \sum_{i \notin C} w_i^2
        \nu_{b(i)})`.
        """
        noise = self.scores.noise(self.abilities.slope)[self.buckets.item_bucket]
        own = (self.buckets.item_weights.square() * noise).dot(self._unseen)
        return (self.rest.dot(self.remaining) + own) / self.n_items**2

    def performance_covariance(self, items: Tensor) -> Tensor:
        """Covariance of the benchmark score with unevaluated items, of any shape."""
        bucket, weight = self.buckets.item_bucket[items], self.buckets.item_weights
        noise = self.scores.noise(self.abilities.slope)[bucket]
        return (self.rest[bucket] + weight[items] * noise) / self.n_items

    def score_variance(self, items: Tensor) -> Tensor:
        """Predictive variances of the scores of items, any shape."""
        slope = self.abilities.slope
        variance = slope.square() * self.latent_posterior.variance
        return (variance + self.scores.noise(slope))[self.buckets.item_bucket[items]]

    def squared_correlation(self, items: Tensor) -> Tensor:
        """The fraction in Eq. (6), for items of any shape."""
        variance, total = self.score_variance(items), self.performance_variance()
        if not float(total) > 0.0:
            return torch.zeros_like(variance)  # nothing is left to explain
        return self.performance_covariance(items).square() / variance / total

    # What BoTorch's interface is made of

    def latent(self, items: Tensor) -> tuple[Tensor, Tensor]:
        """Posterior mean and covariance of the abilities behind items ``... x q``."""
        bucket = self.buckets.item_bucket[items]
        used, place = torch.unique(bucket, return_inverse=True)
        slope = self.abilities.slope[used]
        table = torch.outer(slope, slope) * self.latent_posterior.covariance(used)
        covariance = table[place.unsqueeze(-1), place.unsqueeze(-2)]
        return self.abilities.mean[bucket], covariance

    def score_covariance(self, items: Tensor) -> Tensor:
        """Predictive covariance ``... x q x q`` of items ``... x q``, with noise."""
        noise = self.scores.noise(self.abilities.slope)
        own = torch.diag_embed(noise[self.buckets.item_bucket[items]])
        return self.latent(items)[1] + own
