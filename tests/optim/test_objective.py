from __future__ import annotations

import math

import pytest
import torch
from gpytorch.constraints import GreaterThan
from gpytorch.kernels import LinearKernel, MaternKernel, ScaleKernel
from gpytorch.mlls import ExactMarginalLogLikelihood
from gpytorch.priors import GammaPrior
from oracles import Problem, make_problem

from gp_eval.kernels import ReferenceScoreKernel
from gp_eval.likelihoods import BucketGaussianLikelihood
from gp_eval.linalg import Observations
from gp_eval.models import BucketGP
from gp_eval.optim import fit_kernel, make_objective
from gp_eval.optim.objective import AutogradObjective, ClosedFormObjective
from gp_eval.settings import exact_inference

CORESET = [1, 4, 2, 9, 12, 3, 0, 13]


def kernel(problem: Problem, **options) -> ReferenceScoreKernel:
    made = ReferenceScoreKernel(**options).double()
    made.alpha, made.beta = problem.alpha, problem.beta
    return made


def observations(problem: Problem, form: str = "by_item") -> Observations:
    buckets = problem.buckets
    return getattr(Observations, form)(
        buckets.item_bucket[CORESET],
        problem.scores[CORESET],
        problem.sigma2 * buckets.counts,
    )


def literal(problem: Problem, alpha: float, beta: float, form: str) -> float:
    """Eq. (11), both branches, by inverse and determinant."""
    problem.alpha, problem.beta = alpha, beta
    sigma, h = problem.ability_covariance, problem.indicator[CORESET]
    mean, scores = problem.buckets.phi.mean(1), problem.scores[CORESET]
    if form == "by_item":
        matrix = h @ sigma @ h.T + problem.item_noise[CORESET][:, CORESET]
        residual = scores - h @ mean
    else:
        n = h.sum(0)
        seen = n > 0
        delta = torch.diag(problem.sigma2 * problem.buckets.counts[seen] / n[seen])
        matrix = sigma[seen][:, seen] + delta
        residual = (h.T @ scores)[seen] / n[seen] - mean[seen]
    value = 0.5 * residual @ torch.linalg.inv(matrix) @ residual
    return float(value + 0.5 * torch.logdet(matrix))


@pytest.mark.parametrize("form", ["by_item", "by_bucket"])
@pytest.mark.parametrize("at", [(0.4, 1.7), (2.0, 0.01), (1e-3, 40.0)])
def test_is_equation_11(form: str, at: tuple[float, float]) -> None:
    problem = make_problem(0)
    made = make_objective(
        kernel(problem),
        problem.buckets.phi,
        problem.buckets.phi.mean(1),
        observations(problem, form),
    )
    assert isinstance(made, ClosedFormObjective)
    value, _ = made(torch.tensor(at, dtype=torch.float64))
    assert float(value) == pytest.approx(literal(problem, *at, form), rel=1e-10)


def test_the_two_forms_differ_by_a_constant_that_depends_on_sigma2_alone() -> None:
    for sigma2 in (1e-3, 1e-1, 1.0):
        problem = make_problem(0, sigma2=sigma2)
        long, short = observations(problem), observations(problem, "by_bucket")
        for at in ((0.4, 1.7), (2.0, 0.01)):
            values = [
                make_objective(
                    kernel(problem),
                    problem.buckets.phi,
                    problem.buckets.phi.mean(1),
                    data,
                )(torch.tensor(at, dtype=torch.float64))[0]
                + data.constant
                for data in (long, short)
            ]
            torch.testing.assert_close(values[0], values[1], rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("form", ["by_item", "by_bucket"])
@pytest.mark.parametrize("at", [(0.4, 1.7), (2.0, 0.01), (1e-3, 40.0)])
def test_closed_form_gradient_equals_autograd(
    form: str, at: tuple[float, float]
) -> None:
    problem = make_problem(0)
    phi, data = problem.buckets.phi, observations(problem, form)
    point = torch.tensor(at, dtype=torch.float64)
    closed = make_objective(kernel(problem), phi, phi.mean(1), data)(point)
    auto = AutogradObjective(kernel(problem), phi, phi.mean(1), data)(point)
    torch.testing.assert_close(closed[0], auto[0], rtol=1e-10, atol=0)
    torch.testing.assert_close(closed[1], auto[1], rtol=1e-10, atol=1e-12)


def test_agrees_with_the_exact_marginal_log_likelihood_of_gpytorch() -> None:
    problem = make_problem(0)
    buckets, n = problem.buckets, len(CORESET)
    likelihood = BucketGaussianLikelihood()
    model = BucketGP(
        buckets.inputs[buckets.item_bucket[CORESET]],
        problem.scores[CORESET].unsqueeze(-1),
        covar_module=kernel(problem),
        likelihood=likelihood,
    )
    likelihood.noise = problem.sigma2
    with exact_inference():
        mll = ExactMarginalLogLikelihood(likelihood, model)
        output = model(*model.train_inputs)
        theirs = mll(output, model.train_targets, *model.train_inputs)
    ours, _ = make_objective(
        kernel(problem), buckets.phi, buckets.phi.mean(1), observations(problem)
    )(torch.tensor([problem.alpha, problem.beta], dtype=torch.float64))
    expected = -n * float(theirs.detach()) - 0.5 * n * math.log(2 * math.pi)
    assert float(ours) == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize(
    "other",
    [
        ScaleKernel(MaternKernel(nu=1.5)),
        ScaleKernel(MaternKernel(nu=2.5, ard_num_dims=5)) + LinearKernel(),
    ],
)
def test_gradient_of_any_other_kernel_by_finite_differences(other) -> None:
    problem = make_problem(0)
    phi, data = problem.buckets.phi, observations(problem)
    made = make_objective(other.double(), phi, phi.mean(1), data)
    point = torch.cat([p.detach().reshape(-1) for _, p, _, _ in made.parameters()])
    _, gradient = made(point.clone())
    for i in range(point.shape[0]):
        step = torch.zeros_like(point)
        step[i] = 1e-6
        slope = (made(point + step)[0] - made(point - step)[0]) / 2e-6
        # Central differences have an error of about 1e-9 at this step.
        assert float(gradient[i]) == pytest.approx(float(slope), rel=1e-5, abs=1e-7)


def test_priors_are_part_of_the_objective() -> None:
    problem = make_problem(0)
    phi, data = problem.buckets.phi, observations(problem)
    point = torch.tensor([0.4, 1.7], dtype=torch.float64)
    prior = GammaPrior(2.0, 3.0)
    plain = make_objective(kernel(problem), phi, phi.mean(1), data)(point)[0]
    made = make_objective(kernel(problem, alpha_prior=prior), phi, phi.mean(1), data)(
        point
    )[0]
    log_prior = math.log(3.0**2 * 0.4 * math.exp(-3.0 * 0.4))
    # The prior's own parameters are float32.
    assert float(plain - made) == pytest.approx(log_prior, rel=1e-6)


def test_a_frozen_parameter_is_left_alone() -> None:
    problem = make_problem(0)
    phi, made = problem.buckets.phi, kernel(problem)
    made.raw_beta.requires_grad_(False)
    objective = make_objective(made, phi, phi.mean(1), observations(problem))
    assert [name for name, *_ in objective.parameters()] == ["raw_alpha"]
    fit_kernel(made, objective)
    assert made.beta.item() == problem.beta
    assert made.alpha.item() != problem.alpha


def test_bounds_may_differ_from_entry_to_entry() -> None:
    problem = make_problem(0)
    low = torch.tensor([1e-2, 1e-3, 1e-2, 1e-2, 1e-2])
    ard = MaternKernel(
        nu=1.5,
        ard_num_dims=5,
        lengthscale_constraint=GreaterThan(
            low, transform=None, initial_value=torch.ones(5)
        ),
    ).double()
    phi = problem.buckets.phi
    objective = make_objective(ard, phi, phi.mean(1), observations(problem))
    ((_, _, lower, upper),) = objective.parameters()
    assert lower.tolist() == [[1e-2, 1e-3, 1e-2, 1e-2, 1e-2]]
    assert bool(upper.isinf().all())
    fit_kernel(ard, objective)
    assert bool((ard.lengthscale >= lower).all())
