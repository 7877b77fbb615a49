from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.special import expit

from gp_eval.models.logit.abilities import (
    linear_abilities,
    monte_carlo_abilities,
    probit_abilities,
)

GRID = torch.cartesian_prod(
    torch.tensor([-4.0, -1.5, 0.0, 0.7, 3.0], dtype=torch.float64),
    torch.tensor([0.01, 0.3, 1.0, 4.0, 9.0], dtype=torch.float64),
)
MEAN, VARIANCE = GRID.unbind(-1)
CURVATURE = 1 / (6 * np.sqrt(3))  # the largest |sigma''|


@pytest.fixture(scope="module")
def truth() -> tuple[torch.Tensor, torch.Tensor]:
    """Means of theta and of theta (1 - theta) over a million draws; errors 5e-4."""
    z = np.random.default_rng(0).standard_normal(1_000_000)
    means, slopes = [], []
    for mean, variance in GRID.tolist():
        theta = expit(mean + np.sqrt(variance) * z)
        means.append(theta.mean())
        slopes.append((theta * (1 - theta)).mean())
    return tuple(torch.tensor(x, dtype=torch.float64) for x in (means, slopes))


def test_monte_carlo_is_within_its_own_error(truth) -> None:
    """Five standard errors of 4,000 draws, at most 0.5 / sqrt(4000) each."""
    draws = torch.randn(4000, generator=torch.Generator().manual_seed(1)).double()
    found = monte_carlo_abilities(MEAN, VARIANCE, draws)
    for got, expected in zip((found.mean, found.slope), truth, strict=True):
        assert float((got - expected).abs().max()) < 5 * 0.5 / 4000**0.5
    literal = torch.sigmoid(MEAN[7] + VARIANCE[7].sqrt() * draws)
    assert float(found.mean[7]) == pytest.approx(float(literal.mean()), rel=1e-12)
    spread = (literal * (1 - literal)).mean()
    assert float(found.slope[7]) == pytest.approx(float(spread), rel=1e-12)


def test_monte_carlo_does_not_depend_on_its_blocks() -> None:
    draws = torch.randn(50, generator=torch.Generator().manual_seed(1)).double()
    many = 20_000  # of so many buckets only a few draws fit in a block
    found = monte_carlo_abilities(MEAN[7].expand(many), VARIANCE[7].expand(many), draws)
    few = monte_carlo_abilities(MEAN[7:8], VARIANCE[7:8], draws)
    torch.testing.assert_close(
        found.mean[[0, -1]], few.mean.expand(2), rtol=1e-12, atol=0
    )


def test_probit_divides_by_the_root(truth) -> None:
    """MacKay's is within 0.02 everywhere here; as printed it would be off by 0.15."""
    found = probit_abilities(MEAN, VARIANCE)
    assert float((found.mean - truth[0]).abs().max()) < 0.02
    assert float((found.slope - truth[1]).abs().max()) < 0.02
    root = (1 + np.pi * VARIANCE / 8).sqrt()
    torch.testing.assert_close(
        found.mean, 1 / (1 + torch.exp(-MEAN / root)), rtol=1e-12, atol=0
    )
    printed = torch.sigmoid(MEAN * root)
    assert float((printed - truth[0]).abs().max()) > 0.15


def test_slope_of_probit_is_the_derivative_of_its_mean() -> None:
    step = 1e-6
    up, down = (probit_abilities(MEAN + s, VARIANCE).mean for s in (step, -step))
    expected = (up - down) / (2 * step)
    # Central differences: an error of about 1e-10 in values of 1e-2 and more.
    torch.testing.assert_close(
        probit_abilities(MEAN, VARIANCE).slope, expected, rtol=1e-6, atol=0
    )


@pytest.mark.parametrize("shift", [-1.0, 0.0, 0.4])
def test_the_line_is_as_near_as_its_curvature_allows(truth, shift: float) -> None:
    """|error| <= max|sigma''| / 2 E(f - f_0)^2, plus what a million draws leave."""
    reference = torch.sigmoid(MEAN + shift)
    found = linear_abilities(MEAN, reference)
    bound = CURVATURE / 2 * (VARIANCE + shift**2)
    assert bool(((found.mean - truth[0]).abs() <= bound + 1e-3).all())
    for b in range(len(GRID)):
        t = float(reference[b])
        logit = np.log(t / (1 - t))
        expected = t + t * (1 - t) * (float(MEAN[b]) - logit)
        assert float(found.mean[b]) == pytest.approx(expected, rel=1e-10, abs=1e-12)
        assert float(found.slope[b]) == pytest.approx(t * (1 - t), rel=1e-10)


def test_all_agree_where_nothing_is_uncertain() -> None:
    variance = torch.full_like(MEAN, 1e-12)
    draws = torch.randn(10, generator=torch.Generator().manual_seed(1)).double()
    theta = torch.sigmoid(MEAN)
    for found in (
        linear_abilities(MEAN, theta),
        probit_abilities(MEAN, variance),
        monte_carlo_abilities(MEAN, variance, draws),
    ):
        torch.testing.assert_close(found.mean, theta, rtol=1e-4, atol=0)
        torch.testing.assert_close(found.slope, theta * (1 - theta), rtol=1e-4, atol=0)
