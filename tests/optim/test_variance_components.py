from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.optimize import minimize

from gp_eval.errors import NotPositiveDefiniteError
from gp_eval.optim.variance_components import (
    ComponentPrior,
    Components,
    fit_variance_components,
    negative_log,
)

N, M, P = 9, 3, 2


def random(*shape: int, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


def data(seed: int = 0, *, fixed: bool = True, n: int = N, **options) -> Components:
    roots = random(P + 1, n, n, seed=seed)
    matrices = roots @ roots.mT / n
    return Components(
        matrices=matrices[:P],
        fixed=0.1 * matrices[P] if fixed else None,
        residuals=random(n, M, seed=seed + 50),
        **options,
    )


def theta() -> torch.Tensor:
    return torch.tensor([-0.4, 0.3, -1.2], dtype=torch.float64)


def covariance(at: torch.Tensor, part: Components) -> torch.Tensor:
    """The sum, matrix by matrix."""
    size = part.residuals.shape[0]
    total = at[-1].exp() * torch.eye(size, dtype=torch.float64)
    for matrix, log_variance in zip(part.matrices, at[:-1], strict=True):
        total = total + log_variance.exp() * matrix
    return total if part.fixed is None else total + part.fixed


def literal(at: torch.Tensor, part: Components) -> torch.Tensor:
    """Of multivariate normal columns, without the ``log 2 pi`` terms."""
    size, count = part.residuals.shape
    normal = torch.distributions.MultivariateNormal(
        torch.zeros(size, dtype=torch.float64), covariance(at, part)
    )
    constant = 0.5 * size * count * np.log(2 * np.pi)
    return -part.weight * (normal.log_prob(part.residuals.T).sum() + constant)


def prior(total_std: float | None = None) -> ComponentPrior:
    mean = torch.tensor([-1.0, -0.5, -2.0], dtype=torch.float64)
    std = torch.tensor([0.7, 1.3, 0.25], dtype=torch.float64)
    return ComponentPrior(mean, std, total_std)


@pytest.mark.parametrize("fixed", [False, True])
@pytest.mark.parametrize("weight", [1.0, 0.3])
def test_value_and_gradient_are_those_of_normal_densities(
    fixed: bool, weight: float
) -> None:
    part = data(fixed=fixed, weight=weight)
    at = theta().requires_grad_()
    want = literal(at, part)
    (slope,) = torch.autograd.grad(want, at)
    value, gradient = negative_log(theta(), part)
    close = {"rtol": 1e-10, "atol": 1e-12}
    torch.testing.assert_close(value, want.detach(), **close)
    torch.testing.assert_close(gradient, slope, **close)


@pytest.mark.parametrize("total_std", [None, 0.2])
def test_gradients_are_the_slopes_of_values(total_std: float | None) -> None:
    step = 1e-6
    for function in (
        lambda at: negative_log(at, data()),
        prior(total_std).negative_log,
    ):
        _, gradient = function(theta())
        for p in range(P + 1):
            move = torch.zeros(P + 1, dtype=torch.float64)
            move[p] = step
            rise = function(theta() + move)[0] - function(theta() - move)[0]
            # Of central differences with this step nine digits are right.
            slope = float(rise) / (2 * step)
            assert float(gradient[p]) == pytest.approx(slope, rel=1e-6, abs=1e-7)


@pytest.mark.parametrize("total_std", [None, 0.2])
def test_the_prior_is_normal_in_each_and_in_the_sum(total_std: float | None) -> None:
    known = prior(total_std)

    def log_density(at: torch.Tensor) -> torch.Tensor:
        value = torch.distributions.Normal(known.mean, known.std).log_prob(at).sum()
        if total_std is not None:
            centre = known.mean.exp().sum().log()
            total = torch.distributions.Normal(centre, total_std)
            value = value + total.log_prob(at.exp().sum().log())
        return value

    other = torch.zeros(3, dtype=torch.float64)
    want = log_density(other) - log_density(theta())
    got = known.negative_log(theta())[0] - known.negative_log(other)[0]
    torch.testing.assert_close(got, want, rtol=1e-10, atol=0)
    assert float(known.negative_log(known.mean)[0]) == 0.0


@pytest.mark.parametrize("total_std", [None, 0.2])
def test_the_fit_is_where_scipy_finds_the_optimum_without_gradients(
    total_std: float | None,
) -> None:
    parts = [data(0, weight=0.5), data(1, fixed=False)]
    got, fit = fit_variance_components(parts, prior(total_std), start=prior().mean)

    def objective(x: np.ndarray) -> float:
        at = torch.from_numpy(x)
        value = prior(total_std).negative_log(at)[0]
        return float(value + sum(literal(at, part) for part in parts))

    options = {"xatol": 1e-8, "fatol": 1e-10, "maxiter": 5000}
    theirs = minimize(objective, theta(), method="Nelder-Mead", options=options)
    assert fit.converged
    assert objective(got.numpy()) == pytest.approx(theirs.fun, abs=1e-5)
    # It stops at a gradient of 1e-3.
    np.testing.assert_allclose(got.numpy(), theirs.x, atol=5e-3)


def test_plants_are_found_with_enough_data() -> None:
    planted = torch.tensor([0.4, -1.0, -1.5], dtype=torch.float64)
    bare = data(3, fixed=True, n=30)
    root = torch.linalg.cholesky(covariance(planted, bare))
    part = Components(bare.matrices, bare.fixed, root @ random(30, 400, seed=8))
    vague = ComponentPrior(torch.zeros(3).double(), torch.full((3,), 10.0).double())
    got, _ = fit_variance_components([part], vague, start=vague.mean)
    # 12,000 numbers tell a log-variance to about 0.03.
    torch.testing.assert_close(got, planted, rtol=0, atol=0.15)


def test_without_data_the_fit_is_the_prior_mean() -> None:
    for total_std in (None, 0.2):
        known = prior(total_std)
        got, _ = fit_variance_components([], known, start=known.mean)
        torch.testing.assert_close(got, known.mean, rtol=0, atol=0)


def test_the_sum_keeps_the_noise_from_vanishing() -> None:
    """Residuals of 0: without a prior of the sum all variances fall together."""
    bare = data()
    nothing = Components(bare.matrices, None, torch.zeros(N, M).double(), weight=5.0)
    totals = [
        float(
            fit_variance_components([nothing], prior(std), start=prior().mean)[0]
            .exp()
            .sum()
        )
        for std in (None, 0.05)
    ]
    assert totals[0] < 0.5 * totals[1]


def test_two_columns_are_two_parts_of_one_column() -> None:
    part = data()
    columns = [
        Components(part.matrices, part.fixed, part.residuals[:, [c]]) for c in range(M)
    ]
    whole = negative_log(theta(), part)
    single = [negative_log(theta(), column) for column in columns]
    for place in (0, 1):  # value and gradient
        total = sum(result[place] for result in single)
        torch.testing.assert_close(whole[place], total, rtol=1e-10, atol=1e-12)


def test_a_covariance_without_a_factor_is_an_error_of_ours() -> None:
    part = Components(-torch.eye(N).double().expand(1, N, N), None, random(N, 1))
    at = torch.tensor([1.0, 0.0], dtype=torch.float64)
    with pytest.raises(NotPositiveDefiniteError, match="standardised scores"):
        negative_log(at, part)
