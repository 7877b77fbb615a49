from __future__ import annotations

import math
from itertools import pairwise

import pytest
import torch
from scipy import integrate, stats
from torch import Tensor

from gp_eval.experiments.curves import Curves
from gp_eval.experiments.scoring import calibration_error, interval_score, pit_values


def draws(*shape: int, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator, dtype=torch.float64)


def test_pit_is_the_distribution_function_at_the_truth() -> None:
    mean, scale, truth = draws(3, 4), draws(3, 4, seed=1).exp(), draws(3, seed=2)
    dof = draws(3, 4, seed=3).exp() + 0.5
    dof[1, 2] = math.inf
    student = pit_values(Curves(mean, scale.square(), dof), truth)
    normal = pit_values(Curves(mean, scale.square()), truth)
    forced = pit_values(Curves(mean, scale.square(), dof), truth, normal=True)
    torch.testing.assert_close(forced, normal, rtol=0, atol=0)
    for r in range(3):
        for n in range(4):
            z = float((truth[r] - mean[r, n]) / scale[r, n])
            assert float(normal[r, n]) == pytest.approx(stats.norm.cdf(z), rel=1e-10)
            expected = stats.t.cdf(z, float(dof[r, n]))
            assert float(student[r, n]) == pytest.approx(expected, rel=1e-10)


def test_pit_by_integrating_the_density() -> None:
    curves = Curves(
        torch.tensor([[0.4]]).double(),
        torch.tensor([[0.01]]).double(),
        torch.tensor([[3.0]]).double(),
    )
    density = lambda x: (  # noqa: E731
        2 / (math.pi * math.sqrt(3) * 0.1) / (1 + ((x - 0.4) / 0.1) ** 2 / 3) ** 2
    )
    below, _ = integrate.quad(density, -math.inf, 0.55)
    pit = pit_values(curves, torch.tensor([0.55]).double())
    assert float(pit) == pytest.approx(below, rel=1e-7)  # quad's own accuracy


def test_pit_of_a_belief_without_spread() -> None:
    mean = torch.full((3, 1), 0.5).double()
    truth = torch.tensor([0.4, 0.5 + 1e-16, 0.6]).double()
    curves = Curves(mean, torch.tensor([[0.0], [-1e-20], [0.0]]).double())
    assert pit_values(curves, truth).flatten().tolist() == [0.0, 0.5, 1.0]


def test_pit_is_missing_where_there_is_no_estimate() -> None:
    mean = torch.tensor([[math.nan, 0.5]]).double()
    curves = Curves(mean, mean.square(), torch.full_like(mean, 4.0))
    assert pit_values(curves, torch.tensor([0.5]).double()).isnan().tolist() == [
        [True, False]
    ]


def test_an_estimate_beyond_the_truth_has_a_low_pit() -> None:
    curves = Curves(torch.tensor([[0.9]]).double(), torch.tensor([[0.01]]).double())
    assert float(pit_values(curves, torch.tensor([0.5]).double())) < 0.001


def test_interval_score_is_width_and_penalty_of_each_side() -> None:
    estimate, half = draws(50), draws(50, seed=1).abs()
    truth, alpha = draws(50, seed=2), 0.2
    scores = interval_score(estimate - truth, half, level=0.8)
    for i in range(50):
        low, high = float(estimate[i] - half[i]), float(estimate[i] + half[i])
        x, expected = float(truth[i]), high - low
        if x < low:
            expected += 2 / alpha * (low - x)
        if x > high:
            expected += 2 / alpha * (x - high)
        assert float(scores[i]) == pytest.approx(expected, rel=1e-10)


def test_interval_score_is_least_for_the_true_quantiles() -> None:
    errors = draws(40_000)
    halves = torch.linspace(1.0, 3.0, 41, dtype=torch.float64)
    means = [float(interval_score(errors, h.expand_as(errors)).mean()) for h in halves]
    best = float(halves[means.index(min(means))])
    # The curve is flat at its minimum, where 40,000 draws scatter.
    assert best == pytest.approx(stats.norm.ppf(0.975), abs=0.1)
    assert means[0] > 1.2 * min(means)
    assert means[-1] > 1.2 * min(means)


def area(pit: list[float]) -> float:
    """The integral of |F(u) - u| between the jumps of F, by its corners."""
    corners, total = sorted([0.0, *pit, 1.0]), 0.0
    for a, b in pairwise(corners):
        level = sum(x <= a for x in pit) / len(pit)
        middle = min(max(level, a), b)
        for low, high in ((a, middle), (middle, b)):
            total += (high - low) * abs(level - (low + high) / 2)
    return total


@pytest.mark.parametrize("n_runs", [1, 2, 7, 40])
def test_calibration_error_is_the_area_between_the_distributions(n_runs: int) -> None:
    pit = stats.norm.cdf(draws(n_runs, seed=n_runs) * 1.7)
    got = float(calibration_error(torch.as_tensor(pit)))
    assert got == pytest.approx(area(pit.tolist()), rel=1e-10)
    # Independently: the Wasserstein distance from a fine grid of uniform values.
    grid = (torch.arange(20_000) + 0.5) / 20_000
    assert got == pytest.approx(stats.wasserstein_distance(pit, grid), abs=1e-4)


@pytest.mark.parametrize(
    ("pit", "expected"),
    [([0.5] * 8, 0.25), ([0.0, 1.0] * 4, 0.25), ([0.0] * 3, 0.5), ([1.0] * 3, 0.5)],
)
def test_calibration_error_of_extremes(pit: list[float], expected: float) -> None:
    assert float(calibration_error(torch.tensor(pit).double())) == expected


def test_calibration_error_of_evenly_spread_values_is_the_least() -> None:
    pit = (torch.arange(50, dtype=torch.float64) + 0.5) / 50
    assert float(calibration_error(pit)) == pytest.approx(1 / 200, rel=1e-10)
    stacked = torch.stack([pit, pit.square()])
    assert calibration_error(stacked).shape == (2,)
    assert float(calibration_error(stacked)[1]) > 0.1
    shuffled = pit[torch.randperm(50, generator=torch.Generator().manual_seed(0))]
    assert float(calibration_error(shuffled)) == float(calibration_error(pit))
