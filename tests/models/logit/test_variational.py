"""The binary posterior: Laplace's, a variational one, and the exact one by sampling."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from gp_eval.kernels import ReferenceScoreKernel
from gp_eval.models.logit.posterior import LatentPosterior
from gp_eval.models.logit.sites import Counts, Sites, laplace_sites
from gp_eval.models.logit.variational import VariationalLogitGP
from gp_eval.settings import exact_inference

PHI = torch.rand(12, 5, generator=torch.Generator().manual_seed(0)).double()
BUCKET = torch.tensor([0, 1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 3, 5, 5, 7, 2, 2, 1, 8, 4])
SCORE = torch.tensor([1, 0, 1, 1, 0, 1, 0, 1, 1, 1, 0, 1, 1, 1, 0, 0, 1, 0, 1, 1.0])
SCORE = SCORE.double()


def kernel() -> ReferenceScoreKernel:
    module = ReferenceScoreKernel().double()
    module.alpha = torch.tensor(2.0, dtype=torch.float64)
    module.beta = torch.tensor(4.0, dtype=torch.float64)
    return module


def prior() -> tuple[Tensor, Tensor]:
    mean = torch.logit((5 * PHI.mean(1) + 0.5) / 6)
    return mean, kernel()(PHI).to_dense().detach()


def laplace() -> Sites:
    mean, covariance = prior()
    counts = Counts.of_items(BUCKET, SCORE, 12)
    seen = counts.bucket
    start = torch.zeros_like(mean[seen])
    return laplace_sites(covariance[seen][:, seen], mean[seen], counts, start)


@pytest.fixture(scope="module")
def exact() -> tuple[float, Tensor, Tensor]:
    """Evidence, mean and variance by importance sampling from the prior.

    Half a million draws of 5e4 effective ones: errors of a few thousandths.
    """
    mean, covariance = prior()
    generator = torch.Generator().manual_seed(1)
    draws = torch.randn(500_000, 12, generator=generator, dtype=torch.float64)
    draws = mean + draws @ torch.linalg.cholesky(covariance).T
    f = draws[:, BUCKET]
    log_weight = (f * SCORE - torch.nn.functional.softplus(f)).sum(1)
    weight = torch.softmax(log_weight, 0)
    centre = weight @ draws
    evidence = float(torch.logsumexp(log_weight, 0)) - math.log(500_000)
    return evidence, centre, weight @ (draws - centre).square()


@pytest.fixture(scope="module")
def variational() -> tuple[float, Tensor, Tensor]:
    model = VariationalLogitGP(PHI[BUCKET], SCORE, covar_module=kernel())
    bound = model.fit_posterior(steps=40)
    with exact_inference(), torch.no_grad():
        belief = model(PHI)
        return float(bound), belief.mean, belief.variance


def test_the_bound_is_below_the_evidence_and_near(exact, variational) -> None:
    assert exact[0] - 0.05 < variational[0] < exact[0] + 0.01


def test_the_variational_posterior_is_near_the_exact_one(exact, variational) -> None:
    """Means within 3 % of a standard deviation, variances within 3 %."""
    _, mean, variance = exact
    assert bool(((variational[1] - mean).abs() < 0.03 * variance.sqrt()).all())
    torch.testing.assert_close(variational[2], variance, rtol=0.03, atol=0)


def test_laplace_is_near_both(exact, variational) -> None:
    """The mode is not the mean: within 13 % of a standard deviation and 10 %."""
    mean, covariance = prior()
    sites = laplace()
    posterior = LatentPosterior(covariance, mean, sites)
    assert float(sites.log_likelihood) == pytest.approx(exact[0], abs=0.1)
    for _, other_mean, other_variance in (exact, variational):
        difference = (posterior.mean - other_mean).abs()
        assert bool((difference < 0.13 * other_variance.sqrt()).all())
        torch.testing.assert_close(posterior.variance, other_variance, rtol=0.1, atol=0)


def test_more_steps_do_not_change_the_optimum(variational) -> None:
    """Nothing is random: a second run ends where the first one did."""
    model = VariationalLogitGP(PHI[BUCKET], SCORE, covar_module=kernel())
    state = torch.get_rng_state()
    bound = model.fit_posterior(steps=60)
    assert float(bound) == pytest.approx(variational[0], rel=1e-9)
    assert torch.equal(torch.get_rng_state(), state)


def test_shapes_that_do_not_match_are_refused() -> None:
    with pytest.raises(ValueError, match="train_X, train_Y: expected shapes n x K"):
        VariationalLogitGP(PHI[BUCKET], SCORE[:3])
