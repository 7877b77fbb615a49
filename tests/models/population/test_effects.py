from __future__ import annotations

import numpy as np
import pytest
import torch
from item_response import answers, spread
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from gp_eval.kernels import PopulationKernel, PopulationStatistics
from gp_eval.models.population.effects import fit_effects

N = 40


def problem(kind: str, *, seed: int = 0) -> tuple[PopulationStatistics, torch.Tensor]:
    x = answers(spread(7), N, kind=kind, seed=seed)
    return PopulationStatistics.from_scores(x, torch.ones(N).double()), x


def target(kind: str, *, ability: float = 0.8) -> torch.Tensor:
    return answers([ability], N, kind=kind, seed=11)[:, 0]


def prior(statistics: PopulationStatistics) -> dict[str, torch.Tensor]:
    kernel = PopulationKernel(statistics)
    return {"mean": kernel.effects_mean.clone(), "std": kernel.effects_std.clone()}


def fitted(kind: str, scores: torch.Tensor) -> torch.Tensor:
    statistics, x = problem(kind)
    return fit_effects(statistics, x, scores, **prior(statistics))


def by_bfgs(kind: str, scores: torch.Tensor) -> np.ndarray:
    """The minimum of the penalised quasi-likelihood, as scipy finds it.

    A success and a failure are added, an ``N``-th of each on every item.
    """
    statistics, x = problem(kind)
    design, phi = statistics.features(x).numpy(), statistics.dispersion_of(x).numpy()
    known = prior(statistics)
    mean, std, s = known["mean"].numpy(), known["std"].numpy(), scores.numpy()

    def loss(theta: np.ndarray) -> tuple[float, np.ndarray]:
        eta = design @ theta
        zero, one, p = np.logaddexp(0.0, eta), np.logaddexp(0.0, -eta), expit(eta)
        value = ((zero - s * eta + zero / N + one / N) / phi).sum()
        slope = design.T @ ((p - s + p / N - (1 - p) / N) / phi)
        z = (theta - mean) / std
        return value + 0.5 * (z * z).sum(), slope + z / std

    return minimize(loss, mean, jac=True, method="BFGS", options={"gtol": 1e-10}).x


@pytest.mark.parametrize("kind", ["binary", "continuous"])
@pytest.mark.parametrize("ability", [-4.0, 0.8, 3.0])
def test_minimises_the_penalised_quasi_likelihood(kind: str, ability: float) -> None:
    scores = target(kind, ability=ability)
    got = fitted(kind, scores).numpy()
    # BFGS stops at gradients of 1e-10 or where the loss has no more digits.
    np.testing.assert_allclose(got, by_bfgs(kind, scores), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("value", [0.0, 1.0])
@pytest.mark.parametrize("kind", ["binary", "continuous"])
@pytest.mark.parametrize("n", [1, 3, N])
def test_all_right_and_all_wrong_converge_to_the_optimum(
    value: float, kind: str, n: int
) -> None:
    statistics, x = problem(kind)
    known = prior(statistics)
    scores = torch.full((n,), value, dtype=torch.float64)
    got = fit_effects(statistics, x[:n], scores, **known)
    design, phi = statistics.features(x[:n]), statistics.dispersion_of(x[:n])
    p = (design @ got).sigmoid()
    residual = (scores - p + (1 - 2 * p) / n) / phi
    slope = design.T @ residual - (got - known["mean"]) / known["std"].square()
    torch.testing.assert_close(slope, torch.zeros(3).double(), rtol=0, atol=1e-7)
    opposite = fit_effects(statistics, x[:n], 1 - scores, **known)
    assert (got[0] > opposite[0]) == (value == 1.0)


def test_agrees_with_logistic_regression_of_scikit_learn() -> None:
    """A ridge towards the prior mean is one towards 0 with an offset in the design.

    Scikit-learn has no offset, so the prior mean is taken as 0 here; features times
    prior deviations make its penalty one for all.
    """
    statistics, x = problem("binary")
    std = torch.tensor([2.0, 0.5, 1.3], dtype=torch.float64)
    scores = target("binary")
    mean = torch.zeros(3, dtype=torch.float64)
    got = fit_effects(statistics, x, scores, mean=mean, std=std)
    design = (statistics.features(x) * std).numpy()
    labels = np.concatenate([scores.numpy(), np.ones(N), np.zeros(N)]).astype(int)
    weight = np.repeat([1.0, 1 / N, 1 / N], N)  # the last two: one of each in all
    theirs = LogisticRegression(C=1.0, fit_intercept=False, tol=1e-12, max_iter=10_000)
    theirs.fit(np.tile(design, (3, 1)), labels, sample_weight=weight)
    np.testing.assert_allclose(got / std, theirs.coef_[0], rtol=1e-6)


def test_fractional_scores_are_mixtures_of_right_and_wrong() -> None:
    """A score of 1/4 weighs as one right and three wrong answers of a quarter each."""
    statistics, x = problem("binary")
    scores = (torch.arange(N) % 5).double() / 4
    got = fit_effects(statistics, x, scores, **prior(statistics))
    design = statistics.features(x)
    known = prior(statistics)
    offset = (design @ known["mean"]).repeat(2)
    twice = torch.cat([design, design])
    labels = torch.cat([torch.ones(N), torch.zeros(N)]).double()
    weight = torch.cat([scores, 1 - scores]) + 1 / N  # and one of each in all

    def loss(flat: np.ndarray) -> float:
        z = torch.from_numpy(flat)
        eta = offset + twice @ (z * known["std"])
        terms = torch.nn.functional.binary_cross_entropy_with_logits(
            eta, labels, weight=weight, reduction="sum"
        )
        return float(terms + 0.5 * z.square().sum())

    found = minimize(loss, np.zeros(3), method="Nelder-Mead", options={"xatol": 1e-7})
    theirs = known["mean"] + torch.from_numpy(found.x) * known["std"]
    # Nelder-Mead cannot see below the square root of rounding.
    torch.testing.assert_close(got, theirs, rtol=1e-4, atol=1e-4)


def test_the_identity_link_has_a_closed_form() -> None:
    statistics, x = problem("unbounded")
    scores, sd = target("unbounded"), statistics.variance**0.5
    known = prior(statistics)
    variance = statistics.scale_at(x, x.mean(-1)).square()
    precision = sd**2 * (1 / variance).sum() + 1 / known["std"][0] ** 2
    weighted = (sd * (scores - x.mean(-1)) / variance).sum()
    got = fit_effects(statistics, x, scores, **known)
    torch.testing.assert_close(got[0], weighted / precision, rtol=1e-10, atol=0)


@pytest.mark.parametrize("kind", ["binary", "continuous"])
def test_scores_beyond_0_and_1_count_as_the_ends(kind: str) -> None:
    scores = target(kind)
    beyond = scores.clone()
    beyond[:6] = torch.tensor([-3.0, 1.5, 100.0, -0.01, 1.01, -7.0])
    torch.testing.assert_close(
        fitted(kind, beyond), fitted(kind, beyond.clamp(0, 1)), rtol=0, atol=0
    )


@pytest.mark.parametrize("seed", range(10))
def test_converges_on_tables_without_any_structure(seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    options = {"generator": generator, "dtype": torch.float64}
    n_items, n_models = 5 + 60 * seed, 2 + seed % 4
    share = torch.rand(n_items, 1, **options).pow(3)
    x = (torch.rand(n_items, n_models, **options) < share).double()
    statistics = PopulationStatistics.from_scores(x, torch.ones(n_items).double())
    for scores in (
        torch.zeros(n_items),
        torch.ones(n_items),
        (x.mean(-1) < 0.5).double(),
        torch.rand(n_items, **options),
    ):
        got = fit_effects(statistics, x, scores.double(), **prior(statistics))
        assert bool(got.isfinite().all())


def test_the_order_of_scores_does_not_matter() -> None:
    statistics, x = problem("continuous")
    scores, order = target("continuous"), torch.arange(N).flip(0)
    torch.testing.assert_close(
        fit_effects(statistics, x[order], scores[order], **prior(statistics)),
        fitted("continuous", scores),
        rtol=1e-10,
        atol=1e-12,
    )


@pytest.mark.parametrize("level", [1e3, 1e8, 1e12])
def test_scores_far_from_zero_have_an_offset_all_the_same(level: float) -> None:
    """Of scores near 1e12 four digits after the point are left."""
    statistics, x = problem("unbounded")
    scores = target("unbounded")
    want = fit_effects(statistics, x, scores, **prior(statistics))
    there = PopulationStatistics.from_scores(x + level, torch.ones(N).double())
    got = fit_effects(there, x + level, scores + level, **prior(there))
    torch.testing.assert_close(got, want, rtol=1e-14 * level + 1e-10, atol=0)


@pytest.mark.parametrize("noise", [1e-3, 1e-5, 1e-7])
@pytest.mark.parametrize("n", [2, 3, 4, N])
def test_references_that_nearly_agree_converge_to_the_optimum(
    noise: float, n: int
) -> None:
    """Such as one model run again: a score weighs so much that effects go far."""
    base = answers([0.0, 1.0], N, kind="continuous")
    x = (base[:, :1] + noise * answers(spread(5), N, kind="unbounded")).clamp(0, 1)
    statistics = PopulationStatistics.from_scores(x, torch.ones(N).double())
    known, scores = prior(statistics), base[:n, 1]
    got = fit_effects(statistics, x[:n], scores, **known)
    design, weight = statistics.features(x[:n]), statistics.score_weight(x[:n])
    p = (design @ got).sigmoid()
    slope = design.T @ (weight * (scores - p + (1 - 2 * p) / n))
    slope = slope - (got - known["mean"]) / known["std"].square()
    # Terms of the sum are as large as the weights.
    scale = float((weight * scores).sum())
    torch.testing.assert_close(
        slope / scale, torch.zeros(3).double(), rtol=0, atol=1e-8
    )


@pytest.mark.parametrize("kind", ["binary", "continuous", "unbounded"])
def test_targets_at_once_have_the_effects_of_each_alone(kind: str) -> None:
    statistics, x = problem(kind)
    scores = torch.stack([target(kind, ability=a) for a in (-4.0, 0.0, 0.8, 5.0)])
    got = fit_effects(statistics, x, scores, **prior(statistics))
    for row, own in zip(got, scores, strict=True):
        torch.testing.assert_close(row, fitted(kind, own), rtol=1e-10, atol=1e-12)
