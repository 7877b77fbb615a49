"""Hyperparameters of many runs at once."""

from __future__ import annotations

import numpy as np
import torch
from botorch.optim.batched_lbfgs_b import fmin_l_bfgs_b_batched
from torch import Tensor

from gp_eval.kernels import ReferenceScoreKernel
from gp_eval.kernels._reference_kernel import LOWER_BOUND
from gp_eval.linalg import Observations
from gp_eval.linalg.cholesky import cholesky
from gp_eval.optim.lbfgsb import Parametrization, fit_kernel
from gp_eval.optim.objective import ClosedFormObjective

__all__ = ["batched_objective", "fit_batched", "fit_one_by_one"]


def fit_one_by_one(
    start: Tensor,
    distances: Tensor,
    n_references: int,
    prior_mean: Tensor,
    observations: list[Observations],
    *,
    parametrization: Parametrization,
) -> Tensor:
    """Minimise Eq. (11) for every run by itself, exactly as a single run does.

    On a CPU the evaluations are bound by factorisations, so that a batch would save
    nothing.

    Args:
        start: Present ``(alpha, beta)``, ``R x 2``.
        distances: Squared distances of score vectors, ``B x B``.
        n_references: ``K``.
        prior_mean: Prior mean, shape ``B``.
        observations: What each run has observed.
        parametrization: See :func:`~gp_eval.optim.fit_kernel`.

    Returns:
        The optima, ``R x 2``.
    """
    optima = torch.empty_like(start)
    for run, data in enumerate(observations):
        kernel = ReferenceScoreKernel().to(start)
        kernel.alpha, kernel.beta = start[run, 0], start[run, 1]
        objective = ClosedFormObjective(
            kernel,
            distances[data.bucket.unsqueeze(-1), data.bucket],
            n_references,
            data.noise,
            data.value - prior_mean[data.bucket],
        )
        fit_kernel(kernel, objective, parametrization=parametrization)
        optima[run, 0] = kernel.alpha.detach().squeeze()
        optima[run, 1] = kernel.beta.detach().squeeze()
    return optima


def batched_objective(
    parameters: Tensor,
    distances: Tensor,
    n_references: int,
    noise: Tensor,
    residual: Tensor,
) -> tuple[Tensor, Tensor]:
    """Eq. (11) and its gradient for ``R`` runs with ``m`` values each.

    Args:
        parameters: ``(alpha, beta)``, ``R x 2``.
        distances: Squared distances of the observed buckets, ``R x m x m``.
        n_references: ``K``.
        noise: Noise variances, ``R x m``.
        residual: Observed values minus prior mean, ``R x m``.

    Returns:
        Values, shape ``R``, and gradients, ``R x 2``.
    """
    alpha, beta = parameters[:, :1, None], parameters[:, 1:, None]
    shape = (distances * (-beta / n_references)).exp_()
    gram = alpha * shape
    gram.diagonal(dim1=-2, dim2=-1).add_(noise)
    factor = cholesky(gram, name="covariance of the evaluated items")
    solved = torch.cholesky_solve(residual.unsqueeze(-1), factor)
    value = 0.5 * (residual.unsqueeze(-1) * solved).sum((-2, -1))
    value = value + factor.diagonal(dim1=-2, dim2=-1).log().sum(-1)
    inner = torch.cholesky_inverse(factor)
    inner = torch.baddbmm(inner, solved, solved.mT, alpha=-1).mul_(shape)
    d_alpha = 0.5 * inner.sum((-2, -1))
    slope = (inner * distances).sum((-2, -1))
    d_beta = -0.5 / n_references * parameters[:, 0] * slope
    return value, torch.stack([d_alpha, d_beta], dim=-1)


def fit_batched(
    start: Tensor,
    distances: Tensor,
    n_references: int,
    bucket: Tensor,
    noise: Tensor,
    residual: Tensor,
    *,
    parametrization: Parametrization,
) -> Tensor:
    """Minimise Eq. (11) for all runs with BoTorch's batched L-BFGS-B.

    Each run has an optimizer state of its own and leaves the batch when it is done;
    all evaluations of a round are one batch, which is what a GPU needs.

    Args:
        start: Present ``(alpha, beta)``, ``R x 2``.
        distances: Squared distances of score vectors, ``B x B``.
        n_references: ``K``.
        bucket: Buckets of the observed values, ``R x m``.
        noise: Their noise variances, ``R x m``.
        residual: The values minus the prior mean, ``R x m``.
        parametrization: See :func:`~gp_eval.optim.fit_kernel`.

    Returns:
        The optima, ``R x 2``.
    """
    log = parametrization == "log"
    lower = np.log(LOWER_BOUND) if log else LOWER_BOUND

    def value_and_gradient(
        x: np.ndarray, batch_indices: list[int]
    ) -> tuple[np.ndarray, np.ndarray]:
        runs = torch.as_tensor(batch_indices, device=bucket.device)
        values = torch.as_tensor(np.exp(x) if log else x).to(start)
        b = bucket[runs]
        value, gradient = batched_objective(
            values,
            distances[b.unsqueeze(-1), b.unsqueeze(-2)],
            n_references,
            noise[runs],
            residual[runs],
        )
        slope = (gradient * values if log else gradient).cpu().numpy()
        return value.cpu().numpy(), slope

    origin = start.cpu().numpy()
    optimum, _, _ = fmin_l_bfgs_b_batched(
        value_and_gradient,
        np.log(origin) if log else origin,
        bounds=[(lower, np.inf)] * 2,
        pass_batch_indices=True,
    )
    return torch.as_tensor(np.exp(optimum) if log else optimum).to(start)
