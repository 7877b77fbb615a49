r"""Gaussian likelihood whose noise grows with the size of the bucket."""

from __future__ import annotations

from typing import Any

import torch
from gpytorch.constraints import GreaterThan, Interval
from gpytorch.likelihoods.gaussian_likelihood import _GaussianLikelihoodBase
from gpytorch.likelihoods.noise_models import _HomoskedasticNoiseBase
from gpytorch.priors import Prior
from linear_operator.operators import DiagLinearOperator
from torch import Tensor

__all__ = ["BucketGaussianLikelihood", "BucketNoise"]


class BucketNoise(_HomoskedasticNoiseBase):
    r"""Noise variance :math:`N_b \sigma^2`, with :math:`N_b` read from the inputs.

    Args:
        count_dim: The input column that holds the bucket size ``N_b``.
        noise_constraint: Constraint on :math:`\sigma^2`.
        noise_prior: Prior on :math:`\sigma^2`.
        batch_shape: Batch shape of :math:`\sigma^2`.
    """

    def __init__(
        self,
        *,
        count_dim: int,
        noise_constraint: Interval | None,
        noise_prior: Prior | None,
        batch_shape: torch.Size,
    ) -> None:
        super().__init__(
            noise_prior=noise_prior,
            noise_constraint=noise_constraint,
            batch_shape=batch_shape,
            num_tasks=1,
        )
        self.count_dim = count_dim

    def forward(
        self,
        *params: Any,
        shape: torch.Size | None = None,
        noise: Tensor | None = None,
        **kwargs: Any,
    ) -> DiagLinearOperator:
        """Diagonal noise covariance ``... x n x n`` of inputs ``... x n x d``."""
        if noise is not None:
            return DiagLinearOperator(noise)
        # ExactGP passes the list of its inputs, marginal log likelihoods a tensor.
        inputs = params[0] if params else None
        if isinstance(inputs, (list, tuple)):
            inputs = inputs[0] if inputs else None
        if not torch.is_tensor(inputs):
            raise ValueError(
                "BucketNoise reads the bucket sizes from the inputs: call "
                "likelihood(distribution, X)."
            )
        return DiagLinearOperator(self.noise * inputs[..., self.count_dim])


class BucketGaussianLikelihood(_GaussianLikelihoodBase):
    r"""Gaussian scores with variance :math:`N_b \sigma^2` (Section 3.1).

    Items of a bucket look the same to all references and may still differ for the
    target; scaling by ``N_b`` keeps the variance of the bucket *average* at
    :math:`\sigma^2`. GPyTorch's ``FixedNoiseGaussianLikelihood`` guesses from sizes
    which noise belongs to test points; this one reads the inputs.

    Args:
        count_dim: The input column that holds the bucket size ``N_b``; default the
            last one.
        noise: Initial :math:`\sigma^2`, in squared score units; default the paper's
            value for buckets of several items.
        noise_constraint: Constraint on :math:`\sigma^2`; default at least ``1e-4``.
        noise_prior: Prior on :math:`\sigma^2`.
        batch_shape: Batch shape of :math:`\sigma^2`.
    """

    def __init__(
        self,
        *,
        count_dim: int = -1,
        noise: float = 0.1,
        noise_constraint: Interval | None = None,
        noise_prior: Prior | None = None,
        batch_shape: torch.Size | None = None,
    ) -> None:
        noise_covar = BucketNoise(
            count_dim=count_dim,
            noise_constraint=noise_constraint or GreaterThan(1e-4, transform=None),
            noise_prior=noise_prior,
            batch_shape=torch.Size() if batch_shape is None else batch_shape,
        )
        super().__init__(noise_covar=noise_covar)
        self.noise = noise

    @property
    def noise(self) -> Tensor:
        r"""The paper's :math:`\sigma^2`, shape ``batch_shape x 1``."""
        return self.noise_covar.noise

    @noise.setter
    def noise(self, value: Tensor | float) -> None:
        raw = self.raw_noise
        value = torch.as_tensor(value, dtype=raw.dtype, device=raw.device)
        self.noise_covar.initialize(noise=value)

    @property
    def raw_noise(self) -> Tensor:
        r"""The unconstrained parameter of :math:`\sigma^2`."""
        return self.noise_covar.raw_noise
