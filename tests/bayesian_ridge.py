"""Bayesian ridge regression from its formulas, with dense inverses."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

HYPER = 1e-6


@dataclass
class DenseFit:
    """Posterior of coefficients: mean, covariance, precisions of noise and prior."""

    mean: np.ndarray
    covariance: np.ndarray
    alpha: float
    lambda_: float


def dense_bayesian_ridge(
    x: np.ndarray, y: np.ndarray, *, intercept: bool = True
) -> DenseFit:
    """MacKay's iteration, stopped by the L1 change; centred data for an intercept."""
    alpha, lambda_ = 1.0 / (y.var() + np.finfo(float).eps), 1.0
    if intercept:
        x, y = x - x.mean(0), y - y.mean()
    m, p = x.shape

    def posterior() -> tuple[np.ndarray, np.ndarray]:
        precision = lambda_ * np.eye(p) + alpha * x.T @ x
        covariance = np.linalg.inv(precision)
        return alpha * covariance @ x.T @ y, covariance

    previous = None
    for _ in range(300):
        mean, covariance = posterior()
        gamma = p - lambda_ * np.trace(covariance)
        lambda_ = (gamma + 2 * HYPER) / (mean @ mean + 2 * HYPER)
        residual = y - x @ mean
        alpha = (m - gamma + 2 * HYPER) / (residual @ residual + 2 * HYPER)
        if previous is not None and np.abs(previous - mean).sum() < 1e-3:
            break
        previous = mean
    mean, covariance = posterior()
    return DenseFit(mean, covariance, float(alpha), float(lambda_))
