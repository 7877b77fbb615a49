r"""The marginal likelihood of several targets, with its gradient.

With :math:`\sigma^2` learned, the two branches of Eq. (11) of the BayesAME paper differ
by more than a constant. Here scores enter by bucket *and* what that form lacks is
added, so that the value is the likelihood of the item scores.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from gp_eval.errors import NotPositiveDefiniteError
from gp_eval.kernels import LMCKernel, ReferenceKernel
from gp_eval.likelihoods import BucketGaussianLikelihood
from gp_eval.linalg.cholesky import cholesky
from gp_eval.linalg.kernel_table import dense_covariance, has_closed_form
from gp_eval.linalg.likelihood_terms import likelihood_terms
from gp_eval.linalg.lmc_table import shares_distances
from gp_eval.optim.lmc_gram import LMCGram
from gp_eval.optim.objective import (
    Objective,
    bounded_parameters,
    flat_gradient,
    write_parameters,
)
from gp_eval.optim.pair_scores import PairScores

__all__ = ["AutogradLMCObjective", "ClosedFormLMCObjective", "make_lmc_objective"]


def make_lmc_objective(
    kernel: LMCKernel,
    likelihood: BucketGaussianLikelihood,
    phi: Tensor,
    scores: PairScores,
    *,
    distances: Tensor | None = None,
) -> Objective:
    """The objective with the closed-form gradient where there is one, else autograd.

    Args:
        kernel: The linear model of coregionalization over ``[phi, count, target]``.
        likelihood: Holds the noise variance.
        phi: Score vectors, ``B x K``.
        scores: The ``m`` observed values.
        distances: Squared distances of ``phi``, ``B x B``, if they are there already.
    """
    closed = all(
        isinstance(latent, ReferenceKernel)
        and has_closed_form(latent)
        and shares_distances(kernel, latent)
        for latent in kernel.latents
    )
    modules = (kernel, likelihood)
    plain = not any(
        True for module in modules for _ in module.named_priors()
    ) and not any(
        constraint.enforced for module in modules for constraint in module.constraints()
    )
    trainable = all(p.requires_grad for module in modules for p in module.parameters())
    if closed and plain and trainable:
        return ClosedFormLMCObjective(
            kernel, likelihood, phi, scores, distances=distances
        )
    return AutogradLMCObjective(kernel, likelihood, phi, scores)


class ClosedFormLMCObjective:
    r"""Negative log-marginal likelihood of the paper's latents, in nats.

    One Cholesky factorisation and one inverse an evaluation; the rest is passes over
    the ``m x m`` matrix, two for each latent, see :class:`~gp_eval.optim.lmc_gram`.

    Args:
        kernel: Latents of ours, of the same weights, without priors or transforms.
        likelihood: Holds the noise variance.
        phi: Score vectors, ``B x K``.
        scores: The ``m`` observed values.
        distances: Squared distances of ``phi``, ``B x B``.
    """

    def __init__(
        self,
        kernel: LMCKernel,
        likelihood: BucketGaussianLikelihood,
        phi: Tensor,
        scores: PairScores,
        *,
        distances: Tensor | None = None,
    ) -> None:
        self.kernel, self.likelihood, self.scores = kernel, likelihood, scores
        self.gram = LMCGram(kernel, phi, scores, distances=distances)

    def parameters(self) -> list[tuple[str, Tensor, Tensor, Tensor]]:
        """Weights, ``alpha`` and ``beta`` of each latent, and the noise variance."""
        return [
            *bounded_parameters(self.kernel),
            *bounded_parameters(self.likelihood),
        ]

    def __call__(self, values: Tensor) -> tuple[Tensor, Tensor]:
        """Value and gradient (shape ``p``) at ``values`` (shape ``p``)."""
        shape = self.kernel.task_weights.shape
        size = shape.numel()
        task_weights = values[:size].view(shape)
        alpha, beta = values[size:-1].view(-1, 2).T
        noise, scores = values[-1], self.scores
        gram = self.gram.covariance(task_weights, alpha, beta)
        gram.diagonal().add_(noise * scores.noise_scale)
        try:
            value, weights = likelihood_terms(gram, scores.residual)
        except NotPositiveDefiniteError:  # once more in full, for what is wrong
            gram = self.gram.covariance(task_weights, alpha, beta).triu()
            gram = gram + gram.triu(1).T + torch.diag(noise * scores.noise_scale)
            cholesky(gram, name="covariance of the evaluated pairs")
            raise
        slopes = self.gram.gradient(weights, task_weights, alpha, beta)
        in_noise = 0.5 * weights.diagonal() @ scores.noise_scale
        gradient = [
            slopes[0].view(-1),
            torch.stack(slopes[1:], dim=-1).view(-1),
            (in_noise + scores.spread_slope(noise)).view(1),
        ]
        return value + scores.spread_terms(noise), torch.cat(gradient)


class _GaussianLikelihood(torch.autograd.Function):
    """Eq. (11) of a covariance and a residual, by one factorisation and one inverse."""

    @staticmethod
    def forward(ctx: Any, gram: Tensor, residual: Tensor) -> Tensor:
        value, weights = likelihood_terms(gram.clone(), residual)
        ctx.save_for_backward(weights)
        return value

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        (weights,) = ctx.saved_tensors
        return 0.5 * gradients[0] * weights, None


class AutogradLMCObjective:
    """The same of any latents, minus their log priors, by autograd.

    Only the derivative through the factorisation is in closed form.

    Args:
        kernel: The linear model of coregionalization.
        likelihood: Holds the noise variance.
        phi: Score vectors, ``B x K``.
        scores: The ``m`` observed values.
    """

    def __init__(
        self,
        kernel: LMCKernel,
        likelihood: BucketGaussianLikelihood,
        phi: Tensor,
        scores: PairScores,
    ) -> None:
        self.kernel, self.likelihood, self.scores = kernel, likelihood, scores
        used, self.place = torch.unique(scores.bucket, return_inverse=True)
        self.phi = phi[used]

    def parameters(self) -> list[tuple[str, Tensor, Tensor, Tensor]]:
        """All raw parameters that require a gradient, with their bounds."""
        return [
            *bounded_parameters(self.kernel),
            *bounded_parameters(self.likelihood),
        ]

    def __call__(self, values: Tensor) -> tuple[Tensor, Tensor]:
        """Value and gradient with respect to the raw parameters."""
        modules = (self.kernel, self.likelihood)
        parameters = [p for m in modules for p in m.parameters() if p.requires_grad]
        write_parameters(parameters, values)
        scores = self.scores
        with torch.enable_grad():
            noise = self.likelihood.noise.squeeze()
            gram = self._covariance() + torch.diag(noise * scores.noise_scale)
            value = _GaussianLikelihood.apply(gram, scores.residual)
            value = value + scores.spread_terms(noise)
            for module in modules:
                for _, owner, prior, closure, _ in module.named_priors():
                    value = value - prior.log_prob(closure(owner)).sum()
            gradient = flat_gradient(value, parameters)
        return value.detach(), gradient

    def _covariance(self) -> Tensor:
        size, target = self.place.shape[0], self.scores.target
        total = self.phi.new_zeros(size, size)
        for weights, latent in zip(
            self.kernel.task_weights, self.kernel.latents, strict=True
        ):
            covariance = dense_covariance(latent, self.phi)
            own = weights[target]
            gathered = covariance[self.place.unsqueeze(-1), self.place]
            total = total + own.unsqueeze(-1) * own * gathered
        return total
