from __future__ import annotations

import math
from statistics import NormalDist

import pytest
import torch
from scipy import integrate, stats
from torch import Tensor

from gp_eval.intervals import half_width, probability_below
from gp_eval.models import Performance


def tensor(*values: float) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


def t_density(x: float, dof: float) -> float:
    """The density of Student's t, written out."""
    log = math.lgamma((dof + 1) / 2) - math.lgamma(dof / 2)
    return (
        math.exp(log) / math.sqrt(dof * math.pi) * (1 + x * x / dof) ** (-(dof + 1) / 2)
    )


@pytest.mark.parametrize("dof", [1.0, 3.0, 7.5, 200.0])
@pytest.mark.parametrize("level", [0.5, 0.95])
def test_the_interval_of_students_t_holds_its_level(dof: float, level: float) -> None:
    half = float(half_width(tensor(0.04), tensor(dof), level=level)[0]) / 0.2
    inside, _ = integrate.quad(t_density, -half, half, args=(dof,), epsabs=1e-12)
    assert inside == pytest.approx(level, rel=1e-9)
    expected = stats.t.ppf(0.5 + level / 2, dof)
    assert half == pytest.approx(expected, rel=1e-10)


def test_without_degrees_of_freedom_the_interval_is_normal_to_the_last_bit() -> None:
    variance = tensor(0.0004, 0.3, 0.0)
    belief = Performance(tensor(0.5, 0.5, 0.5), variance)
    expected = 2.0 * NormalDist().inv_cdf(0.975) * variance.sqrt()
    assert torch.equal(belief.width(), expected)
    assert torch.equal(half_width(variance, tensor(math.inf)) * 2, expected)


def test_nothing_is_wide_at_variance_0_whatever_the_degrees_of_freedom() -> None:
    dof = tensor(0.1, 1.0, 30.0, math.inf)
    assert half_width(torch.zeros(4).double(), dof).tolist() == [0.0] * 4


def test_fewer_degrees_of_freedom_are_wider_and_many_are_normal() -> None:
    dof = tensor(0.5, 1.0, 2.0, 4.0, 30.0, 1e3, math.inf)
    widths = half_width(tensor(1.0), dof)
    assert bool((widths.diff() < 0).all())
    assert float(half_width(tensor(1.0), tensor(1e7))) == pytest.approx(
        float(widths[-1]), rel=1e-6
    )


def test_each_target_has_degrees_of_freedom_of_its_own() -> None:
    belief = Performance(
        tensor(0.2, 0.7), tensor(0.01, 0.04), dof=tensor(4.0, math.inf)
    )
    low, high = belief.interval()
    for t, quantile in enumerate((stats.t.ppf(0.975, 4.0), stats.norm.ppf(0.975))):
        half = quantile * (0.1, 0.2)[t]
        assert float(high[t] - belief.mean[t]) == pytest.approx(half, rel=1e-10)
        assert float(belief.mean[t] - low[t]) == pytest.approx(half, rel=1e-10)
    shared = Performance(belief.mean, belief.variance, dof=torch.tensor(4.0).double())
    assert shared.width().shape == (2,)


@pytest.mark.parametrize("dof", [0.7, 5.0, math.inf])
def test_probability_below_agrees_with_the_interval(dof: float) -> None:
    for level in (0.1, 0.5, 0.95, 0.999):
        half = half_width(tensor(1.0), tensor(dof), level=level)
        both = probability_below(torch.cat([half, -half]), tensor(dof))
        assert float(both[0] - both[1]) == pytest.approx(level, rel=1e-10)
    x = torch.linspace(-4, 4, 9, dtype=torch.float64)
    expected = stats.norm.cdf(x) if math.isinf(dof) else stats.t.cdf(x, dof)
    torch.testing.assert_close(
        probability_below(x, tensor(dof)), torch.as_tensor(expected), rtol=1e-10, atol=0
    )
    torch.testing.assert_close(
        probability_below(x), torch.as_tensor(stats.norm.cdf(x)), rtol=1e-10, atol=0
    )


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan])
def test_degrees_of_freedom_must_be_above_0(bad: float) -> None:
    for call in (half_width, probability_below):
        with pytest.raises(ValueError, match="dof: expected values > 0, got"):
            call(tensor(1.0, 1.0), tensor(3.0, bad))


def test_a_level_must_be_a_probability() -> None:
    for level in (0.0, 1.0, 95.0):
        with pytest.raises(ValueError, match="level: expected 0 < level < 1"):
            half_width(tensor(1.0), level=level)


def test_targets_are_compared_by_the_normal_belief_of_the_same_intervals() -> None:
    covariance = torch.tensor([[0.01, 0.004], [0.004, 0.04]], dtype=torch.float64)
    mean = tensor(0.2, 0.7)
    belief = Performance(mean, covariance.diagonal(), covariance, tensor(4.0, 20.0))
    normal = belief.normal_covariance()
    assert normal is not None
    same = Performance(mean, normal.diagonal(), normal)
    torch.testing.assert_close(same.width(), belief.width(), rtol=1e-10, atol=0)

    def correlation(c: Tensor) -> float:
        return float(c[0, 1] / (c[0, 0] * c[1, 1]).sqrt())

    assert correlation(normal) == pytest.approx(correlation(covariance), rel=1e-10)
    assert torch.equal(normal, normal.T)
    assert Performance(mean, mean, covariance).normal_covariance() is covariance
    assert Performance(mean, mean, dof=mean).normal_covariance() is None
