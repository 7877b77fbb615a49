from __future__ import annotations

import numpy as np
import pytest
import torch
from bayesian_ridge import dense_bayesian_ridge
from oracles import Problem, make_problem

from gp_eval.models.baselines import BayesianRandomSamplingLearn, RandomSamplingLearn
from gp_eval.models.baselines.sampling import SampleModel

ITEMS = [3, 17, 8, 0, 11, 6, 14, 19]


def make(n_references: int, *, weighted: bool = False) -> Problem:
    return make_problem(
        7, counts=(1,) * 20, n_references=n_references, weighted=weighted
    )


def samples(problem: Problem, n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Features and benchmark scores of the references, features of the target."""
    scores = problem.references.scores.numpy()
    features = scores.T[:, ITEMS[:n]]
    outcome = np.array([problem.weights.numpy() @ column for column in scores.T])
    return features, outcome, problem.scores.numpy()[ITEMS[:n]]


def told(model: SampleModel, problem: Problem, n: int) -> SampleModel:
    items = ITEMS[:n]
    model.condition(torch.tensor(items), problem.scores[items])
    return model


def ridge(x: np.ndarray, y: np.ndarray, new: np.ndarray, alpha: float) -> float:
    design = np.column_stack([np.ones(len(x)), x])
    penalty = np.diag([0.0] + [alpha] * x.shape[1])
    beta = np.linalg.solve(design.T @ design + penalty, design.T @ y)
    return float(beta @ np.concatenate([[1.0], new]))


@pytest.mark.parametrize("n_references", [2, 5, 12])
@pytest.mark.parametrize("n", [1, 4, 8])
@pytest.mark.parametrize("weighted", [False, True])
def test_rs_learn_by_leaving_out_one_by_one(
    n_references: int, n: int, weighted: bool
) -> None:
    problem = make(n_references, weighted=weighted)
    x, y, new = samples(problem, n)
    losses = {}
    for alpha in (0.1, 1.0, 10.0):
        errors = [
            y[k] - ridge(np.delete(x, k, 0), np.delete(y, k), x[k], alpha)
            for k in range(n_references)
        ]
        losses[alpha] = float(np.mean(np.square(errors)))
    # Two references have the same error for every penalty; the first one is taken.
    best = min(losses, key=losses.__getitem__) if n_references > 2 else 0.1
    if n_references == 2:
        assert losses[10.0] == pytest.approx(losses[0.1], rel=1e-12)
    belief = told(RandomSamplingLearn(problem.references), problem, n).performance()
    assert float(belief.mean) == pytest.approx(ridge(x, y, new, best), rel=1e-10)
    assert float(belief.variance) == pytest.approx(losses[best], rel=1e-9)


@pytest.mark.parametrize("n_references", [2, 5, 12])
@pytest.mark.parametrize("n", [1, 4, 8])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("intercept", [True, False])
def test_bayesian_form_by_dense_inverses(
    n_references: int, n: int, weighted: bool, intercept: bool
) -> None:
    problem = make(n_references, weighted=weighted)
    x, y, new = samples(problem, n)
    fit = dense_bayesian_ridge(x, y, intercept=intercept)
    offset, level = (new - x.mean(0), y.mean()) if intercept else (new, 0.0)
    model = BayesianRandomSamplingLearn(problem.references, fit_intercept=intercept)
    belief = told(model, problem, n).performance()
    mean = level + offset @ fit.mean
    variance = offset @ fit.covariance @ offset + 1 / fit.alpha
    # The iteration multiplies rounding.
    assert float(belief.mean) == pytest.approx(mean, rel=1e-8)
    assert float(belief.variance) == pytest.approx(variance, rel=1e-8)


def test_an_intercept_is_the_default() -> None:
    problem = make(5)
    default = BayesianRandomSamplingLearn(problem.references)
    given = BayesianRandomSamplingLearn(problem.references, fit_intercept=True)
    other = BayesianRandomSamplingLearn(problem.references, fit_intercept=False)
    means = [float(told(m, problem, 4).performance().mean) for m in (default, given)]
    assert means[0] == means[1] != float(told(other, problem, 4).performance().mean)


@pytest.mark.parametrize("factory", [RandomSamplingLearn, BayesianRandomSamplingLearn])
def test_it_does_not_end_at_the_truth_as_published(
    factory: type[SampleModel],
) -> None:
    problem = make(5)
    model = factory(problem.references)
    model.condition(torch.arange(20), problem.scores)
    belief = model.performance()
    assert abs(float(belief.mean - problem.scores.mean())) > 1e-3
    assert float(belief.variance) > 1e-8
