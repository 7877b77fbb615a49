from __future__ import annotations

import itertools

import pytest
import torch
from oracles import Problem, make_problem

from gp_eval.estimators import (
    bayes_estimate,
    control_variate_estimate,
    out_of_sample_estimate,
    performance_estimate,
    posterior_mse,
)
from gp_eval.kernels import ReferenceScoreKernel
from gp_eval.linalg import DenseKernelTable, Observations

CORESET = [1, 4, 2, 9]


def pieces(
    problem: Problem, coreset: list[int]
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Observed sum, abilities, T and u, straight from the definitions."""
    w = problem.weights * problem.n_items
    h = problem.indicator
    unseen = torch.ones(problem.n_items, dtype=torch.float64)
    unseen[coreset] = 0
    mean, _ = problem.posterior(coreset)
    return (w * problem.scores)[coreset].sum(), mean, h.T @ w, h.T @ (w * unseen)


@pytest.mark.parametrize("weighted", [False, True])
def test_equation_3_is_the_item_level_posterior_mean(weighted: bool) -> None:
    problem = make_problem(0, weighted=weighted)
    observed, abilities, _, remaining = pieces(problem, CORESET)
    got = bayes_estimate(observed, abilities, remaining, problem.n_items)
    expected, _ = problem.performance(CORESET)
    assert float(got) == pytest.approx(expected, rel=1e-10)


def test_equation_4_at_the_level_of_items(problem: Problem) -> None:
    """As rewritten in Appendix A.2."""
    observed, abilities, totals, remaining = pieces(problem, CORESET)
    mu = abilities[problem.buckets.item_bucket]
    expected = sum(float(problem.scores[i] - mu[i]) for i in CORESET) / len(CORESET)
    expected += sum(float(m) for m in mu) / problem.n_items
    got = control_variate_estimate(observed, abilities, totals, remaining, n=4)
    assert float(got) == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("weighted", [False, True])
def test_equation_5_unifies_both(weighted: bool) -> None:
    problem = make_problem(0, weighted=weighted)
    observed, abilities, totals, remaining = pieces(problem, CORESET)
    unified = [
        performance_estimate(observed, abilities, totals, remaining, scale=scale)
        for scale in (1 / problem.n_items, 1 / len(CORESET))
    ]
    bayes = bayes_estimate(observed, abilities, remaining, problem.n_items)
    variate = control_variate_estimate(observed, abilities, totals, remaining, n=4)
    assert float(unified[0]) == pytest.approx(float(bayes), rel=1e-12)
    assert float(unified[1]) == pytest.approx(float(variate), rel=1e-12)


@pytest.mark.parametrize("weighted", [False, True])
def test_every_estimate_is_the_truth_when_all_items_are_known(weighted: bool) -> None:
    problem = make_problem(0, weighted=weighted)
    everything = list(range(problem.n_items))
    observed, abilities, totals, remaining = pieces(problem, everything)
    truth = float(problem.weights @ problem.scores)
    n = problem.n_items
    assert float(bayes_estimate(observed, abilities, remaining, n)) == pytest.approx(
        truth, rel=1e-14
    )
    assert float(
        control_variate_estimate(observed, abilities, totals, remaining, n=n)
    ) == pytest.approx(truth, rel=1e-14)


def out_of_sample(problem: Problem, coreset: list[int]) -> float:
    kernel = ReferenceScoreKernel().double()
    kernel.alpha, kernel.beta = problem.alpha, problem.beta
    buckets = problem.buckets
    return float(
        out_of_sample_estimate(
            DenseKernelTable(kernel, buckets.phi),
            buckets.phi.mean(1),
            Observations.by_item(
                buckets.item_bucket[coreset],
                problem.scores[coreset],
                problem.sigma2 * buckets.counts,
            ),
            buckets.item_weights[coreset],
            problem.indicator.T @ buckets.item_weights,
        )
    )


def test_out_of_sample_estimate_is_the_formula_of_appendix_a2(problem: Problem) -> None:
    expected = 0.0
    for item in CORESET:
        mean, _ = problem.posterior([i for i in CORESET if i != item])
        mu = mean[problem.buckets.item_bucket]
        expected += float(problem.scores[item] - mu[item] + mu.mean()) / len(CORESET)
    assert out_of_sample(problem, CORESET) == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("weighted", [False, True])
def test_out_of_sample_estimate_is_unbiased_over_random_coresets(
    weighted: bool,
) -> None:
    """The exact expectation: all 6^3 ordered draws with replacement."""
    problem = make_problem(2, counts=(1, 3, 2), n_references=3, weighted=weighted)
    draws = itertools.product(range(6), repeat=3)
    estimates = [out_of_sample(problem, list(draw)) for draw in draws]
    truth = float(problem.weights @ problem.scores)
    assert sum(estimates) / len(estimates) == pytest.approx(truth, rel=1e-10)
    assert max(estimates) - min(estimates) > 0.05


def test_in_sample_proxy_is_not_unbiased() -> None:
    """So the test above can fail: the same expectation of Eq. (4) is off."""
    problem = make_problem(2, counts=(1, 3, 2), n_references=3)
    estimates = []
    for draw in itertools.product(range(6), repeat=3):
        rows = list(draw)
        h = problem.indicator[rows]
        sigma, mean = problem.ability_covariance, problem.buckets.phi.mean(1)
        noise = torch.diag(problem.item_noise.diagonal()[rows])
        solved = torch.linalg.solve(
            h @ sigma @ h.T + noise, problem.scores[rows] - h @ mean
        )
        mu = (mean + sigma @ h.T @ solved)[problem.buckets.item_bucket]
        estimates.append(float((problem.scores[rows] - mu[rows]).mean() + mu.mean()))
    truth = float(problem.weights @ problem.scores)
    assert abs(sum(estimates) / len(estimates) - truth) > 1e-4


def test_posterior_mse_adds_the_squared_distance_to_the_posterior_mean() -> None:
    variance, bayes, reported = torch.tensor([0.04, 0.5, 0.6]).double()
    assert float(posterior_mse(variance, bayes, reported)) == pytest.approx(0.05)


def test_control_variate_without_a_sample_is_an_error(problem: Problem) -> None:
    observed, abilities, totals, remaining = pieces(problem, [1])
    with pytest.raises(ValueError, match="n: expected at least 1"):
        control_variate_estimate(observed, abilities, totals, remaining, n=0)
