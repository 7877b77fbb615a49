from __future__ import annotations

import numpy as np
import pytest
import torch
from bayesian_ridge import dense_bayesian_ridge
from oracles import Problem, make_problem

from gp_eval.models.baselines import AIPW, BayesianAIPW
from gp_eval.models.baselines.aipw import aipw_estimate
from gp_eval.models.baselines.sampling import SampleModel

ITEMS = [3, 17, 8, 0, 11, 6, 14, 19]


def make(n_references: int) -> Problem:
    return make_problem(6, counts=(1,) * 20, n_references=n_references)


def told(model: SampleModel, problem: Problem, n: int) -> SampleModel:
    items = ITEMS[:n]
    model.condition(torch.tensor(items), problem.scores[items])
    return model


def ridge(problem: Problem, items: list[int], alpha: float) -> np.ndarray:
    """Predictions of all items, by normal equations with a free intercept."""
    phi, s = problem.references.scores.numpy(), problem.scores.numpy()
    design = np.column_stack([np.ones(len(phi)), phi])
    penalty = np.diag([0.0] + [alpha] * phi.shape[1])
    x = design[items]
    return design @ np.linalg.solve(x.T @ x + penalty, x.T @ s[items])


def paper(problem: Problem, items: list[int], mu: np.ndarray) -> float:
    """The printed estimator, sum by sum."""
    n, total = len(items), problem.n_items
    rest = [i for i in range(total) if i not in items]
    observed = sum(float(problem.scores[i]) for i in items) / n
    others = sum(mu[i] for i in rest) / (total - n)
    own = sum(mu[i] for i in items) / n
    return observed + 1 / (1 + n / (total - n)) * (others - own)


@pytest.mark.parametrize("n_references", [1, 3, 12])
@pytest.mark.parametrize("n", [2, 5, 8])
@pytest.mark.parametrize("alpha", [10.0, 0.3])
def test_aipw_by_normal_equations(n_references: int, n: int, alpha: float) -> None:
    problem, items = make(n_references), ITEMS[:n]
    mu = ridge(problem, items, alpha)
    belief = told(AIPW(problem.references, ridge_alpha=alpha), problem, n).performance()
    assert float(belief.mean) == pytest.approx(paper(problem, items, mu), rel=1e-10)
    errors = [float(problem.scores[i]) - mu[i] for i in items]
    spread = sum((e - sum(errors) / n) ** 2 for e in errors) / (n - 1)
    expected = spread / n * (1 - n / 20)
    assert float(belief.variance) == pytest.approx(expected, rel=1e-10)


def test_the_penalty_is_10_by_default() -> None:
    problem = make(3)
    default = told(AIPW(problem.references), problem, 8).performance()
    given = told(AIPW(problem.references, ridge_alpha=10.0), problem, 8).performance()
    assert float(default.mean) == float(given.mean)


def test_the_printed_estimator_for_any_predictions() -> None:
    problem = make(3)
    mu = np.random.default_rng(0).normal(size=20)
    found = aipw_estimate(
        problem.scores[ITEMS], torch.from_numpy(mu), torch.tensor(ITEMS)
    )
    assert float(found) == pytest.approx(paper(problem, ITEMS, mu), rel=1e-12)


@pytest.mark.parametrize("factory", [AIPW, BayesianAIPW])
@pytest.mark.parametrize("n", [1, 4, 8])
def test_the_estimate_is_the_plug_in(factory: type[SampleModel], n: int) -> None:
    """The intercept makes the mean residual 0, so the two formulas are one.

    The code of Zhang et al. has the mean prediction of the rest alone, which is
    another number.
    """
    problem, items = make(4), ITEMS[:n]
    belief = told(factory(problem.references), problem, n).performance()
    x, s = problem.references.scores.numpy(), problem.scores.numpy()
    if factory is AIPW:
        mu = ridge(problem, items, 10.0)
    else:
        fit = dense_bayesian_ridge(x[items], s[items])
        mu = s[items].mean() + (x - x[items].mean(0)) @ fit.mean
    assert mu[items].mean() == pytest.approx(s[items].mean(), rel=1e-12)
    rest = [i for i in range(20) if i not in items]
    plug_in = (s[items].sum() + mu[rest].sum()) / 20
    assert float(belief.mean) == pytest.approx(plug_in, rel=1e-10)
    assert n == 1 or abs(plug_in - mu[rest].mean()) > 1e-5


@pytest.mark.parametrize("n_references", [1, 3, 12])
@pytest.mark.parametrize("n", [2, 5, 8])
def test_bayesian_form_by_dense_inverses(n_references: int, n: int) -> None:
    problem, items = make(n_references), ITEMS[:n]
    x, s = problem.references.scores.numpy(), problem.scores.numpy()
    fit = dense_bayesian_ridge(x[items], s[items])
    rest = [i for i in range(20) if i not in items]
    d = x[rest].mean(0) - x[items].mean(0)
    noise = (1 / n + 1 / (20 - n)) / fit.alpha
    variance = (d @ fit.covariance @ d + noise) / (1 + n / (20 - n)) ** 2
    belief = told(BayesianAIPW(problem.references), problem, n).performance()
    mean = paper(problem, items, x @ fit.mean)
    assert float(belief.mean) == pytest.approx(mean, rel=1e-10)
    # The iteration multiplies rounding.
    assert float(belief.variance) == pytest.approx(variance, rel=1e-8)


def test_the_variance_is_that_of_a_flat_prior_on_the_intercept() -> None:
    """Joint posterior of intercept and coefficients, and the noise of the rest."""
    problem, items, n = make(3), ITEMS, len(ITEMS)
    x, s = problem.references.scores.numpy(), problem.scores.numpy()
    fit = dense_bayesian_ridge(x[items], s[items])
    design = np.column_stack([np.ones(20), x])
    prior = np.diag([0.0] + [fit.lambda_] * 3)
    posterior = np.linalg.inv(prior + fit.alpha * design[items].T @ design[items])
    rest = [i for i in range(20) if i not in items]
    mean = design[rest].mean(0)
    variance = mean @ posterior @ mean + 1 / (fit.alpha * len(rest))
    belief = told(BayesianAIPW(problem.references), problem, n).performance()
    expected = variance * (len(rest) / 20) ** 2
    assert float(belief.variance) == pytest.approx(expected, rel=1e-8)


def test_equal_scores_have_next_to_no_variance_as_published() -> None:
    problem = make(4)
    problem.scores = torch.ones_like(problem.scores)
    belief = told(BayesianAIPW(problem.references), problem, 8).performance()
    assert float(belief.mean) == pytest.approx(1.0, rel=1e-14)
    assert 0.0 < float(belief.variance) < 1e-6


@pytest.mark.parametrize("alpha", [0.0, -1.0, float("nan")])
def test_a_penalty_must_be_positive(alpha: float) -> None:
    with pytest.raises(ValueError, match="ridge_alpha: expected a number > 0"):
        AIPW(make(2).references, ridge_alpha=alpha)
