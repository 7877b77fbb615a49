from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF, ConstantKernel
from torch import Tensor

from gp_eval.errors import NotPositiveDefiniteError
from gp_eval.kernels import ReferenceMaternKernel, ReferenceScoreKernel
from gp_eval.models.logit.laplace_objective import LaplaceObjective
from gp_eval.models.logit.posterior import LatentPosterior
from gp_eval.models.logit.sites import Counts, Sites, laplace_sites

ALPHA, BETA = 2.3, 4.1


class Answers:
    """Right and wrong answers, several items in some of the buckets."""

    def __init__(self, seed: int, n_buckets: int = 9, n: int = 20) -> None:
        generator = torch.Generator().manual_seed(seed)
        double = {"generator": generator, "dtype": torch.float64}
        self.phi = torch.rand(n_buckets, 4, **double)
        self.mean = torch.randn(n_buckets, **double)
        self.bucket = torch.randint(0, n_buckets - 2, (n,), generator=generator)
        self.score = (torch.rand(n, **double) < 0.6).double()
        distance = (self.phi.unsqueeze(1) - self.phi).square().sum(-1)
        self.prior = ALPHA * torch.exp(-BETA / 4 * distance)

    @property
    def counts(self) -> Counts:
        return Counts.of_items(self.bucket, self.score, self.phi.shape[0])

    def sites(self, mean: Tensor | None = None) -> Sites:
        counts = self.counts
        mean = self.mean if mean is None else mean
        seen = counts.bucket
        start = torch.zeros_like(mean[seen])
        return laplace_sites(self.prior[seen][:, seen], mean[seen], counts, start)


def literal_laplace(answers: Answers) -> tuple[Tensor, Tensor, float]:
    """Newton item by item as in the textbook; mean, covariance and likelihood."""
    k = answers.prior[answers.bucket][:, answers.bucket]
    mu, y = answers.mean[answers.bucket], answers.score
    eye = torch.eye(y.shape[0], dtype=torch.float64)
    f = mu
    for _ in range(60):
        p = 1 / (1 + torch.exp(-f))
        w = torch.diag(p * (1 - p))
        f = mu + k @ torch.linalg.solve(eye + w @ k, w @ (f - mu) + y - p)
    p = 1 / (1 + torch.exp(-f))
    w = torch.diag(p * (1 - p))
    cross = answers.prior[:, answers.bucket]
    mean = answers.mean + cross @ (y - p)
    middle = torch.linalg.inv(k + torch.linalg.inv(w))
    likelihood = float((y * torch.log(p) + (1 - y) * torch.log(1 - p)).sum())
    likelihood += float(-0.5 * (y - p) @ (f - mu))
    likelihood -= 0.5 * float(torch.linalg.slogdet(eye + k @ w)[1])
    return mean, answers.prior - cross @ middle @ cross.T, likelihood


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_mode_covariance_and_likelihood_are_those_of_the_literal_newton(
    seed: int,
) -> None:
    answers = Answers(seed)
    sites = answers.sites()
    posterior = LatentPosterior(answers.prior, answers.mean, sites)
    mean, covariance, likelihood = literal_laplace(answers)
    torch.testing.assert_close(posterior.mean, mean, rtol=1e-10, atol=1e-12)
    every = torch.arange(9)
    torch.testing.assert_close(
        posterior.covariance(every), covariance, rtol=1e-10, atol=1e-12
    )
    torch.testing.assert_close(
        posterior.variance, covariance.diagonal(), rtol=1e-10, atol=0
    )
    vector = torch.linspace(-1, 2, 9, dtype=torch.float64)
    torch.testing.assert_close(
        posterior.matvec(vector), covariance @ vector, rtol=1e-10, atol=1e-12
    )
    assert float(sites.log_likelihood) == pytest.approx(likelihood, rel=1e-10)


def of_scikit_learn(answers: Answers) -> GaussianProcessClassifier:
    """Laplace's approximation by scikit-learn: prior mean 0, one row an item."""
    kernel = ConstantKernel(ALPHA) * RBF(math.sqrt(4 / (2 * BETA)))
    model = GaussianProcessClassifier(kernel, optimizer=None)
    return model.fit(answers.phi[answers.bucket].numpy(), answers.score.numpy())


@pytest.mark.parametrize("seed", [0, 1])
def test_mode_and_likelihood_are_those_of_scikit_learn(seed: int) -> None:
    """It stops when the likelihood changes by 1e-10, at 1e-5 from the mode or so."""
    answers = Answers(seed)
    model = of_scikit_learn(answers)
    sites = answers.sites(mean=torch.zeros(9).double())
    posterior = LatentPosterior(answers.prior, torch.zeros(9).double(), sites)
    probability = torch.sigmoid(posterior.mean)[answers.bucket]
    np.testing.assert_allclose(probability, model.base_estimator_.pi_, rtol=1e-5)
    expected = model.log_marginal_likelihood_value_
    assert float(sites.log_likelihood) == pytest.approx(expected, rel=1e-9)


def test_gradient_is_that_of_scikit_learn() -> None:
    """In log alpha and the log length scale, with the same tolerance for its mode."""
    answers = Answers(0)
    model = of_scikit_learn(answers).base_estimator_
    value, gradient = model.log_marginal_likelihood(model.kernel_.theta, True)
    kernel = ReferenceScoreKernel().double()
    objective = LaplaceObjective(
        kernel, answers.phi, torch.zeros(9).double(), answers.counts
    )
    ours, slope = objective(torch.tensor([ALPHA, BETA], dtype=torch.float64))
    assert float(ours) == pytest.approx(-value, rel=1e-9)
    assert float(slope[0]) * ALPHA == pytest.approx(-gradient[0], rel=1e-4)
    assert float(slope[1]) * -2 * BETA == pytest.approx(-gradient[1], rel=1e-4)


@pytest.mark.parametrize("kernel_class", [ReferenceScoreKernel, ReferenceMaternKernel])
def test_gradient_is_that_of_finite_differences(kernel_class: type) -> None:
    """Central differences with a step of 1e-5: error about 1e-10, rounding 1e-10."""
    answers = Answers(3)
    kernel = kernel_class().double()
    objective = LaplaceObjective(kernel, answers.phi, answers.mean, answers.counts)
    at = torch.tensor([ALPHA, BETA], dtype=torch.float64)
    _, gradient = objective(at)
    for i in range(2):
        step = torch.zeros(2, dtype=torch.float64)
        step[i] = 1e-5
        change = float(objective(at + step)[0] - objective(at - step)[0]) / 2e-5
        assert float(gradient[i]) == pytest.approx(change, rel=1e-6)


@pytest.mark.parametrize("scale", [1e-5, 1e2, 1e5])
def test_the_mode_is_found_under_extreme_priors(scale: float) -> None:
    """Under a wide prior a full Newton step overshoots by far."""
    answers = Answers(1)
    answers.prior = answers.prior * scale
    answers.mean = answers.mean * 10
    sites = answers.sites()
    f = LatentPosterior(answers.prior, answers.mean, sites).mean[sites.bucket]
    counts = answers.counts
    slope = counts.successes - counts.trials * torch.sigmoid(f)
    torch.testing.assert_close(sites.coefficient, slope, rtol=1e-6, atol=1e-9)


def test_the_start_does_not_matter() -> None:
    answers = Answers(2)
    counts = answers.counts
    gram = answers.prior[counts.bucket][:, counts.bucket]
    mean = answers.mean[counts.bucket]
    cold = answers.sites()
    for start in (cold.coefficient, torch.full_like(mean, 3.0), -5.0 * cold.root):
        warm = laplace_sites(gram, mean, counts, start)
        torch.testing.assert_close(
            warm.coefficient, cold.coefficient, rtol=1e-10, atol=1e-12
        )


def test_a_covariance_that_is_not_finite_is_refused() -> None:
    answers = Answers(0)
    answers.prior[0, 0] = torch.nan
    with pytest.raises(NotPositiveDefiniteError, match="not finite"):
        answers.sites()
