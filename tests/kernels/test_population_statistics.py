from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from item_response import KINDS, answers, spread
from scipy.special import expit, logit

from gp_eval.kernels import PopulationStatistics
from gp_eval.kernels import population_statistics as module

CLOSE = {"rtol": 1e-10, "atol": 1e-13}


def rows(kind: str = "binary", n_items: int = 12, n_models: int = 6) -> torch.Tensor:
    return answers(spread(n_models), n_items, kind=kind)


def counts(x: torch.Tensor) -> torch.Tensor:
    return torch.arange(1, x.shape[0] + 1, dtype=torch.float64)


def pooled(x: torch.Tensor, **options) -> PopulationStatistics:
    return PopulationStatistics.from_scores(x, counts(x), **options)


def mean_of(row: np.ndarray) -> float:
    return sum(row) / len(row)


def variance_of(row: np.ndarray) -> float:
    return sum((v - mean_of(row)) ** 2 for v in row) / (len(row) - 1)


def by_items(x: torch.Tensor) -> list[np.ndarray]:
    """Every item of every bucket, one row each."""
    return [
        row for row, n in zip(x.numpy(), counts(x), strict=True) for _ in range(int(n))
    ]


class Literal:
    """The formulas of the class, item by item and without tensors."""

    def __init__(self, x: torch.Tensor) -> None:
        items = by_items(x)
        n, k = len(items), x.shape[1]
        self.mean = sum(mean_of(r) for r in items) / n
        self.variance = sum(variance_of(r) for r in items) / n
        binomial = sum(mean_of(r) * (1 - mean_of(r)) for r in items) / n
        self.binary = all(v in (0.0, 1.0) for r in items for v in r)
        self.dispersion = 1.0 if self.binary else self.variance / binomial
        self.distance = (
            sum(float(((a - b) ** 2).sum()) for a in items for b in items) / n**2
        )
        totals = [(sum(r[j] for r in items) + 0.5) / (n + 1) for j in range(k)]
        ability = np.array([logit(min(max(t, 0.005), 0.995)) for t in totals])
        ability = ability - ability.mean()
        slope = sum((r[j] - mean_of(r)) * ability[j] for r in items for j in range(k))
        information = sum(
            mean_of(r) * (1 - mean_of(r)) * ability[j] ** 2
            for r in items
            for j in range(k)
        )
        self.abilities = ability * slope / information

    def smoothed(self, row: np.ndarray) -> float:
        p = (sum(row) + self.mean) / (len(row) + 1)
        return min(max(p, module._EDGE), 1 - module._EDGE)

    def dispersion_of(self, row: np.ndarray) -> float:
        if self.binary:
            return 1.0
        m, s, degrees = mean_of(row), self.smoothed(row), len(row) - 1
        prior = module._PRIOR_REFERENCES * s * (1 - s)
        return (degrees * variance_of(row) + self.dispersion * prior) / (
            degrees * m * (1 - m) + prior
        )

    def discrimination(self, row: np.ndarray) -> float:
        """Newton's step from slope 0 of the penalised log-likelihood, by differences.

        The intercept stays at the smoothed mean, but residuals are from the row's own.
        """
        phi, s, m = self.dispersion_of(row), self.smoothed(row), mean_of(row)
        prior = 1 / module._DISCRIMINATION_STD**2
        gradient = prior * 1.0
        curvature = prior
        for score, a in zip(row, self.abilities, strict=True):
            gradient += (score - m) * a / phi
            curvature += s * (1 - s) * a * a / phi
        return min(max(gradient / curvature, 0.0), 3.0)


@pytest.mark.parametrize("kind", ["binary", "continuous"])
def test_pooled_numbers_are_sums_over_items(kind: str) -> None:
    x = rows(kind)
    got, want = pooled(x), Literal(x)
    assert got.bounded
    assert got.binary is (kind == "binary")
    for name in ("mean", "variance", "dispersion", "distance"):
        assert getattr(got, name) == pytest.approx(getattr(want, name), rel=1e-10)
    np.testing.assert_allclose(got.abilities.numpy(), want.abilities, rtol=1e-10)
    assert got.n_effects == 3


def test_pooled_numbers_of_unbounded_scores() -> None:
    x = rows("unbounded")
    got, items = pooled(x), by_items(x)
    assert not got.bounded
    assert got.n_effects == 1
    variance = sum(variance_of(r) for r in items) / len(items)
    assert got.variance == pytest.approx(variance, rel=1e-10)
    assert got.abilities.tolist() == [0.0] * 6


@pytest.mark.parametrize("kind", ["binary", "continuous"])
def test_what_is_said_of_an_item_is_the_formula(kind: str) -> None:
    x = rows(kind)
    got, want = pooled(x), Literal(x)
    effects = torch.tensor([0.7, 1.2, -0.3], dtype=torch.float64)
    for i, row in enumerate(x.numpy()):
        one = x[i : i + 1]
        level = logit(want.smoothed(row))
        slope = want.discrimination(row)
        phi = want.dispersion_of(row)
        assert float(got.level(one)) == pytest.approx(level, rel=1e-10, abs=1e-13)
        assert float(got.dispersion_of(one)) == pytest.approx(phi, rel=1e-10)
        assert float(got.discrimination(one)) == pytest.approx(slope, rel=1e-10)
        p = expit(0.7 * slope + 1.2 * level - 0.3)
        assert float(got.mean_at(one, effects)) == pytest.approx(p, rel=1e-10)
        q = min(max(p, module._FLOOR), 1 - module._FLOOR)
        scale = got.scale_at(one, got.mean_at(one, effects))
        assert float(scale) == pytest.approx(math.sqrt(phi * q * (1 - q)), rel=1e-10)
        s = want.smoothed(row)
        working = math.sqrt(phi * s * (1 - s) * (len(row) - 1))
        np.testing.assert_allclose(
            got.standardised(one)[0].numpy(), (row - mean_of(row)) / working, rtol=1e-10
        )


def test_without_a_link_the_effect_is_an_offset_in_standard_deviations() -> None:
    x = rows("unbounded")
    got = pooled(x)
    offset = torch.tensor([0.6], dtype=torch.float64)
    sd = math.sqrt(got.variance)
    for i, row in enumerate(x.numpy()):
        one = x[i : i + 1]
        assert got.features(one).tolist() == [[1.0]]
        level = (mean_of(row) - got.mean) / sd
        assert float(got.level(one)) == pytest.approx(level, rel=1e-10, abs=1e-13)
        mean = mean_of(row) + 0.6 * sd
        assert float(got.mean_at(one, offset)) == pytest.approx(mean, rel=1e-10)
        prior = module._PRIOR_REFERENCES
        variance = (5 * variance_of(row) + prior * got.variance) / (5 + prior)
        scale = got.scale_at(one, got.mean_at(one, offset))
        assert float(scale) == pytest.approx(math.sqrt(variance), rel=1e-10)


@pytest.mark.parametrize("kind", KINDS)
def test_derivatives_are_those_of_autograd(kind: str) -> None:
    x = rows(kind)
    got = pooled(x)
    predictor = torch.linspace(-3, 3, 12, dtype=torch.float64).requires_grad_()
    mean = got.response(x, predictor)
    (slope,) = torch.autograd.grad(mean.sum(), predictor)
    torch.testing.assert_close(got.sensitivity_at(mean), slope, **CLOSE)
    if kind == "unbounded":
        variance = got.scale_at(x, mean).square()
    else:  # without the floor of the variance
        variance = got.dispersion_of(x) * mean * (1 - mean)
    torch.testing.assert_close(got.score_weight(x), slope / variance, **CLOSE)


@pytest.mark.parametrize("kind", KINDS)
def test_the_order_of_items_and_references_does_not_matter(kind: str) -> None:
    x = rows(kind)
    generator = torch.Generator().manual_seed(1)
    items = torch.randperm(x.shape[0], generator=generator)
    models = torch.randperm(x.shape[1], generator=generator)
    there, here = x[items][:, models], pooled(x)
    other = PopulationStatistics.from_scores(there, counts(x)[items])
    torch.testing.assert_close(other.abilities, here.abilities[models], **CLOSE)
    for name in ("level", "features", "dispersion_of"):
        if name == "dispersion_of" and kind == "unbounded":
            continue
        torch.testing.assert_close(
            getattr(other, name)(there), getattr(here, name)(x)[items], **CLOSE
        )
    torch.testing.assert_close(
        other.standardised(there), here.standardised(x)[items][:, models], **CLOSE
    )


@pytest.mark.parametrize("kind", KINDS)
def test_a_row_means_the_same_alone_and_among_others(kind: str) -> None:
    x = rows(kind)
    got = pooled(x)
    stacked = x.view(3, 4, -1)
    for name in ("features", "standardised", "level"):
        torch.testing.assert_close(
            getattr(got, name)(stacked).flatten(0, 1), getattr(got, name)(x), **CLOSE
        )


def test_inner_products_of_standardised_rows_are_sample_covariances() -> None:
    x = rows()
    z = pooled(x).standardised(x)
    p = pooled(x).smoothed_mean(x)
    scale = (p * (1 - p)).sqrt()
    want = np.cov(x.numpy()) / np.outer(scale.numpy(), scale.numpy())
    np.testing.assert_allclose((z @ z.T).numpy(), want, rtol=1e-10, atol=1e-13)


def test_items_that_all_agree_on_are_as_any_other_but_vary_little() -> None:
    x = torch.cat([rows(), torch.zeros(1, 6).double(), torch.ones(1, 6).double()])
    got = pooled(x)
    assert bool(got.features(x).isfinite().all())
    assert got.standardised(x)[-2:].abs().max() == 0.0
    # The slope of a constant item is its prior mean, with what information there is.
    assert bool((got.discrimination(x)[-2:] > 0).all())
    p = got.mean_at(x, torch.tensor([0.0, 1.0, 0.0], dtype=torch.float64))[-2:]
    assert 0.0 < float(p[0]) < 0.5 < float(p[1]) < 1.0
    assert bool((got.scale_at(x, p[0].expand(x.shape[0])) > 0).all())


def test_references_as_good_as_each_other_do_not_tell_discriminations() -> None:
    x = torch.eye(6, dtype=torch.float64)
    got = PopulationStatistics.from_scores(x, torch.ones(6).double())
    torch.testing.assert_close(got.discrimination(x), torch.ones(6).double(), **CLOSE)


def test_two_references_are_enough() -> None:
    got = pooled(torch.tensor([[0.0, 1.0], [0.0, 0.0], [1.0, 1.0]]).double())
    assert got.variance == pytest.approx(0.5 / 6)


@pytest.mark.parametrize("value", [0.0, 1.0, 0.3, 17.0])
def test_references_that_all_agree_are_refused(value: float) -> None:
    with pytest.raises(ValueError, match="references: all agree on every item"):
        pooled(torch.full((4, 3), value, dtype=torch.float64))


def test_a_single_reference_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 2 references, got 1"):
        pooled(torch.rand(4, 1).double())


def test_a_single_bucket_has_a_finite_scale_of_distances() -> None:
    got = pooled(torch.tensor([[0.0, 1.0]]).double())
    assert got.distance == 1.0


def test_distances_keep_their_digits_far_from_zero() -> None:
    x = rows("unbounded")
    # A shift by a power of two that leaves 20 bits of each score: exact.
    x = (x * 2**20).round() / 2**20
    assert pooled(x + 2.0**20).distance == pytest.approx(pooled(x).distance, rel=1e-9)


def test_the_link_can_be_told() -> None:
    x = rows("continuous")
    free = pooled(x, bounded=False)
    assert not free.bounded
    assert free.n_effects == 1
    assert not pooled(rows("binary"), bounded=False).binary
