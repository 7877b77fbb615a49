"""Batched simulators of the baselines against the models themselves."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor

from gp_eval.data import References
from gp_eval.experiments import interpolation, random_sample_rmse
from gp_eval.experiments.batched.aipw import simulate_aipw, simulate_bayesian_aipw
from gp_eval.experiments.batched.anchor_points import simulate_anchor_points
from gp_eval.experiments.batched.random_mean import simulate_random_mean
from gp_eval.experiments.batched.regression import (
    simulate_bayesian_random_sampling_learn,
    simulate_random_sampling_learn,
)
from gp_eval.experiments.curves import Curves
from gp_eval.experiments.simulators import simulate_one_by_one
from gp_eval.models.baselines import (
    AIPW,
    BayesianAIPW,
    BayesianRandomSamplingLearn,
    RandomMean,
    RandomSamplingLearn,
    SequentialAnchorPoints,
)
from gp_eval.models.baselines.sampling import SampleModel

# scikit-learn's iteration multiplies the rounding in which the two paths differ.
PAIRS = [
    (RandomMean, simulate_random_mean, 1e-9),
    (SequentialAnchorPoints, simulate_anchor_points, 1e-9),
    (AIPW, simulate_aipw, 1e-9),
    (BayesianAIPW, simulate_bayesian_aipw, 1e-8),
    (RandomSamplingLearn, simulate_random_sampling_learn, 1e-9),
    (BayesianRandomSamplingLearn, simulate_bayesian_random_sampling_learn, 1e-8),
]
EXACT = PAIRS[:4]
Simulate = Callable[..., Curves]


def table(n_items: int, n_models: int, kind: str, seed: int) -> References:
    generator = torch.Generator().manual_seed(seed)
    scores = torch.rand(n_items, n_models, generator=generator, dtype=torch.float64)
    ease = torch.rand(n_items, 1, generator=generator, dtype=torch.float64)
    if kind == "binary":
        scores = (scores < ease).double()
        scores[1], scores[2], scores[4] = 0.0, 1.0, scores[5]
    if kind == "unbounded":
        scores = 40.0 * ease - 30.0 * scores
    return References(
        scores, [f"q{i}" for i in range(n_items)], [f"m{k}" for k in range(n_models)]
    )


def split(full: References, n_targets: int) -> tuple[References, Tensor]:
    targets = full.scores[:, :n_targets].T.contiguous()
    return full.subset(models=full.models[n_targets:]), targets


def order_of(n_items: int, seed: int) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randperm(n_items, generator=generator)


def assert_same(found: Curves, expected: Curves, tolerance: float) -> None:
    scale = float(expected.mean.abs().max())
    torch.testing.assert_close(
        found.mean, expected.mean, rtol=tolerance, atol=tolerance * 1e-3 * scale
    )
    torch.testing.assert_close(
        found.variance, expected.variance, rtol=tolerance, atol=1e-16 * scale**2
    )


@pytest.mark.parametrize(("model", "simulate", "tolerance"), PAIRS)
@pytest.mark.parametrize("kind", ["continuous", "binary", "unbounded"])
@pytest.mark.parametrize("n_references", [2, 6, 30])
def test_batched_equals_one_by_one(
    model: type[SampleModel],
    simulate: Simulate,
    tolerance: float,
    kind: str,
    n_references: int,
) -> None:
    """Fewer and more references than items, and a target without variance."""
    references, targets = split(table(20, n_references + 3, kind, 5), 3)
    targets = torch.cat([targets, torch.full_like(targets[:1], 0.7)])
    order = order_of(20, 1)
    found = simulate(references, targets, order, n_max=20)
    expected = simulate_one_by_one(model, references, targets, order, n_max=20)
    assert found.mean.shape == found.variance.shape == (4, 20)
    assert_same(found, expected, tolerance)


@pytest.mark.parametrize(("model", "simulate", "tolerance"), PAIRS)
def test_on_real_scores(
    model: type[SampleModel], simulate: Simulate, tolerance: float, shared_data: Path
) -> None:
    """IFEval as in the paper; one target up to 60 items, as single runs are slow."""
    scores = References.read(
        shared_data / "benchpred_ifeval.npz", duplicate_models="number"
    )
    setup = interpolation(scores)
    references, targets = setup.references(0.5, seed=0), setup.target_scores()
    order = order_of(541, 0)
    found = simulate(references, targets, order, n_max=60)
    expected = simulate_one_by_one(model, references, targets[:1], order, n_max=60)
    assert_same(
        Curves(found.mean[:1], found.variance[:1]), expected, max(tolerance, 1e-9)
    )


@pytest.mark.parametrize(("model", "simulate", "tolerance"), PAIRS)
def test_a_shorter_run_is_the_beginning_of_a_longer_one(
    model: type[SampleModel], simulate: Simulate, tolerance: float
) -> None:
    references, targets = split(table(15, 9, "binary", 2), 3)
    order = order_of(15, 4)
    whole = simulate(references, targets, order, n_max=15)
    for n_max in (1, 6, 14):
        part = simulate(references, targets, order, n_max=n_max)
        begin = Curves(whole.mean[:, :n_max], whole.variance[:, :n_max])
        assert_same(part, begin, 1e-12)


@pytest.mark.parametrize(("model", "simulate", "tolerance"), EXACT)
@pytest.mark.parametrize("n_items", [1, 2, 15])
def test_ends_at_the_truth(
    model: type[SampleModel], simulate: Simulate, tolerance: float, n_items: int
) -> None:
    full = table(15, 9, "continuous", 3)
    references, targets = split(full.subset(items=full.items[:n_items]), 3)
    curves = simulate(references, targets, order_of(n_items, 0), n_max=n_items)
    torch.testing.assert_close(curves.mean[:, -1], targets.mean(-1), rtol=1e-14, atol=0)
    assert curves.variance[:, -1].tolist() == [0.0] * 3


@pytest.mark.parametrize(("model", "simulate", "tolerance"), PAIRS)
@pytest.mark.parametrize("kind", ["equal", "zero"])
def test_degenerate_references_equal_one_by_one(
    model: type[SampleModel], simulate: Simulate, tolerance: float, kind: str
) -> None:
    full = table(9, 6, "continuous", 3)
    references, targets = split(full, 2)
    column = torch.linspace(0.1, 0.8, 9, dtype=torch.float64).unsqueeze(-1)
    references.scores = (column if kind == "equal" else 0.0 * column).repeat(1, 4)
    targets = torch.cat([targets, torch.ones(1, 9, dtype=torch.float64)])
    order = order_of(9, 2)
    found = simulate(references, targets, order, n_max=9)
    assert bool(found.mean.isfinite().all() & found.variance.isfinite().all())
    expected = simulate_one_by_one(model, references, targets, order, n_max=9)
    assert_same(found, expected, 1e-8)


@pytest.mark.parametrize(("model", "simulate", "tolerance"), PAIRS)
def test_the_same_errors_as_the_model(
    model: type[SampleModel], simulate: Simulate, tolerance: float
) -> None:
    full = table(5, 4, "continuous", 0)
    targets, order = full.scores.T.contiguous(), torch.arange(5)
    missing = full.scores.clone()
    missing[2, 1] = math.nan
    holes = References(missing, full.items, full.models, missing="keep")
    with pytest.raises(ValueError, match=f"{model.name}: 1 missing cells"):
        simulate(holes, targets, order, n_max=5)
    weights = [0.4, 0.2, 0.2, 0.1, 0.1]
    weighted = References(full.scores, full.items, full.models, item_weights=weights)
    if (model, simulate, tolerance) in EXACT:
        with pytest.raises(ValueError, match=f"{model.name}: item weights"):
            simulate(weighted, targets, order, n_max=5)
    else:
        found = simulate(weighted, targets, order, n_max=5)
        expected = simulate_one_by_one(model, weighted, targets, order, n_max=5)
        assert_same(found, expected, tolerance)
        with pytest.raises(ValueError, match=f"{model.name}: expected at least 2"):
            simulate(full.subset(models=["m0"]), targets, order, n_max=5)


def test_a_penalty_is_passed_on() -> None:
    references, targets = split(table(12, 7, "continuous", 1), 2)
    order = order_of(12, 0)
    found = simulate_aipw(references, targets, order, n_max=12, ridge_alpha=0.2)
    expected = simulate_one_by_one(
        lambda data: AIPW(data, ridge_alpha=0.2), references, targets, order, n_max=12
    )
    assert_same(found, expected, 1e-9)


@pytest.mark.parametrize("kind", ["continuous", "binary", "unbounded"])
@pytest.mark.parametrize("n_references", [2, 6, 30])
def test_a_regression_without_intercept_is_passed_on(
    kind: str, n_references: int
) -> None:
    references, targets = split(table(20, n_references + 3, kind, 5), 3)
    order = order_of(20, 1)
    found = simulate_bayesian_random_sampling_learn(
        references, targets, order, n_max=20, fit_intercept=False
    )
    expected = simulate_one_by_one(
        lambda data: BayesianRandomSamplingLearn(data, fit_intercept=False),
        references,
        targets,
        order,
        n_max=20,
    )
    assert_same(found, expected, 1e-8)


def test_rank_one_updates_hold_over_thousands_of_items() -> None:
    """The inverses of the learner and of AIPW at the end, against single fits."""
    references, targets = split(table(4000, 14, "binary", 1), 2)
    order = order_of(4000, 0)
    for model, simulate in ((AIPW, simulate_aipw), PAIRS[4][:2]):
        curves = simulate(references, targets, order, n_max=3999)
        for n in (2000, 3999):
            single = model(references)
            single.condition(order[:n], targets[1, order[:n]])
            belief = single.performance()
            found = curves.mean[1, n - 1], curves.variance[1, n - 1]
            assert float(found[0]) == pytest.approx(float(belief.mean), rel=1e-9)
            assert float(found[1]) == pytest.approx(float(belief.variance), rel=1e-9)


def test_rs_mean_over_all_orders_has_its_closed_form() -> None:
    """Every order once: the RMSE is exact, and Eq. (9) is the mean square error."""
    references, targets = split(table(6, 4, "continuous", 8), 2)
    curves = [
        simulate_random_mean(references, targets, torch.tensor(order), n_max=6)
        for order in itertools.permutations(range(6))
    ]
    errors = torch.stack([c.mean for c in curves]) - targets.mean(-1, keepdim=True)
    rmse = errors.square().mean(0).sqrt()
    expected = random_sample_rmse(targets)
    torch.testing.assert_close(rmse, expected, rtol=1e-10, atol=1e-15)
    variance = torch.stack([c.variance for c in curves]).mean(0)[:, 1:]
    torch.testing.assert_close(
        variance, expected[:, 1:].square(), rtol=1e-10, atol=1e-15
    )
