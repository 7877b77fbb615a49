from __future__ import annotations

import pytest
import torch
from botorch.models.model import Model
from botorch.posteriors import Posterior
from gpytorch.kernels import MaternKernel, ScaleKernel
from gpytorch.models import ExactGP
from oracles import Problem

from gp_eval.models import BucketGP
from gp_eval.settings import exact_inference

CORESET = [1, 4, 2, 9, 12, 3]


def make(problem: Problem, coreset: list[int] = CORESET, **options) -> BucketGP:
    buckets = problem.buckets
    model = BucketGP(
        buckets.inputs[buckets.item_bucket[coreset]],
        problem.scores[coreset].unsqueeze(-1),
        **options,
    )
    model.likelihood.noise = problem.sigma2
    if "covar_module" not in options:
        model.covar_module.alpha, model.covar_module.beta = problem.alpha, problem.beta
    return model


def posterior(model: BucketGP, X: torch.Tensor, **options) -> Posterior:
    with torch.no_grad(), exact_inference():
        return model.posterior(X, **options)


def test_is_an_exact_gp_and_a_botorch_model(problem: Problem) -> None:
    model = make(problem)
    assert isinstance(model, ExactGP)
    assert isinstance(model, Model)
    assert model.num_outputs == 1
    assert model.batch_shape == torch.Size()


def test_posterior_is_equation_7(problem: Problem) -> None:
    got = posterior(make(problem), problem.buckets.inputs)
    mean, covariance = problem.posterior(CORESET)
    close = {"rtol": 1e-10, "atol": 1e-12}
    torch.testing.assert_close(got.mean.squeeze(-1), mean, **close)
    torch.testing.assert_close(got.distribution.covariance_matrix, covariance, **close)


def test_observation_noise_is_that_of_each_bucket(problem: Problem) -> None:
    inputs = problem.buckets.inputs
    latent = posterior(make(problem), inputs).variance.squeeze(-1)
    observed = posterior(make(problem), inputs, observation_noise=True)
    torch.testing.assert_close(
        observed.variance.squeeze(-1) - latent,
        problem.sigma2 * problem.buckets.counts,
        rtol=1e-10,
        atol=1e-12,
    )


def test_conditioning_equals_training_on_all(problem: Problem) -> None:
    buckets, more = problem.buckets, [0, 13]
    model = make(problem)
    assert posterior(model, buckets.inputs).mean.shape == (7, 1)
    with torch.no_grad(), exact_inference():
        conditioned = model.condition_on_observations(
            buckets.inputs[buckets.item_bucket[more]],
            problem.scores[more].unsqueeze(-1),
        )
    got = posterior(conditioned, buckets.inputs)
    mean, covariance = problem.posterior(CORESET + more)
    torch.testing.assert_close(got.mean.squeeze(-1), mean, rtol=1e-9, atol=1e-11)
    torch.testing.assert_close(
        got.variance.squeeze(-1), covariance.diagonal(), rtol=1e-9, atol=1e-11
    )


def test_any_kernel_sees_phi_without_the_count(problem: Problem) -> None:
    kernel = ScaleKernel(MaternKernel(nu=1.5, ard_num_dims=5)).double()
    got = posterior(make(problem, covar_module=kernel), problem.buckets.inputs)
    phi = problem.buckets.phi
    prior = kernel(phi).to_dense().detach()
    h = problem.indicator[CORESET]
    gram = h @ prior @ h.T + problem.item_noise[CORESET][:, CORESET]
    residual = problem.scores[CORESET] - h @ phi.mean(1)
    mean = phi.mean(1) + prior @ h.T @ torch.linalg.solve(gram, residual)
    torch.testing.assert_close(got.mean.squeeze(-1), mean, rtol=1e-10, atol=1e-12)


def test_exact_above_the_size_where_gpytorch_turns_iterative() -> None:
    generator = torch.Generator().manual_seed(0)
    phi = torch.rand(850, 6, generator=generator, dtype=torch.float64)
    inputs = torch.cat([phi, torch.ones(850, 1)], -1)
    scores = torch.rand(850, 1, generator=generator, dtype=torch.float64)
    model = BucketGP(inputs[:830], scores[:830])
    model.likelihood.noise = 1e-4
    got = posterior(model, inputs[830:])
    prior = model.covar_module(phi).to_dense().detach()
    gram = prior[:830, :830] + 1e-4 * torch.eye(830)
    gain = torch.linalg.solve(gram, prior[:830, 830:]).T
    mean = phi.mean(1)[830:] + gain @ (scores[:830, 0] - phi[:830].mean(1))
    variance = prior.diagonal()[830:] - (gain * prior[830:, :830]).sum(1)
    # Condition number of the Gram matrix: 1e6, so 1e-10 times that is the floor.
    torch.testing.assert_close(got.mean.squeeze(-1), mean, rtol=1e-7, atol=1e-9)
    torch.testing.assert_close(got.variance.squeeze(-1), variance, rtol=1e-6, atol=1e-9)


def test_state_dict_round_trip(problem: Problem) -> None:
    saved, loaded = make(problem), make(problem)
    loaded.covar_module.alpha = 5.0
    loaded.load_state_dict(saved.state_dict())
    inputs = problem.buckets.inputs
    assert torch.equal(posterior(saved, inputs).mean, posterior(loaded, inputs).mean)


def test_shapes_are_checked(problem: Problem) -> None:
    inputs = problem.buckets.inputs
    with pytest.raises(ValueError, match=r"train_X, train_Y: expected shapes"):
        BucketGP(inputs, torch.zeros(inputs.shape[0]).double())


def test_default_noise_is_exact_in_double_precision(problem: Problem) -> None:
    inputs = problem.buckets.inputs
    model = BucketGP(inputs, torch.zeros(inputs.shape[0], 1).double())
    assert model.likelihood.noise.item() == 0.1
