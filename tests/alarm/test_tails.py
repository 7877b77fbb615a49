from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy import stats
from torch import Tensor

from gp_eval.alarm.tails import tail_probability


def values(*numbers: float) -> Tensor:
    return torch.tensor(numbers, dtype=torch.float64)


def slow(value: float, others: list[float], noise: float = 0.0) -> float:
    """Rank, times an F tail of the gap over the mean normalised spacing."""
    down = sorted(others, reverse=True)
    k = len(down)
    above = sum(other >= value for other in down)
    if above or k < 2:
        return (1 + above) / (k + 1)
    m = min(k - 1, max(5, math.ceil(k / 4)))
    spacings = [(i + 2) * (down[i] - down[i + 1]) for i in range(m)]
    scale = math.sqrt((sum(spacings) / m) ** 2 + noise**2)
    return float(stats.f.sf((value - down[0]) / scale, 2, 2 * m)) / (k + 1)


@pytest.mark.parametrize("size", [2, 3, 6, 7, 24, 60])
@pytest.mark.parametrize("noise", [0.0, 0.3])
def test_it_is_a_rank_and_beyond_all_an_f_tail(size: int, noise: float) -> None:
    others = np.random.default_rng(size).normal(size=size).tolist()
    for value in [*others[:3], 0.0, max(others) + 1e-3, max(others) + 2.0, 50.0]:
        found = tail_probability(value, values(*others), noise=noise)
        assert found == pytest.approx(slow(value, others, noise), rel=1e-10)


def test_one_other_allows_for_a_rank_only() -> None:
    assert tail_probability(99.0, values(0.0)) == 0.5
    assert tail_probability(0.0, values(0.0)) == 1.0


def test_equal_others_without_noise_allow_for_a_rank_only() -> None:
    assert tail_probability(1.0, values(*[0.5] * 9)) == 0.1
    assert tail_probability(1.0, values(*[0.5] * 9), noise=0.1) < 0.1


def test_scale_and_origin_of_the_values_do_not_matter() -> None:
    others = values(0.1, 0.3, 0.35, 0.4, 0.6, 0.7, 0.72)
    found = tail_probability(0.9, others, noise=0.05)
    moved = tail_probability(97.0, 100 * others + 7.0, noise=5.0)
    assert moved == pytest.approx(found, rel=1e-10)


@pytest.mark.parametrize("level", [0.05, 0.01])
def test_exponential_values_pass_a_level_as_often_as_it_says(level: float) -> None:
    """The tail is exact for them; 40,000 draws, four standard errors."""
    generator = np.random.default_rng(1)
    n_draws, k = 40_000, 9
    draws = torch.from_numpy(generator.exponential(size=(n_draws, k + 1)))
    passed = sum(tail_probability(float(row[0]), row[1:]) <= level for row in draws)
    error = 4 * math.sqrt(level * (1 - level) / n_draws)
    # At 0.05 no rank of 10 values fits, so that the tail decides there as well.
    assert passed / n_draws == pytest.approx(level, abs=error)


@pytest.mark.parametrize("draw", ["normal", "uniform"])
def test_values_with_lighter_tails_pass_less_often(draw: str) -> None:
    generator = np.random.default_rng(2)
    draws = torch.from_numpy(getattr(generator, draw)(size=(20_000, 21)))
    passed = sum(tail_probability(float(row[0]), row[1:]) <= 0.01 for row in draws)
    assert 0 < passed / 20_000 < 0.01
