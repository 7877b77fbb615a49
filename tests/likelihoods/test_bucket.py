from __future__ import annotations

import pytest
import torch
from gpytorch.constraints import GreaterThan
from gpytorch.distributions import MultivariateNormal
from gpytorch.priors import GammaPrior

from gp_eval.likelihoods import BucketGaussianLikelihood


def inputs(counts: list[float]) -> torch.Tensor:
    phi = torch.rand(len(counts), 3, dtype=torch.float64)
    return torch.cat([phi, torch.tensor(counts).double().unsqueeze(-1)], -1)


def prior(n: int) -> MultivariateNormal:
    return MultivariateNormal(torch.zeros(n).double(), torch.eye(n).double())


def test_noise_is_sigma2_times_the_count_of_each_row() -> None:
    likelihood = BucketGaussianLikelihood(noise=0.05).double()
    likelihood.noise = 0.05
    marginal = likelihood(prior(3), inputs([1, 4, 2]))
    expected = torch.tensor([1.05, 1.20, 1.10], dtype=torch.float64)
    torch.testing.assert_close(marginal.variance, expected, rtol=1e-14, atol=0)


def test_noise_belongs_to_the_rows_whatever_their_number() -> None:
    """FixedNoiseGaussianLikelihood would reuse the training noise at equal sizes."""
    likelihood = BucketGaussianLikelihood().double()
    likelihood.noise = 0.1
    first = likelihood(prior(2), inputs([1, 1])).variance
    second = likelihood(prior(2), inputs([7, 3])).variance
    assert first.tolist() == pytest.approx([1.1, 1.1], rel=1e-14)
    assert second.tolist() == pytest.approx([1.7, 1.3], rel=1e-14)


def test_count_column_may_be_elsewhere() -> None:
    x = inputs([2, 5]).flip(-1)
    likelihood = BucketGaussianLikelihood(count_dim=0).double()
    likelihood.noise = 0.1
    variance = likelihood(prior(2), x).variance
    assert variance.tolist() == pytest.approx([1.2, 1.5], rel=1e-14)


def test_sigma2_is_a_trainable_parameter_with_prior_and_bound() -> None:
    likelihood = BucketGaussianLikelihood(
        noise_prior=GammaPrior(2.0, 2.0), noise_constraint=GreaterThan(1e-3)
    )
    assert [name for name, _ in likelihood.named_parameters()] == [
        "noise_covar.raw_noise"
    ]
    assert likelihood.noise.item() == pytest.approx(0.1)
    with pytest.raises(RuntimeError, match="out of bounds"):
        likelihood.noise = -1.0


def test_setter_keeps_double_precision() -> None:
    likelihood = BucketGaussianLikelihood().double()
    likelihood.noise = 1e-4
    assert likelihood.noise.item() == 1e-4


def test_without_inputs_it_refuses() -> None:
    with pytest.raises(ValueError, match="bucket sizes from the inputs"):
        BucketGaussianLikelihood()(prior(2))
