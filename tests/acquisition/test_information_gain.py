from __future__ import annotations

import itertools

import pytest
import torch
from botorch.acquisition.active_learning import qNegIntegratedPosteriorVariance
from botorch.acquisition.input_constructors import get_acqf_input_constructor
from botorch.acquisition.objective import ExpectationPosteriorTransform
from botorch.models import SingleTaskGP
from botorch.optim.optimize import optimize_acqf_discrete
from oracles import Problem, make_problem

from gp_eval.acquisition import qPerformanceInformationGain
from gp_eval.kernels import ReferenceScoreKernel
from gp_eval.means import ReferenceMean
from gp_eval.models import SequentialBucketModel
from gp_eval.settings import exact_inference

CORESET = [3, 7, 11]


def make(problem: Problem) -> SequentialBucketModel:
    kernel = ReferenceScoreKernel().double()
    kernel.alpha, kernel.beta = problem.alpha, problem.beta
    model = SequentialBucketModel(
        problem.buckets, noise=problem.sigma2, covar_module=kernel
    )
    for item in CORESET:
        model.append(item, problem.scores[item])
    return model


def rest(problem: Problem) -> list[int]:
    return [i for i in range(problem.n_items) if i not in CORESET]


def column(items: list[int]) -> torch.Tensor:
    return torch.tensor(items, dtype=torch.float64).unsqueeze(-1)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("q", [1, 2, 3])
def test_gain_of_every_batch_by_conditioning_all_scores(q: int, weighted: bool) -> None:
    """Eq. (6) for q = 1, Appendix B.1 beyond."""
    problem = make_problem(0, weighted=weighted)
    gain = qPerformanceInformationGain(make(problem))
    batches = list(itertools.combinations(rest(problem), q))[:60]
    X = torch.tensor(batches, dtype=torch.float64).unsqueeze(-1)
    expected = [problem.gain(CORESET, list(b)) for b in batches]
    torch.testing.assert_close(
        gain(X), torch.tensor(expected, dtype=torch.float64), rtol=1e-10, atol=1e-14
    )


def test_equation_6_as_printed(problem: Problem) -> None:
    n = problem.n_items
    _, covariance = problem.posterior(CORESET)
    counts = problem.buckets.counts
    left = counts - problem.indicator[CORESET].sum(0)
    _, variance = problem.performance(CORESET)
    gain = qPerformanceInformationGain(make(problem))
    for item in rest(problem):
        b = int(problem.buckets.item_bucket[item])
        noise = problem.sigma2 * float(counts[b])
        top = (float(left @ covariance[b]) + noise) ** 2
        bottom = n**2 * variance * (float(covariance[b, b]) + noise)
        share = torch.tensor(top / bottom, dtype=torch.float64)
        expected = -0.5 * torch.log1p(-share)
        torch.testing.assert_close(
            gain(column([item]).unsqueeze(0))[0], expected, rtol=1e-10, atol=1e-14
        )


def test_items_of_a_bucket_have_the_same_gain(problem: Problem) -> None:
    gain = qPerformanceInformationGain(make(problem))
    items = [
        i
        for i in rest(problem)
        if problem.buckets.item_bucket[i] == problem.buckets.counts.argmax()
    ]
    values = gain(column(items).unsqueeze(-1))
    assert len(items) > 1
    assert values.unique().shape == (1,)


def test_latent_part_agrees_with_botorch_integrated_variance(problem: Problem) -> None:
    """With the noise of the items left out, BoTorch's own active learning criterion
    on the weighted sum of the abilities must rank and value items the same."""
    problem.sigma2 = 1e-4
    counts = problem.buckets.counts
    model = make(problem)
    weights = model.engine.remaining
    gp = SingleTaskGP(
        problem.buckets.phi[problem.buckets.item_bucket[CORESET]],
        problem.scores[CORESET].unsqueeze(-1),
        train_Yvar=(1e-4 * counts[problem.buckets.item_bucket[CORESET]]).unsqueeze(-1),
        covar_module=model.covar_module,
        mean_module=ReferenceMean(),
        outcome_transform=None,
    )
    phi = problem.buckets.phi
    transform = ExpectationPosteriorTransform(
        n_w=phi.shape[0], weights=weights.unsqueeze(-1)
    )
    noise = (1e-4 * counts[problem.buckets.item_bucket[CORESET]]).mean()
    with torch.no_grad(), exact_inference():
        theirs = qNegIntegratedPosteriorVariance(
            gp, mc_points=phi, posterior_transform=transform
        )(phi.unsqueeze(-2))
    # BoTorch fantasises with the mean training noise.
    _, covariance = problem.posterior(CORESET)
    total = weights @ covariance @ weights
    after = total - (covariance @ weights).square() / (covariance.diagonal() + noise)
    torch.testing.assert_close(
        -theirs.squeeze(), after / weights.sum() ** 2, rtol=1e-8, atol=1e-12
    )


def test_optimize_acqf_discrete_finds_the_best_item(problem: Problem) -> None:
    gain = qPerformanceInformationGain(make(problem))
    item, value = optimize_acqf_discrete(gain, q=1, choices=column(rest(problem)))
    gains = {i: problem.gain(CORESET, [i]) for i in rest(problem)}
    assert gains[int(item)] == pytest.approx(max(gains.values()), rel=1e-10)
    assert float(value) == pytest.approx(max(gains.values()), rel=1e-10)


def test_avoided_points_are_not_chosen(problem: Problem) -> None:
    gain = qPerformanceInformationGain(make(problem))
    everything = column(list(range(problem.n_items)))
    best, _ = optimize_acqf_discrete(gain, q=1, choices=column(rest(problem)))
    item, _ = optimize_acqf_discrete(
        gain, q=1, choices=everything, X_avoid=torch.cat([column(CORESET), best])
    )
    assert int(item) not in [*CORESET, int(best)]


def test_pending_points_enter_the_joint_gain(problem: Problem) -> None:
    pending, item = [1, 8], 5
    gain = qPerformanceInformationGain(make(problem), X_pending=column(pending))
    got = gain(column([item]).unsqueeze(0))
    expected = problem.gain(CORESET, [item, *pending])
    assert float(got) == pytest.approx(expected, rel=1e-10)


def test_the_last_item_has_a_large_finite_gain(problem: Problem) -> None:
    model = make(problem)
    last = rest(problem)[-1]
    for item in rest(problem)[:-1]:
        model.append(item, problem.scores[item])
    value = qPerformanceInformationGain(model)(column([last]).unsqueeze(0))
    assert 15 < float(value) < float("inf")


def test_one_acquisition_follows_its_model(problem: Problem) -> None:
    model = make(problem)
    gain = qPerformanceInformationGain(model)
    gain(column([5]).unsqueeze(0))
    model.append(0, problem.scores[0])
    got = gain(column([5]).unsqueeze(0))
    assert float(got) == pytest.approx(problem.gain([*CORESET, 0], [5]), rel=1e-10)


def test_input_constructor_is_registered(problem: Problem) -> None:
    model = make(problem)
    inputs = get_acqf_input_constructor(qPerformanceInformationGain)(model=model)
    gain = qPerformanceInformationGain(**inputs)
    assert gain.model is model


@pytest.mark.parametrize("weighted", [False, True])
def test_with_nothing_left_to_learn_the_gain_is_zero(weighted: bool) -> None:
    problem = make_problem(0, weighted=weighted)
    model = make(problem)
    for item in rest(problem):
        model.append(item, problem.scores[item])
    gain = qPerformanceInformationGain(model)
    assert gain(column([5]).unsqueeze(0)).tolist() == [0.0]
    assert gain(column([5, 6]).unsqueeze(0)).tolist() == [0.0]
