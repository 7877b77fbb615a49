from __future__ import annotations

import numpy as np
import pytest
import torch
from botorch.fit import fit_gpytorch_mll
from gpytorch.kernels import LinearKernel, MaternKernel, ScaleKernel
from gpytorch.mlls import ExactMarginalLogLikelihood
from oracles import Problem, make_problem

from gp_eval.kernels import ReferenceScoreKernel
from gp_eval.likelihoods import BucketGaussianLikelihood
from gp_eval.linalg import Observations
from gp_eval.models import BucketGP
from gp_eval.optim import Fit, fit_kernel, make_objective
from gp_eval.settings import exact_inference


def smooth_problem() -> Problem:
    """A target that follows the references, so that the optimum is inside."""
    problem = make_problem(5, counts=(1,) * 60, n_references=8, sigma2=1e-2)
    noise = torch.randn(60, generator=torch.Generator().manual_seed(1)).double()
    phi = problem.references.scores
    problem.scores = phi[:, 0] - 0.5 * phi[:, 1].square() + 0.1 * noise
    return problem


def fit(problem: Problem, kernel, **options) -> Fit:
    phi = problem.buckets.phi
    data = Observations.by_item(
        problem.buckets.item_bucket,
        problem.scores,
        problem.sigma2 * problem.buckets.counts,
    )
    return fit_kernel(kernel, make_objective(kernel, phi, phi.mean(1), data), **options)


def value_on_a_grid(problem: Problem) -> float:
    phi = problem.buckets.phi
    data = Observations.by_item(
        problem.buckets.item_bucket,
        problem.scores,
        problem.sigma2 * problem.buckets.counts,
    )
    made = make_objective(ReferenceScoreKernel().double(), phi, phi.mean(1), data)
    return min(
        float(made(torch.tensor([a, b], dtype=torch.float64))[0])
        for a in np.geomspace(1e-3, 1e3, 40)
        for b in np.geomspace(1e-4, 1e2, 40)
    )


@pytest.mark.parametrize("parametrization", ["raw", "log"])
def test_finds_the_optimum(parametrization: str) -> None:
    problem, kernel = smooth_problem(), ReferenceScoreKernel().double()
    result = fit(problem, kernel, parametrization=parametrization)
    assert result.converged
    assert result.value <= value_on_a_grid(problem) + 1e-6


def test_leaves_the_optimum_in_the_kernel() -> None:
    problem, kernel = smooth_problem(), ReferenceScoreKernel().double()
    first = fit(problem, kernel)
    again = fit(problem, kernel)
    assert kernel.alpha.item() != 1.0
    assert again.evaluations <= 3
    assert again.value == pytest.approx(first.value, rel=1e-9)


def test_agrees_with_fit_gpytorch_mll() -> None:
    """Only loosely: BoTorch minimises the mean per datum and stops earlier."""
    problem, kernel = smooth_problem(), ReferenceScoreKernel().double()
    ours = fit(problem, kernel)
    likelihood = BucketGaussianLikelihood(noise=problem.sigma2)
    model = BucketGP(
        problem.buckets.inputs[problem.buckets.item_bucket],
        problem.scores.unsqueeze(-1),
        likelihood=likelihood,
    )
    likelihood.noise = problem.sigma2
    likelihood.raw_noise.requires_grad_(False)
    with exact_inference():
        fit_gpytorch_mll(ExactMarginalLogLikelihood(likelihood, model))
    theirs = ReferenceScoreKernel().double()
    theirs.alpha = model.covar_module.alpha.detach()
    theirs.beta = model.covar_module.beta.detach()
    value = fit(problem, theirs).value
    assert ours.value == pytest.approx(value, abs=1e-4)
    assert kernel.beta.item() == pytest.approx(model.covar_module.beta.item(), rel=0.05)


def test_bound_of_the_paper_is_kept() -> None:
    problem = make_problem(5, counts=(1,) * 30)
    problem.scores = problem.score_mean.clone()
    kernel = ReferenceScoreKernel().double()
    fit(problem, kernel)
    assert kernel.alpha.item() == 1e-5
    assert kernel.beta.item() >= 1e-5


def test_any_kernel_can_be_fitted() -> None:
    problem = smooth_problem()
    kernel = (ScaleKernel(MaternKernel(nu=1.5)) + LinearKernel()).double()
    start = fit(problem, kernel)
    assert start.converged
    assert fit(problem, kernel).value <= start.value + 1e-9


def test_kernel_without_parameters_is_left_alone() -> None:
    kernel = ReferenceScoreKernel().double()
    kernel.requires_grad_(False)
    result = fit(smooth_problem(), kernel)
    assert result.message == "no trainable parameters"
    assert kernel.alpha.item() == 1.0


def test_log_parametrization_needs_positive_parameters() -> None:
    kernel = ScaleKernel(MaternKernel(nu=1.5)).double()
    with pytest.raises(ValueError, match="parameters may be <= 0"):
        fit(smooth_problem(), kernel, parametrization="log")
