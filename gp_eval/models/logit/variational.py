"""The binary logit-normal model as a variational GP of GPyTorch."""

from __future__ import annotations

from typing import Any

import torch
from gpytorch.distributions import MultivariateNormal
from gpytorch.kernels import Kernel
from gpytorch.likelihoods.likelihood import _OneDimensionalLikelihood
from gpytorch.means import Mean
from gpytorch.models import ApproximateGP
from gpytorch.optim import NGD
from gpytorch.variational import NaturalVariationalDistribution, VariationalStrategy
from torch import Tensor
from torch.distributions import Bernoulli

from gp_eval.kernels import ReferenceScoreKernel
from gp_eval.means import ReferenceMean
from gp_eval.models.logit.logit_model import prior_logits
from gp_eval.settings import exact_inference

__all__ = ["LogisticLikelihood", "VariationalLogitGP"]


class LogisticLikelihood(_OneDimensionalLikelihood):
    r"""Bernoulli scores with the logistic link, :math:`p(s = 1 \mid f) = \sigma(f)`.

    GPyTorch's own ``BernoulliLikelihood`` has the probit link.
    """

    def forward(self, function_samples: Tensor, *args: Any, **kwargs: Any) -> Bernoulli:
        """Distribution of scores given latent values of the same shape."""
        return Bernoulli(logits=function_samples)


class VariationalLogitGP(ApproximateGP):
    r"""Variational posterior of the latent values ``f``, Appendix B.3, binary case.

    The paper names Laplace's approximation and variational inference; the harness has
    the first (:class:`~gp_eval.models.logit.LogitModel`). This is the second, for
    kernels and likelihoods of your own and as a yardstick: a full Gaussian over ``f``
    at the evaluated buckets, which maximises the evidence lower bound.

    Args:
        train_X: Score vectors of the evaluated items, ``n x K``.
        train_Y: Their scores, 0 or 1, shape ``n``.
        covar_module: Any kernel over ``phi``; default Eq. (1).
        mean_module: Any mean over ``phi``, in score units; default Eq. (1).
    """

    def __init__(
        self,
        train_X: Tensor,
        train_Y: Tensor,
        *,
        covar_module: Kernel | None = None,
        mean_module: Mean | None = None,
    ) -> None:
        if train_X.ndim != 2 or train_Y.shape != train_X.shape[:1]:
            raise ValueError(
                "train_X, train_Y: expected shapes n x K and n, got "
                f"{tuple(train_X.shape)} and {tuple(train_Y.shape)}"
            )
        points = torch.unique(train_X, dim=0)
        strategy = VariationalStrategy(
            self,
            points,
            NaturalVariationalDistribution(points.shape[0]),
            learn_inducing_locations=False,
            jitter_val=0.0,
        )
        # Begins at the prior; GPyTorch would add noise from the global generator.
        strategy.variational_params_initialized.fill_(1)
        super().__init__(strategy)
        self.covar_module = covar_module or ReferenceScoreKernel()
        self.mean_module = mean_module or ReferenceMean()
        self.likelihood = LogisticLikelihood()
        self.train_X, self.train_Y = train_X, train_Y
        self.to(train_X)

    def forward(self, x: Tensor) -> MultivariateNormal:
        """Prior of ``f`` at score vectors ``... x n x K``."""
        return MultivariateNormal(
            prior_logits(self.mean_module, x), self.covar_module(x)
        )

    def evidence_lower_bound(self) -> Tensor:
        """A lower bound of the log-marginal likelihood of the scores, in nats."""
        fit = self.likelihood.expected_log_prob(self.train_Y, self(self.train_X)).sum()
        return fit - self.variational_strategy.kl_divergence().sum()

    def fit_posterior(self, *, steps: int = 100, rate: float = 0.3) -> Tensor:
        """Natural gradient steps on the bound, the kernel held; returns the bound.

        Args:
            steps: Number of steps.
            rate: Step length; 1 would be exact for Gaussian scores.
        """
        optimizer = NGD(self.variational_parameters(), num_data=1, lr=rate)
        self.train()
        with exact_inference():
            for _ in range(steps):
                optimizer.zero_grad()
                loss = -self.evidence_lower_bound()
                loss.backward()
                optimizer.step()
            self.eval()
            with torch.no_grad():
                return self.evidence_lower_bound()
