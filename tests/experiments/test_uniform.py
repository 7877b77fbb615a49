from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from gp_eval.experiments.clusters import Clusters
from gp_eval.experiments.scoring import calibration_error
from gp_eval.experiments.uniform import UniformReference, uniform_reference


def crossed(n_targets: int, n_seeds: int) -> Clusters:
    return Clusters.of(
        [t for _ in range(n_seeds) for t in range(n_targets)],
        [s for s in range(n_seeds) for _ in range(n_targets)],
    )


def inside(pit: Tensor, reference: UniformReference) -> bool:
    """Whether the whole curve F(u) - u is within the band, place by place."""
    for u, low, high in zip(
        reference.grid.tolist(),
        reference.low.tolist(),
        reference.high.tolist(),
        strict=True,
    ):
        gap = float((pit <= u).double().mean()) - u
        if not low - 1e-12 <= gap <= high + 1e-12:
            return False
    return True


def fresh(clusters: Clusters, target: float, seed: float, draw: int) -> Tensor:
    """Uniform values of normal correlations, by a generator of the test's own."""
    generator = torch.Generator().manual_seed(10_000 + draw)

    def normal(labels: Tensor) -> Tensor:
        n = int(labels.max()) + 1
        return torch.randn(n, generator=generator, dtype=torch.float64)[labels]

    z = math.sqrt(target) * normal(clusters.target)
    z += math.sqrt(seed) * normal(clusters.seed)
    z += math.sqrt(1 - target - seed) * normal(clusters.single)
    return torch.special.ndtr(z)


@pytest.mark.parametrize(("target", "seed"), [(0.0, 0.0), (0.3, 0.0), (0.1, 0.5)])
def test_the_band_holds_whole_curves_at_its_level(target: float, seed: float) -> None:
    clusters = crossed(10, 10)
    rho = [6 / math.pi * math.asin(x / 2) for x in (target, seed)]
    reference = uniform_reference(clusters, (rho[0], rho[1]), level=0.9)
    draws = [fresh(clusters, target, seed, i) for i in range(400)]
    share = sum(inside(pit, reference) for pit in draws) / 400
    assert share == pytest.approx(0.9, abs=0.05)  # 1.5 % s.e. here and 1 % in the band
    errors = torch.stack([calibration_error(pit) for pit in draws])
    below = float((errors <= reference.error_limit).double().mean())
    assert below == pytest.approx(0.9, abs=0.05)


def test_runs_that_are_alike_have_a_wider_band() -> None:
    clusters = crossed(10, 10)
    free = uniform_reference(clusters, (0.0, 0.0))
    alike = uniform_reference(clusters, (0.5, 0.0))
    assert bool((alike.high - alike.low > 1.3 * (free.high - free.low)).all())
    assert alike.error_limit > 1.5 * free.error_limit
    # One value a target is all there is: the band of 10 independent runs.
    one = uniform_reference(clusters, (1.0, 0.0))
    ten = uniform_reference(crossed(10, 1), (0.0, 0.0))
    assert one.error_limit == pytest.approx(ten.error_limit, rel=0.1)


def test_a_band_is_reproducible_and_ordered() -> None:
    one, two = (uniform_reference(crossed(5, 4), (0.2, 0.1)) for _ in range(2))
    assert torch.equal(one.low, two.low)
    assert one.error_limit == two.error_limit
    assert bool((one.low < 0).all())
    assert bool((one.high > 0).all())
    other = uniform_reference(crossed(5, 4), (0.2, 0.1), seed=1)
    assert not torch.equal(one.high, other.high)


def test_values_far_from_uniform_leave_the_band() -> None:
    clusters = crossed(10, 10)
    reference = uniform_reference(clusters, (0.1, 0.1))
    narrow = torch.special.ndtr(2.5 * torch.special.ndtri(fresh(clusters, 0, 0, 1)))
    assert not inside(narrow, reference)
    assert float(calibration_error(narrow)) > reference.error_limit


@pytest.mark.parametrize("bad", [(-0.1, 0.0), (0.7, 0.4)])
def test_correlations_must_be_possible(bad: tuple[float, float]) -> None:
    with pytest.raises(ValueError, match="correlations: expected two"):
        uniform_reference(crossed(2, 2), bad)
