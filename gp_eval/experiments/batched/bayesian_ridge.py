"""Bayesian ridge regression of many responses on the same features."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch
from torch import Tensor

__all__ = ["BayesianRidgeFit", "fit_bayesian_ridge"]

# Defaults of scikit-learn: its four Gamma parameters are equal.
GAMMA_PRIOR = 1e-6
MAX_ITER = 300
TOLERANCE = 1e-3


@dataclass(frozen=True)
class _Spectrum:
    r"""Singular value decomposition :math:`X = U S V^\top` of ``m x p`` features.

    From an eigendecomposition of the smaller Gram matrix, of size ``r = min(m, p)``.

    Attributes:
        features: :math:`X`.
        values: :math:`S^2`, shape ``r x 1``.
        vectors: :math:`U` if ``m <= p``, else :math:`V`; ``r x r``.
        rotated: Responses :math:`U^\top Y`, shape ``r x R``.
        outside: Squared length of the responses outside of ``U``, shape ``R``.
    """

    features: Tensor
    values: Tensor
    vectors: Tensor
    rotated: Tensor
    outside: Tensor

    @classmethod
    def of(cls, features: Tensor, responses: Tensor) -> _Spectrum:
        wide = features.shape[0] <= features.shape[1]
        gram = features @ features.T if wide else features.T @ features
        values, vectors = torch.linalg.eigh(gram)
        # Centred features are singular, and what rounding makes of a 0 must not count:
        # equal responses have a start of 1e15 for alpha, which would make it a signal.
        floor = values[-1] * gram.shape[0] * torch.finfo(values.dtype).eps
        values = torch.where(values > floor, values, 0.0).unsqueeze(-1)
        if wide:
            outside = torch.zeros_like(responses[0])
            return cls(features, values, vectors, vectors.T @ responses, outside)
        inverse = torch.where(values > 0.0, values.rsqrt(), 0.0)
        rotated = inverse * (vectors.T @ (features.T @ responses))
        rest = responses - features @ (vectors @ (inverse * rotated))
        return cls(features, values, vectors, rotated, rest.square().sum(0))

    @property
    def wide(self) -> bool:
        """Whether there are as many features as samples, or more."""
        return self.features.shape[0] <= self.features.shape[1]

    def coefficients(self, scaled: Tensor) -> Tensor:
        """:math:`V S z` of columns ``z``, from ``r x R`` to ``p x R``."""
        if self.wide:
            return self.features.T @ (self.vectors @ scaled)
        return self.vectors @ (self.values.sqrt() * scaled)

    def subset(self, which: Tensor) -> _Spectrum:
        """The same features with some of the responses."""
        rotated, outside = self.rotated[:, which], self.outside[which]
        return replace(self, rotated=rotated, outside=outside)

    def moves(self, step: Tensor) -> Tensor:
        """Whether coefficients change by the tolerance or more, in the L1 norm.

        The L2 norm is cheap in these coordinates and decides most cases, since
        L2 <= L1 <= sqrt(p) L2.
        """
        length = (self.values.T @ step.square())[0].sqrt()
        moving = length >= TOLERANCE
        bound = length * math.sqrt(self.features.shape[1])
        open_ = (~moving & (bound >= TOLERANCE)).nonzero()[:, 0]
        if open_.shape[0]:
            exact = self.coefficients(step[:, open_]).abs().sum(0)
            moving[open_] = exact >= TOLERANCE
        return moving


@dataclass(frozen=True)
class BayesianRidgeFit:
    """Posterior of the coefficients of ``R`` responses.

    Attributes:
        coefficients: Posterior means, ``p x R``.
        alpha: Noise precisions, shape ``R``.
        lambda_: Precisions of the coefficients' prior, shape ``R``.
    """

    coefficients: Tensor
    alpha: Tensor
    lambda_: Tensor
    _spectrum: _Spectrum

    def quadratic_form(self, vectors: Tensor) -> Tensor:
        r""":math:`v^\top \Sigma v` with the posterior covariance of the coefficients.

        Args:
            vectors: ``T`` vectors as columns, ``p x T``.

        Returns:
            A tensor ``T x R``.
        """
        spectrum = self._spectrum
        precision = self.alpha * spectrum.values + self.lambda_
        if not spectrum.wide:
            return (spectrum.vectors.T @ vectors).square().T @ (1.0 / precision)
        # The prior's variance less what the samples took of it (Woodbury).
        seen = spectrum.vectors.T @ (spectrum.features @ vectors)
        taken = seen.square().T @ (self.alpha / precision)
        length = vectors.square().sum(0).unsqueeze(-1)
        return (length - taken).clamp_min(0.0) / self.lambda_


def fit_bayesian_ridge(features: Tensor, responses: Tensor) -> BayesianRidgeFit:
    """scikit-learn's ``BayesianRidge()`` for all responses at once.

    One eigendecomposition serves all responses, and each goes through the same fixed
    point iteration (MacKay 1992) from the same start to the same stopping rule. Results
    differ from scikit-learn's by rounding only, unless that decides whether the change
    of the coefficients is below the tolerance of ``1e-3``.

    Args:
        features: Features of ``m`` samples, ``m x p``, centred for an intercept.
        responses: Responses, ``m x R``, centred too then.
    """
    spectrum = _Spectrum.of(features, responses)
    variance = responses.var(0, correction=0)
    alpha, lambda_ = _precisions(spectrum, variance, features.shape[0])
    scaled = spectrum.rotated / (spectrum.values + lambda_ / alpha)
    return BayesianRidgeFit(spectrum.coefficients(scaled), alpha, lambda_, spectrum)


def _precisions(
    spectrum: _Spectrum, variance: Tensor, n_samples: int
) -> tuple[Tensor, Tensor]:
    """The fixed point of both precisions, ``alpha`` and ``lambda``, shape ``R``."""
    alpha = 1.0 / (variance + torch.finfo(variance.dtype).eps)
    lambda_ = torch.ones_like(alpha)
    active = torch.arange(alpha.shape[0], device=alpha.device)
    left, ratio, previous = spectrum, lambda_ / alpha, None
    lengths = torch.cat([spectrum.values, torch.ones_like(spectrum.values)], -1).T
    for _ in range(MAX_ITER):
        weights = 1.0 / (left.values + ratio)
        scaled = left.rotated * weights
        gamma = (left.values.T @ weights)[0]
        size, error = lengths @ scaled.square()
        b = (gamma + 2 * GAMMA_PRIOR) / (size + 2 * GAMMA_PRIOR)
        error = left.outside + ratio.square() * error
        a = (n_samples - gamma + 2 * GAMMA_PRIOR) / (error + 2 * GAMMA_PRIOR)
        alpha[active], lambda_[active], ratio = a, b, b / a
        if previous is not None:
            moving = left.moves(previous - scaled)
            if not bool(moving.all()):
                active, left = active[moving], left.subset(moving)
                ratio, scaled = ratio[moving], scaled[:, moving]
            if not active.shape[0]:
                break
        previous = scaled
    return alpha, lambda_
