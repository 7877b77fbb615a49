"""Sums over any items, and each score from the others: what a report reads."""

from __future__ import annotations

import pytest
import torch
from multi_target_oracle import disjoint, make_multi_target_problem, ragged
from oracles import Problem, make_problem

from gp_eval import BayesAME, MultiTargetBayesAME, References
from gp_eval.kernels import ReferenceScoreKernel
from gp_eval.linalg import DenseKernelTable, Observations, leave_one_out
from gp_eval.linalg.leave_one_out import leave_one_out_scores
from gp_eval.models import (
    SequentialBucketModel,
    SupportsItemBelief,
    make_model,
)

CLOSE = {"rtol": 1e-10, "atol": 1e-13}
CORESET = [1, 4, 2, 9, 12, 3, 0, 13]


def table_of(problem: Problem) -> DenseKernelTable:
    kernel = ReferenceScoreKernel().double()
    kernel.alpha, kernel.beta = problem.alpha, problem.beta
    return DenseKernelTable(kernel, problem.buckets.phi)


def model_of(problem: Problem, coreset: list[int]) -> SequentialBucketModel:
    model = SequentialBucketModel(
        problem.buckets, noise=problem.sigma2, covar_module=table_of(problem).kernel
    )
    for item in coreset:
        model.append(item, float(problem.scores[item]))
    return model


def without_each(problem: Problem, coreset: list[int]) -> tuple[list, list]:
    """Predictions by conditioning on all but one, as printed in Eq. (7)."""
    means, variances = [], []
    for item in coreset:
        mean, covariance = problem.posterior([i for i in coreset if i != item])
        b = int(problem.buckets.item_bucket[item])
        means.append(float(mean[b]))
        variances.append(float(covariance[b, b] + problem.item_noise[item, item]))
    return means, variances


def random_sums(m: int, size: int) -> torch.Tensor:
    """Weights of both signs, with zeros."""
    generator = torch.Generator().manual_seed(5)
    weights = torch.randn(m, size, generator=generator, dtype=torch.float64)
    return weights * (weights.abs() > 0.5)


# Each score from all the others


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_each_score_is_predicted_as_by_conditioning_on_the_others(seed: int) -> None:
    problem = make_problem(seed)
    mean, variance = model_of(problem, CORESET).leave_one_out()
    means, variances = without_each(problem, CORESET)
    assert mean.tolist() == pytest.approx(means, rel=1e-10, abs=1e-13)
    assert variance.tolist() == pytest.approx(variances, rel=1e-10)


def test_the_closed_form_by_items_leaves_the_same_residuals(problem: Problem) -> None:
    buckets, noise = problem.buckets, problem.sigma2 * problem.buckets.counts
    bucket, score = buckets.item_bucket[CORESET], problem.scores[CORESET]
    prior = buckets.phi.mean(1)
    mean, _ = leave_one_out_scores(table_of(problem), prior, bucket, score, noise)
    residual, _ = leave_one_out(
        table_of(problem),
        prior,
        Observations.by_item(bucket, score, noise),
        torch.ones(buckets.n_buckets, dtype=torch.float64),
    )
    torch.testing.assert_close(score - mean, residual, **CLOSE)


def test_it_agrees_with_taking_a_score_out_of_the_posterior(problem: Problem) -> None:
    r"""The posterior is the product of the prediction and the score's own density.

    With posterior mean ``m`` and variance ``v`` of the ability and noise ``d``:
    residual :math:`(s - m) d / (d - v)`, variance :math:`d^2 / (d - v)`.
    """
    model = model_of(problem, CORESET)
    bucket, score = problem.buckets.item_bucket[CORESET], problem.scores[CORESET]
    m, v = model.engine.mean[bucket], model.engine.variance[bucket]
    d = model.noise_variance[bucket]
    mean, variance = model.leave_one_out()
    # d - v cancels here, in the code nothing does: hence the looser tolerance.
    torch.testing.assert_close(variance, d.square() / (d - v), rtol=1e-9, atol=0)
    torch.testing.assert_close(
        mean, score - (score - m) * d / (d - v), rtol=1e-9, atol=1e-12
    )


def test_a_single_score_is_predicted_by_the_prior(problem: Problem) -> None:
    mean, variance = model_of(problem, [4]).leave_one_out()
    assert float(mean) == pytest.approx(float(problem.score_mean[4]), rel=1e-12)
    expected = float(problem.score_covariance[4, 4])
    assert float(variance) == pytest.approx(expected, rel=1e-12)


def test_nothing_evaluated_leaves_nothing_out(problem: Problem) -> None:
    mean, variance = model_of(problem, []).leave_one_out()
    assert mean.shape == variance.shape == (0,)


@pytest.mark.parametrize("coreset", [ragged, disjoint])
def test_scores_of_other_targets_predict_as_well(coreset) -> None:
    problem = make_multi_target_problem(n_targets=3)
    pairs = coreset(problem)
    mean, variance = problem.model(pairs).leave_one_out()
    for place, pair in enumerate(pairs):
        kept = [other for other in pairs if other != pair]
        expected, covariance = problem.given(kept)
        at = problem.at(pair)
        assert float(mean[place]) == pytest.approx(float(expected[at]), rel=1e-9)
        assert float(variance[place]) == pytest.approx(
            float(covariance[at, at]), rel=1e-9
        )


# Sums over any items


@pytest.mark.parametrize("coreset", [[], [4], CORESET])
@pytest.mark.parametrize("weighted", [False, True])
def test_sums_against_all_item_scores(coreset: list[int], weighted: bool) -> None:
    problem = make_problem(1, weighted=weighted)
    weights = random_sums(4, problem.n_items)
    mean, variance, joint = model_of(problem, coreset).weighted_sums(weights)
    rest, expected, covariance = problem.rest(coreset)
    for v, m, s2 in zip(weights, mean.tolist(), variance.tolist(), strict=True):
        known = float(v[coreset] @ problem.scores[coreset])
        assert m == pytest.approx(known + float(v[rest] @ expected), rel=1e-10)
        assert s2 == pytest.approx(float(v[rest] @ covariance @ v[rest]), rel=1e-10)
    rows = weights[:, rest]
    torch.testing.assert_close(joint, rows @ covariance @ rows.T, **CLOSE)
    assert torch.equal(joint, joint.T)


@pytest.mark.parametrize("weighted", [False, True])
def test_the_sum_of_all_is_the_benchmark_score(weighted: bool) -> None:
    problem = make_problem(2, weighted=weighted)
    model = model_of(problem, CORESET)
    mean, variance, _ = model.weighted_sums(problem.weights.unsqueeze(0))
    assert float(mean) == pytest.approx(float(model.performance_mean()), rel=1e-12)
    assert float(variance) == pytest.approx(
        float(model.performance_variance()), rel=1e-10
    )


def test_a_sum_of_known_scores_is_known_exactly(problem: Problem) -> None:
    weights = torch.zeros(1, problem.n_items, dtype=torch.float64)
    weights[0, [4, 9]] = 0.5
    mean, variance, _ = model_of(problem, CORESET).weighted_sums(weights)
    assert float(mean) == float(0.5 * problem.scores[4] + 0.5 * problem.scores[9])
    assert float(variance) == 0.0


def test_a_known_sum_has_exactly_no_covariance_with_others(problem: Problem) -> None:
    weights = random_sums(3, problem.n_items)
    weights[1] = 0.0
    weights[1, [4, 9]] = 0.5
    _, variance, joint = model_of(problem, CORESET).weighted_sums(weights)
    assert joint[1].tolist() == joint[:, 1].tolist() == [0.0] * 3
    assert float(variance[0]) > 0.0


@pytest.mark.parametrize("coreset", [ragged, disjoint])
def test_sums_of_each_target_against_all_item_scores(coreset) -> None:
    problem = make_multi_target_problem(n_targets=3)
    pairs = coreset(problem)
    weights = random_sums(4, problem.n_items)
    mean, variance, joint = problem.model(pairs).weighted_sums(weights)
    expected, covariance = problem.given(pairs)
    blocks = covariance.view(3, problem.n_items, 3, problem.n_items)
    for target in range(3):
        own = blocks[target, :, target]
        torch.testing.assert_close(
            mean[target], weights @ expected.view(3, -1)[target], **CLOSE
        )
        torch.testing.assert_close(
            variance[target], (weights @ own * weights).sum(-1), rtol=1e-9, atol=1e-14
        )
    literal = torch.einsum("mi,tiuj,kj->tmuk", weights, blocks, weights)
    torch.testing.assert_close(joint, literal, rtol=1e-9, atol=1e-13)


# Models of the harness


def test_models_that_have_a_joint_belief_say_so(problem: Problem) -> None:
    references = problem.references
    assert isinstance(BayesAME(references), SupportsItemBelief)
    assert isinstance(MultiTargetBayesAME(references, n_targets=2), SupportsItemBelief)
    assert not isinstance(make_model("rs-mean", references), SupportsItemBelief)


def test_a_model_of_several_targets_names_item_and_target(problem: Problem) -> None:
    model = MultiTargetBayesAME(
        problem.references, n_targets=2, initial=0.0, refit_every=None
    )
    told = torch.tensor([[3, 1], [0, 0], [3, 0]])
    model.condition(told, torch.tensor([1.0, 0.0, 1.0], dtype=torch.float64))
    left_out = model.leave_one_out()
    assert left_out.items.tolist() == told.tolist()
    assert bool((left_out.variance > 0.0).all())


def test_a_model_of_one_target_sums_to_its_own_number() -> None:
    references = References(
        torch.rand(12, 4, generator=torch.Generator().manual_seed(1)).double(),
        [f"q{i}" for i in range(12)],
        list("abcd"),
    )
    single = BayesAME(references, refit_every=None)
    items = torch.tensor([5, 2, 7])
    single.condition(items, torch.tensor([0.2, 0.9, 0.4], dtype=torch.float64))
    left_out = single.leave_one_out()
    assert left_out.items.tolist() == items.tolist()
    sums = single.weighted_sums(references.item_weights.unsqueeze(0))
    assert float(sums.mean) == pytest.approx(float(single.performance().mean))
    assert float(sums.variance) == pytest.approx(float(single.performance().variance))
