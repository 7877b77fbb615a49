from __future__ import annotations

import pytest
import torch
from item_response import KINDS, answers, benchmark, named, spread

from gp_eval.data import Buckets
from gp_eval.kernels import PopulationStatistics
from gp_eval.models.population import (
    Population,
    fit_population_prior,
    population,
    prior,
)
from gp_eval.optim.variance_components import fit_variance_components


def buckets_of(table: torch.Tensor) -> Buckets:
    return Buckets.from_references(named(table))


def table(kind: str = "binary", n_models: int = 9) -> torch.Tensor:
    return answers(spread(n_models), 50, kind=kind)


def same(one: prior.PopulationPrior, two: prior.PopulationPrior) -> bool:
    return all(
        torch.equal(getattr(one, name), getattr(two, name))
        for name in ("log_variances", "effects_mean", "effects_std")
    )


@pytest.mark.parametrize("kind", KINDS)
def test_is_a_function_of_the_references_and_the_seed(kind: str) -> None:
    before = torch.random.get_rng_state()
    one = fit_population_prior(buckets_of(table(kind)))
    assert torch.equal(torch.random.get_rng_state(), before)
    torch.manual_seed(17)
    assert same(fit_population_prior(buckets_of(table(kind))), one)
    assert same(fit_population_prior(buckets_of(table(kind)), seed=0), one)
    assert not same(fit_population_prior(buckets_of(table(kind)), seed=1), one)


@pytest.mark.parametrize("n_items", [50, 400])
@pytest.mark.parametrize("kind", KINDS)
def test_the_order_of_items_and_references_does_not_matter(
    kind: str, n_items: int
) -> None:
    """With more items than are used as well: what is drawn is drawn by rank."""
    assert 50 < prior._ITEMS < 400
    x = answers(spread(9), n_items, kind=kind)
    generator = torch.Generator().manual_seed(3)
    items, models = (torch.randperm(n, generator=generator) for n in x.shape)
    here = fit_population_prior(buckets_of(x))
    for other in (x[items], x[:, models], x[items][:, models]):
        there = fit_population_prior(buckets_of(other))
        # L-BFGS-B stops at gradients of 1e-3, by another rounding a little elsewhere.
        torch.testing.assert_close(
            there.log_variances, here.log_variances, rtol=0, atol=1e-3
        )
        torch.testing.assert_close(
            there.effects_mean, here.effects_mean, rtol=1e-8, atol=0
        )


@pytest.mark.parametrize("kind", KINDS)
def test_two_references_leave_the_prior_as_it_is(kind: str) -> None:
    """None can play the target: a population needs two."""
    made = fit_population_prior(buckets_of(table(kind, 2)))
    assert torch.equal(made.log_variances, prior._HYPERPRIOR.mean)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n_models", [3, 4, 5, 9, 30])
def test_more_references_move_it_within_bounds(kind: str, n_models: int) -> None:
    made = fit_population_prior(buckets_of(table(kind, n_models)))
    assert not torch.equal(made.log_variances, prior._HYPERPRIOR.mean)
    assert bool(made.log_variances.isfinite().all())
    assert bool((made.effects_std > 0).all())
    assert made.effects_mean.shape == ((1,) if kind == "unbounded" else (3,))


@pytest.mark.parametrize("n_models", [3, 4, 5, 8, 13, 40, 200])
def test_folds_leave_two_references_that_differ(n_models: int) -> None:
    generator = torch.Generator().manual_seed(0)
    buckets = buckets_of(table("binary", n_models))
    ranked = prior._ranked_references(buckets)
    folds = list(prior._folds(buckets, ranked, generator))
    assert len(folds) == 3
    for fold in folds:
        assert 1 <= len(fold) <= n_models - 2
        assert len(set(fold.tolist())) == len(fold)
    assert not set(folds[0].tolist()) & set(folds[1].tolist())
    means = table("binary", n_models).mean(0)
    strongest = folds[2]
    others = [k for k in range(n_models) if k not in strongest]
    assert float(means[strongest].min()) >= float(means[others].max())


def test_residuals_are_those_of_effects_fitted_to_all_scores() -> None:
    """The data of a fold, pseudo-target by pseudo-target."""
    x = table()
    buckets = buckets_of(x)
    fold = torch.tensor([2, 5])
    part, slopes = prior._pseudo_targets(
        buckets, fold, buckets.item_bucket, bounded=True
    )
    others = [k for k in range(9) if k not in (2, 5)]
    rest = buckets.phi[:, others]
    statistics = PopulationStatistics.from_scores(rest, buckets.counts)
    at = statistics.features(x[:, others])
    for column, k in enumerate((2, 5)):
        theta = free_effects(statistics, x[:, others], x[:, k])
        assert slopes[column] == pytest.approx(float(theta[1]), rel=1e-8)
        mean = (at @ theta).sigmoid()
        scale = statistics.scale_at(x[:, others], mean)
        want = ((x[:, k] - mean) / scale).sort().values
        # Items are drawn in some order: compare them sorted.
        got = part.residuals[:, column].sort().values
        torch.testing.assert_close(got, want, rtol=1e-7, atol=1e-9)
    assert part.weight == 0.5


def free_effects(
    statistics: PopulationStatistics, x: torch.Tensor, scores: torch.Tensor
) -> torch.Tensor:
    """By Newton's method on autograd's derivatives.

    A success and a failure are added, spread over the items.
    """
    features, phi = statistics.features(x), statistics.dispersion_of(x)
    scores, phi = (scores + 1 / len(x)) / (1 + 2 / len(x)), phi / (1 + 2 / len(x))
    mean = torch.tensor([0.0, 1.0, 0.0], dtype=torch.float64)
    std = torch.tensor([3.0, prior._FREE, 1.0], dtype=torch.float64)

    def loss(theta: torch.Tensor) -> torch.Tensor:
        eta = features @ theta
        terms = (torch.nn.functional.softplus(eta) - scores * eta) / phi
        return terms.sum() + 0.5 * ((theta - mean) / std).square().sum()

    theta = mean.clone()
    for _ in range(50):
        slope = torch.autograd.functional.jacobian(loss, theta)
        curvature = torch.autograd.functional.hessian(loss, theta)
        theta = theta - 0.5 * torch.linalg.solve(curvature, slope)
    return theta


def test_the_fit_is_one_over_all_folds(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple] = []

    def spy(data, known, *, start):
        calls.append((list(data), known))
        return fit_variance_components(data, known, start=start)

    monkeypatch.setattr(prior, "fit_variance_components", spy)
    fit_population_prior(buckets_of(table()))
    assert len(calls) == 1
    assert len(calls[0][0]) == 3
    assert calls[0][1] is prior._HYPERPRIOR


def test_slopes_are_shrunk_towards_1() -> None:
    n = prior._SLOPES
    mean, std = prior._slope_prior([0.4, 0.6])
    assert mean == pytest.approx((1.0 + n) / (2 + n))
    spread_ = (0.4 - mean) ** 2 + (0.6 - mean) ** 2 + n * 0.25
    assert std == pytest.approx(max(0.3, (spread_ / (2 + n)) ** 0.5))


def test_a_population_is_fitted_once_for_all_targets(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(population, "_PRIORS", {})
    calls: list[int] = []

    def spy(buckets: Buckets) -> prior.PopulationPrior:
        calls.append(buckets.n_items)
        return fit_population_prior(buckets)

    monkeypatch.setattr(population, "fit_population_prior", spy)
    references, scores = benchmark()
    first = Population(references)
    first.condition(torch.arange(20), scores[:20])
    second = Population(references)
    assert calls == [30]
    assert second.updates == {0: first.updates[0]}
    Population(references, tolerance=0.5)
    Population(named(references.scores.flip(0)))
    assert len(calls) == 3
    monkeypatch.setattr(population, "_REMEMBERED", 1)
    Population(references.subset(models=references.models[:5]))
    assert len(population._PRIORS) == 1
