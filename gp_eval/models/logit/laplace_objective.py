"""Laplace's log-marginal likelihood as a function of the hyperparameters."""

from __future__ import annotations

import torch
from gpytorch.kernels import Kernel
from torch import Tensor

from gp_eval.linalg.kernel_table import dense_covariance
from gp_eval.models.logit.sites import Counts, Sites, laplace_sites
from gp_eval.optim.objective import (
    bounded_parameters,
    flat_gradient,
    write_parameters,
)

__all__ = ["LaplaceObjective"]


class LaplaceObjective:
    r"""Minus Laplace's log-marginal likelihood of 0/1 scores, minus log priors.

    An :class:`~gp_eval.optim.objective.Objective` for any kernel. Its derivative along
    a symmetric :math:`\partial K` is :math:`\operatorname{tr}(G \, \partial K)`, with
    the term of the moving mode included; Rasmussen & Williams, Section 5.5.1.

    Args:
        kernel: Kernel over ``phi``.
        phi: Score vectors, ``B x K``.
        prior_mean: Prior mean of ``f``, shape ``B``.
        counts: Right and wrong answers by bucket.
    """

    def __init__(
        self, kernel: Kernel, phi: Tensor, prior_mean: Tensor, counts: Counts
    ) -> None:
        self.kernel, self.counts = kernel, counts
        self.phi = phi[counts.bucket]
        self.prior_mean = prior_mean[counts.bucket]
        # The mode of the last evaluation is near the next one's.
        self._start = torch.zeros_like(self.prior_mean)

    def parameters(self) -> list[tuple[str, Tensor, Tensor, Tensor]]:
        """All raw parameters that require a gradient, with their bounds."""
        return bounded_parameters(self.kernel)

    def __call__(self, values: Tensor) -> tuple[Tensor, Tensor]:
        """Value and gradient with respect to the raw parameters."""
        parameters = [p for p in self.kernel.parameters() if p.requires_grad]
        write_parameters(parameters, values)
        with torch.enable_grad():
            gram = dense_covariance(self.kernel, self.phi)
            fixed = gram.detach()
            sites = laplace_sites(fixed, self.prior_mean, self.counts, self._start)
            self._start = sites.coefficient
            # A function of the parameters that has the gradient which is meant.
            surrogate = (_gram_gradient(fixed, sites, self.counts) * gram).sum()
            value = sites.log_likelihood
            for _, module, prior, closure, _ in self.kernel.named_priors():
                log_prior = prior.log_prob(closure(module)).sum()
                value, surrogate = value + log_prior.detach(), surrogate + log_prior
            gradient = flat_gradient(surrogate, parameters)
        return -value, -gradient


def _gram_gradient(gram: Tensor, sites: Sites, counts: Counts) -> Tensor:
    r"""``G``, ``m x m``.

    The mode fixed, it is :math:`\frac12 (a a^\top - R)` with :math:`R = (K +
    S^{-1})^{-1}`. The mode moves by :math:`(I + K S)^{-1} \partial K \, a`, and its
    only effect of first order is through the determinant.
    """
    a, root = sites.coefficient, sites.precision_root()
    precision = root.mT @ root
    p = (counts.successes - a) / counts.trials  # at the mode a is successes - trials p
    curvature = counts.trials * p * (1.0 - p) * (1.0 - 2.0 * p)
    variance = gram.diagonal() - (root @ gram).square().sum(0)
    effect = -0.5 * variance * curvature
    moved = effect - precision @ (gram @ effect)
    return 0.5 * (torch.outer(a, a) - precision) + torch.outer(moved, a)
