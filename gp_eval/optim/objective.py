"""The negative log-marginal likelihood, Eq. (11) of the BayesAME paper."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import torch
from gpytorch import Module
from gpytorch.kernels import Kernel
from torch import Tensor

from gp_eval.kernels import ReferenceScoreKernel
from gp_eval.linalg.cholesky import cholesky
from gp_eval.linalg.kernel_table import (
    KernelTable,
    ReferenceKernelTable,
    dense_covariance,
    has_closed_form,
)
from gp_eval.linalg.likelihood_terms import likelihood_terms
from gp_eval.linalg.observations import Observations

__all__ = [
    "AutogradObjective",
    "ClosedFormObjective",
    "Objective",
    "bounded_parameters",
    "flat_gradient",
    "make_objective",
    "negative_log_marginal_likelihood",
    "write_parameters",
]


class Objective(Protocol):
    """A function of the kernel's trainable raw parameters, flattened to ``p``."""

    def parameters(self) -> list[tuple[str, Tensor, Tensor, Tensor]]:
        """Name, present value, lower and upper bounds of each raw parameter."""

    def __call__(self, values: Tensor) -> tuple[Tensor, Tensor]:
        """Value and gradient (shape ``p``) at ``values`` (shape ``p``)."""


def negative_log_marginal_likelihood(
    gram: Tensor, residual: Tensor, *, name: str = "covariance of the evaluated items"
) -> Tensor:
    r"""Value of Eq. (11), in nats and without its ``log 2 pi`` term.

    Args:
        gram: Covariance of the observed values with noise, ``m x m``.
        residual: Observed values minus prior mean, shape ``m``.
        name: What the covariance is, for the error.
    """
    factor = cholesky(gram, name=name)
    white = torch.linalg.solve_triangular(factor, residual.unsqueeze(-1), upper=False)
    return 0.5 * white.square().sum() + factor.diagonal().log().sum()


def make_objective(
    kernel: Kernel,
    phi: Tensor,
    prior_mean: Tensor,
    observations: Observations,
    *,
    table: KernelTable | None = None,
) -> Objective:
    """Eq. (11) with the closed-form gradient where there is one, else by autograd.

    Args:
        kernel: Kernel over ``phi``.
        phi: Score vectors, ``B x K``.
        prior_mean: Prior mean, shape ``B``.
        observations: The ``m`` observed values.
        table: The kernel's table, whose distances are reused.
    """
    trainable = all(p.requires_grad for p in kernel.parameters())
    if not (
        trainable
        and isinstance(kernel, ReferenceScoreKernel)
        and has_closed_form(kernel)
    ):
        return AutogradObjective(kernel, phi, prior_mean, observations)
    if not isinstance(table, ReferenceKernelTable):
        table = ReferenceKernelTable(kernel, phi)
    bucket = observations.bucket
    return ClosedFormObjective(
        kernel,
        table.distances[bucket.unsqueeze(-1), bucket],
        table.n_references,
        observations.noise,
        observations.value - prior_mean[bucket],
    )


class ClosedFormObjective:
    r"""Eq. (11) of the kernel of Eq. (1), with its gradient in closed form.

    With :math:`C = \alpha E + D`, :math:`E = \exp(-\beta \Delta / K)` and
    :math:`Q = C^{-1} - a a^\top`, :math:`a = C^{-1} r`, the gradient is
    :math:`\partial_\alpha = \operatorname{tr}(Q E) / 2` and
    :math:`\partial_\beta = -\alpha \operatorname{tr}(Q (\Delta \circ E)) / 2K`: one
    Cholesky factorisation and one inverse an evaluation.

    Args:
        kernel: The kernel whose parameters are meant.
        distances: Squared distances of the observed buckets, ``m x m``.
        n_references: ``K``.
        noise: Noise variances, shape ``m``.
        residual: Observed values minus prior mean, shape ``m``.
    """

    def __init__(
        self,
        kernel: ReferenceScoreKernel,
        distances: Tensor,
        n_references: int,
        noise: Tensor,
        residual: Tensor,
    ) -> None:
        self.kernel = kernel
        self.distances = distances
        self.n_references = n_references
        self.noise = noise
        self.residual = residual
        # One memory for all evaluations: fresh pages cost as much as the exponential.
        self._shape, self._gram = (
            torch.empty_like(distances),
            torch.empty_like(distances),
        )

    def parameters(self) -> list[tuple[str, Tensor, Tensor, Tensor]]:
        """``raw_alpha`` and ``raw_beta`` with the bounds of their constraints."""
        return bounded_parameters(self.kernel)

    def __call__(self, values: Tensor) -> tuple[Tensor, Tensor]:
        """Value and gradient with respect to ``(alpha, beta)``."""
        alpha, beta = values
        rate = -beta / self.n_references
        shape = torch.mul(self.distances, rate, out=self._shape).exp_()
        gram = torch.mul(shape, alpha, out=self._gram)
        gram.diagonal().add_(self.noise)
        value, weights = likelihood_terms(gram, self.residual)
        weights.mul_(shape)
        slope = torch.dot(weights.view(-1), self.distances.view(-1))
        scale = -0.5 * alpha / self.n_references
        return value, torch.stack([0.5 * weights.sum(), scale * slope])


class AutogradObjective:
    """Eq. (11) of any GPyTorch kernel, minus its log priors, by autograd.

    Args:
        kernel: Kernel over ``phi``.
        phi: Score vectors, ``B x K``.
        prior_mean: Prior mean, shape ``B``.
        observations: The ``m`` observed values.
    """

    def __init__(
        self,
        kernel: Kernel,
        phi: Tensor,
        prior_mean: Tensor,
        observations: Observations,
    ) -> None:
        self.kernel = kernel
        self.phi = phi[observations.bucket]
        self.noise = observations.noise
        self.residual = observations.value - prior_mean[observations.bucket]

    def parameters(self) -> list[tuple[str, Tensor, Tensor, Tensor]]:
        """All raw parameters that require a gradient, with their bounds."""
        return bounded_parameters(self.kernel)

    def __call__(self, values: Tensor) -> tuple[Tensor, Tensor]:
        """Value and gradient with respect to the raw parameters."""
        parameters = [p for p in self.kernel.parameters() if p.requires_grad]
        write_parameters(parameters, values)
        with torch.enable_grad():
            gram = dense_covariance(self.kernel, self.phi) + torch.diag(self.noise)
            value = negative_log_marginal_likelihood(gram, self.residual)
            for _, module, prior, closure, _ in self.kernel.named_priors():
                value = value - prior.log_prob(closure(module)).sum()
            gradient = flat_gradient(value, parameters)
        return value.detach(), gradient


def flat_gradient(value: Tensor, parameters: Sequence[Tensor]) -> Tensor:
    """Gradient of a scalar by autograd, shape ``p``; 0 where it does not depend."""
    gradients = torch.autograd.grad(value, parameters, allow_unused=True)
    flat = [
        torch.zeros_like(p).view(-1) if g is None else g.reshape(-1)
        for g, p in zip(gradients, parameters, strict=True)
    ]
    return torch.cat(flat)


def write_parameters(parameters: Sequence[Tensor], values: Tensor) -> None:
    """Copy flat ``values`` (shape ``p``) into the parameters, one after the other."""
    sizes = [parameter.numel() for parameter in parameters]
    with torch.no_grad():
        for parameter, block in zip(parameters, values.split(sizes), strict=True):
            parameter.copy_(block.view_as(parameter))


def bounded_parameters(module: Module) -> list[tuple[str, Tensor, Tensor, Tensor]]:
    """Trainable raw parameters with the bounds that a gradient step must keep."""
    found = []
    for name, parameter in module.named_parameters():
        if not parameter.requires_grad:
            continue
        constraint = module.constraint_for_parameter_name(name)
        low = torch.full_like(parameter, -torch.inf)
        high = torch.full_like(parameter, torch.inf)
        if constraint is not None and not constraint.enforced:
            low = _unrounded(constraint.lower_bound, parameter)
            high = _unrounded(constraint.upper_bound, parameter)
        found.append((name, parameter, low, high))
    return found


def _unrounded(bound: Tensor, parameter: Tensor) -> Tensor:
    """A bound for each entry. Constraints keep them in float32: 1e-5 means 1e-5."""
    values = [float(f"{value:.6g}") for value in bound.reshape(-1).tolist()]
    return parameter.new_tensor(values).view(bound.shape).expand_as(parameter)
