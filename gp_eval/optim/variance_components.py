r"""Maximum a posteriori variance components, with the gradient in closed form."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from scipy.optimize import minimize
from torch import Tensor

from gp_eval.linalg.cholesky import cholesky
from gp_eval.optim.lbfgsb import Fit

__all__ = ["ComponentPrior", "Components", "fit_variance_components", "negative_log"]

_BOUNDS = (-12.0, 4.0)


@dataclass(frozen=True)
class Components:
    r"""Independent data of covariance :math:`F + \sum_p e^{\theta_p} M_p + e^{\nu} I`.

    Attributes:
        matrices: ``M``, ``P x n x n``.
        fixed: ``F``, ``n x n``, or ``None``.
        residuals: Columns of data, ``n x m``, each of that covariance.
        weight: What a column counts.
    """

    matrices: Tensor
    fixed: Tensor | None
    residuals: Tensor
    weight: float = 1.0


@dataclass(frozen=True)
class ComponentPrior:
    r"""Prior of the log-variances :math:`\theta, \nu`: normal, as is that of their sum.

    The sum of all variances is what is known best: scores of 0 and 1 of a known mean
    have a known variance. Without it a fit can fall to vanishing noise and stay there.

    Attributes:
        mean: Prior means, shape ``P + 1``, the noise last.
        std: Prior standard deviations, shape ``P + 1``.
        total_std: That of the logarithm of the sum around that of the means; ``None``
            for no such term.
    """

    mean: Tensor
    std: Tensor
    total_std: float | None = None

    def negative_log(self, theta: Tensor) -> tuple[Tensor, Tensor]:
        """Negative log-density up to a constant, and its gradient."""
        z = (theta - self.mean) / self.std
        value, gradient = 0.5 * z.square().sum(), z / self.std
        if self.total_std is not None:
            off = theta.logsumexp(0) - self.mean.logsumexp(0)
            value = value + 0.5 * (off / self.total_std).square()
            gradient = gradient + off / self.total_std**2 * theta.softmax(0)
        return value, gradient


def negative_log(theta: Tensor, data: Components) -> tuple[Tensor, Tensor]:
    r"""Negative log-likelihood, up to a constant, and its gradient.

    .. math::

        \frac{m}{2} \log |\Sigma| + \frac12 \operatorname{tr}(Y^\top \Sigma^{-1} Y),
        \qquad \frac{e^{\theta_p}}{2} \operatorname{tr}\big(
        (m \Sigma^{-1} - A A^\top) M_p\big), \quad A = \Sigma^{-1} Y

    Args:
        theta: Log-variances, shape ``P + 1``, the noise last.
        data: The data.

    Raises:
        NotPositiveDefiniteError: If the covariance has no Cholesky factor.
    """
    variances, count = theta.exp(), data.residuals.shape[1]
    size = data.residuals.shape[0]
    sigma = (variances[:-1] @ data.matrices.flatten(1)).view(size, size)
    if data.fixed is not None:
        sigma = sigma + data.fixed
    sigma.diagonal().add_(variances[-1])
    factor = cholesky(sigma, name="covariance of standardised scores")
    solved = torch.cholesky_solve(data.residuals, factor)
    value = 0.5 * (data.residuals * solved).sum()
    value = value + count * factor.diagonal().log().sum()
    slope = count * torch.cholesky_inverse(factor) - solved @ solved.T
    traces = torch.cat(
        [data.matrices.flatten(1) @ slope.flatten(), slope.trace()[None]]
    )
    return data.weight * value, data.weight * 0.5 * variances * traces


def fit_variance_components(
    data: Sequence[Components], prior: ComponentPrior, *, start: Tensor
) -> tuple[Tensor, Fit]:
    """Log-variances of the highest posterior density, by L-BFGS-B.

    Args:
        data: Independent sets of data with the same variances.
        prior: Prior of the log-variances.
        start: Where to begin, shape ``P + 1``.

    Returns:
        The log-variances, shape ``P + 1``, and how the fit ended.
    """

    def objective(x: np.ndarray) -> tuple[float, np.ndarray]:
        theta = torch.from_numpy(x).to(start)
        value, gradient = prior.negative_log(theta)
        for part in data:
            more, slope = negative_log(theta, part)
            value, gradient = value + more, gradient + slope
        return float(value), gradient.cpu().numpy()

    result = minimize(
        objective,
        start.cpu().numpy(),
        jac=True,
        method="L-BFGS-B",
        bounds=[_BOUNDS] * start.shape[0],
        # A thousandth of a nat is far below what the data can tell.
        options={"ftol": 1e-6, "gtol": 1e-3},
    )
    fit = Fit(float(result.fun), int(result.nfev), bool(result.success), result.message)
    return torch.from_numpy(result.x).to(start), fit
