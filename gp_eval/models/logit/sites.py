r"""A Gaussian posterior of latent values at the observed buckets.

Both likelihoods of Appendix B.3 of the BayesAME paper, Gaussian and Bernoulli by
Laplace's approximation, give :math:`f \mid s_C` of mean
:math:`\mu + \Sigma_{:,o} a` and covariance :math:`\Sigma - \Sigma_{:,o} S^{1/2}
(I + S^{1/2} \Sigma_{oo} S^{1/2})^{-1} S^{1/2} \Sigma_{o,:}`, with a precision ``S`` for
each of the ``m`` observed buckets ``o``: Rasmussen & Williams (2006), Section 3.4.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import softplus

from gp_eval.linalg import Observations, cholesky

__all__ = ["Counts", "Sites", "gaussian_sites", "laplace_sites"]

_STEPS = 100
# Newton is quadratic: after a last step of 1e-7 the error is about its square.
_LAST_STEP = 1e-7


@dataclass(frozen=True)
class Sites:
    """What the observed buckets say about the latent values of all.

    Attributes:
        bucket: The ``m`` observed buckets, rising.
        coefficient: ``a``, shape ``m``.
        root: Roots of the precisions ``S``, shape ``m``.
        factor: Cholesky factor of ``I + S^{1/2} Sigma_oo S^{1/2}``, ``m x m``.
        log_likelihood: Log-marginal likelihood of the scores, exact or Laplace's, in
            nats and without terms in ``2 pi``.
    """

    bucket: Tensor
    coefficient: Tensor
    root: Tensor
    factor: Tensor
    log_likelihood: Tensor

    def precision_root(self) -> Tensor:
        """``A`` with ``A^T A = (Sigma_oo + S^{-1})^{-1}``, ``m x m``."""
        return torch.linalg.solve_triangular(
            self.factor, torch.diag(self.root), upper=False
        )


@dataclass(frozen=True)
class Counts:
    """Right and wrong answers by bucket.

    Attributes:
        bucket: The ``m`` observed buckets, rising.
        trials: Evaluated items of each, the paper's ``n_b``, shape ``m``.
        successes: How many of them were right, shape ``m``.
    """

    bucket: Tensor
    trials: Tensor
    successes: Tensor

    @classmethod
    def of_items(cls, bucket: Tensor, score: Tensor, n_buckets: int) -> Counts:
        """From buckets and 0/1 scores of the evaluated items, shape ``n`` each."""
        n = torch.bincount(bucket, minlength=n_buckets)
        total = score.new_zeros(n_buckets).index_add_(0, bucket, score)
        seen = torch.nonzero(n).squeeze(-1)
        return cls(seen, n[seen].to(score), total[seen])


def gaussian_sites(gram: Tensor, residual: Tensor, data: Observations) -> Sites:
    """Exact posterior of Gaussian observations in their bucket form.

    Args:
        gram: Prior covariance of the observed buckets, ``m x m``.
        residual: Observed values minus prior mean, shape ``m``.
        data: The observations.
    """
    root = data.noise.rsqrt()
    factor = _factor(gram, root)
    white = torch.linalg.solve_triangular(
        factor, (root * residual).unsqueeze(-1), upper=False
    )
    coefficient = root * torch.linalg.solve_triangular(
        factor.mT, white, upper=True
    ).squeeze(-1)
    value = -0.5 * white.square().sum() - factor.diagonal().log().sum()
    value = value + root.log().sum()
    return Sites(data.bucket, coefficient, root, factor, value)


def laplace_sites(
    gram: Tensor, prior_mean: Tensor, counts: Counts, start: Tensor
) -> Sites:
    r"""Laplace's approximation for Bernoulli scores with the logistic link.

    Newton's method in ``a`` (Rasmussen & Williams, Algorithm 3.1) with a mean and with
    several items a bucket; a step that lowers the posterior is halved. The posterior is
    log-concave, so the mode does not depend on the start.

    Args:
        gram: Prior covariance of the observed buckets, ``m x m``.
        prior_mean: Their prior mean, shape ``m``.
        counts: Their right and wrong answers.
        start: ``a`` to start from, shape ``m``; zeros start from the prior mean.

    Raises:
        NotPositiveDefiniteError: If the covariance is not finite.
        ArithmeticError: If Newton's method does not converge.
    """
    a, f = start, prior_mean + gram @ start
    value = _log_posterior(a, f, prior_mean, counts)
    for _ in range(_STEPS):
        step = _newton(gram, f - prior_mean, f, counts) - a
        change = gram @ step
        bound = float(value) - 1e-12 * (1.0 + abs(float(value)))
        length = 1.0
        while length > 1e-12:
            new_a, new_f = a + length * step, f + length * change
            new = _log_posterior(new_a, new_f, prior_mean, counts)
            if float(new) >= bound:
                break
            length /= 2.0
        a, f, value = new_a, new_f, new
        if length == 1.0 and float(change.abs().max()) <= _LAST_STEP:
            return _sites_at(gram, a, f, prior_mean, counts)
    raise ArithmeticError(
        f"Laplace approximation: no convergence in {_STEPS} Newton steps "
        f"(last change {float(change.abs().max()):.3g}, {f.shape[0]} buckets)"
    )


def _newton(gram: Tensor, offset: Tensor, f: Tensor, counts: Counts) -> Tensor:
    """``a`` after a full Newton step from ``f`` (``offset`` above the prior mean)."""
    p = torch.sigmoid(f)
    precision = counts.trials * p * (1.0 - p)
    root = precision.sqrt()
    b = precision * offset + counts.successes - counts.trials * p
    right = (root * (gram @ b)).unsqueeze(-1)
    solved = torch.cholesky_solve(right, _factor(gram, root)).squeeze(-1)
    return b - root * solved


def _sites_at(
    gram: Tensor, a: Tensor, f: Tensor, prior_mean: Tensor, counts: Counts
) -> Sites:
    p = torch.sigmoid(f)
    root = (counts.trials * p * (1.0 - p)).sqrt()
    factor = _factor(gram, root)
    value = _log_posterior(a, f, prior_mean, counts) - factor.diagonal().log().sum()
    return Sites(counts.bucket, a, root, factor, value)


def _factor(gram: Tensor, root: Tensor) -> Tensor:
    matrix = root.unsqueeze(-1) * gram * root
    matrix.diagonal().add_(1.0)
    return cholesky(matrix, name="covariance of the evaluated items")


def _log_posterior(a: Tensor, f: Tensor, prior_mean: Tensor, counts: Counts) -> Tensor:
    """Log of likelihood times prior up to a constant, ``f`` being ``mean + gram a``."""
    likelihood = counts.successes @ f - counts.trials @ softplus(f)
    return likelihood - 0.5 * a @ (f - prior_mean)
