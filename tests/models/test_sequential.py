from __future__ import annotations

import pytest
import torch
from gpytorch.kernels import MaternKernel, ScaleKernel
from gpytorch.means import ConstantMean
from oracles import Problem, make_problem

from gp_eval.data import Buckets, References
from gp_eval.kernels import ReferenceScoreKernel
from gp_eval.models import BucketGP, SequentialBucketModel
from gp_eval.settings import exact_inference

CLOSE = {"rtol": 1e-10, "atol": 1e-13}
ORDER = [1, 4, 2, 9, 12, 3, 0, 13, 5]


def make(problem: Problem, coreset: list[int] = (), **options) -> SequentialBucketModel:
    if "covar_module" not in options:
        kernel = ReferenceScoreKernel().double()
        kernel.alpha, kernel.beta = problem.alpha, problem.beta
        options["covar_module"] = kernel
    model = SequentialBucketModel(problem.buckets, noise=problem.sigma2, **options)
    for item in coreset:
        model.append(item, problem.scores[item])
    return model


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_equations_2_and_3_against_all_item_scores(seed: int, weighted: bool) -> None:
    problem = make_problem(seed, weighted=weighted)
    model = make(problem)
    for n, item in enumerate(ORDER):
        model.append(item, problem.scores[item])
        mean, variance = problem.performance(ORDER[: n + 1])
        assert float(model.performance_mean()) == pytest.approx(mean, rel=1e-10)
        assert float(model.performance_variance()) == pytest.approx(variance, rel=1e-10)


@pytest.mark.parametrize("weighted", [False, True])
def test_covariance_of_the_benchmark_score_with_items(weighted: bool) -> None:
    problem = make_problem(3, weighted=weighted)
    model = make(problem, ORDER)
    rest, _, covariance = problem.rest(ORDER)
    expected = covariance @ problem.weights[rest]
    items = torch.tensor(rest)
    torch.testing.assert_close(model.performance_covariance(items), expected, **CLOSE)
    share = expected.square() / covariance.diagonal() / problem.performance(ORDER)[1]
    torch.testing.assert_close(model.squared_correlation(items), share, **CLOSE)
    torch.testing.assert_close(model.score_covariance(items), covariance, **CLOSE)


@pytest.mark.parametrize("weighted", [False, True])
def test_all_items_known_means_the_mean_and_no_variance(weighted: bool) -> None:
    problem = make_problem(4, weighted=weighted)
    model = make(problem, list(range(problem.n_items)))
    truth = (problem.buckets.item_weights * problem.scores).sum() / problem.n_items
    for unique in (True, False):
        estimate = model.performance_estimate(unique=unique)
        assert float(estimate) == pytest.approx(float(truth), rel=1e-15)
    assert float(model.performance_variance()) == 0.0


def test_variance_of_the_benchmark_score_never_increases(problem: Problem) -> None:
    model = make(problem)
    last = float(model.performance_variance())
    for item in range(problem.n_items):
        model.append(item, problem.scores[item])
        now = float(model.performance_variance())
        assert 0.0 <= now < last
        last = now


def test_the_order_of_items_does_not_matter(problem: Problem) -> None:
    forward, backward = make(problem, ORDER), make(problem, ORDER[::-1])
    torch.testing.assert_close(forward.engine.mean, backward.engine.mean, **CLOSE)
    torch.testing.assert_close(
        forward.performance_variance(), backward.performance_variance(), **CLOSE
    )


def test_agrees_with_bucket_gp(problem: Problem) -> None:
    buckets = problem.buckets
    gp = BucketGP(
        buckets.inputs[buckets.item_bucket[ORDER]], problem.scores[ORDER].unsqueeze(-1)
    )
    gp.likelihood.noise = problem.sigma2
    gp.covar_module.alpha, gp.covar_module.beta = problem.alpha, problem.beta
    items = torch.arange(problem.n_items).double().unsqueeze(-1)
    model = make(problem, ORDER)
    for noise in (False, True):
        with torch.no_grad(), exact_inference():
            theirs = gp.posterior(
                buckets.inputs[buckets.item_bucket], observation_noise=noise
            )
        ours = model.posterior(items, observation_noise=noise)
        torch.testing.assert_close(ours.mean, theirs.mean, **CLOSE)
        torch.testing.assert_close(ours.variance, theirs.variance, **CLOSE)


def test_posterior_of_batches_of_items(problem: Problem) -> None:
    X = torch.tensor([[[0.0], [7.0]], [[6.0], [6.0]]]).double()
    got = make(problem, ORDER).posterior(X)
    _, covariance = problem.posterior(ORDER)
    for i, pair in enumerate(X.squeeze(-1).long()):
        buckets = problem.buckets.item_bucket[pair]
        torch.testing.assert_close(
            got.distribution.covariance_matrix[i],
            covariance[buckets][:, buckets],
            **CLOSE,
        )


@pytest.mark.parametrize("n", [4, 12])
def test_refresh_takes_new_hyperparameters_in_either_form(
    problem: Problem, n: int
) -> None:
    """Four items are fewer than the seven buckets, twelve are more."""
    coreset = list(range(n))
    model = make(problem, coreset)
    model.covar_module.alpha, model.covar_module.beta = 0.9, 0.3
    model.refresh()
    problem.alpha, problem.beta = 0.9, 0.3
    mean, variance = problem.performance(coreset)
    assert float(model.performance_mean()) == pytest.approx(mean, rel=1e-10)
    assert float(model.performance_variance()) == pytest.approx(variance, rel=1e-10)
    model.append(n, problem.scores[n])
    mean, variance = problem.performance([*coreset, n])
    assert float(model.performance_mean()) == pytest.approx(mean, rel=1e-10)
    assert float(model.performance_variance()) == pytest.approx(variance, rel=1e-10)


def test_any_kernel(problem: Problem) -> None:
    kernel = ScaleKernel(MaternKernel(nu=1.5)).double()
    model = make(problem, ORDER, covar_module=kernel)
    prior = kernel(problem.buckets.phi).to_dense().detach()
    h = problem.indicator
    everything = h @ prior @ h.T + problem.item_noise
    rest = [i for i in range(problem.n_items) if i not in ORDER]
    cross = everything[ORDER][:, rest]
    left = everything[rest][:, rest] - cross.T @ torch.linalg.solve(
        everything[ORDER][:, ORDER], cross
    )
    expected = float(left.sum()) / problem.n_items**2
    assert float(model.performance_variance()) == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("weighted", [False, True])
def test_lookahead_conditions_variances_and_leaves_no_trace(weighted: bool) -> None:
    problem = make_problem(0, weighted=weighted)
    model, known = make(problem, ORDER), make(problem, ORDER)
    before = float(model.performance_variance())
    with model.lookahead() as add:
        for item in (6, 7):
            add(item)
            known.append(item, problem.scores[item])
        torch.testing.assert_close(
            model.performance_variance(), known.performance_variance(), **CLOSE
        )
    assert float(model.performance_variance()) == before
    assert model.evaluated == ORDER
    model.append(8, problem.scores[8])
    expected = problem.performance([*ORDER, 8])
    assert float(model.performance_mean()) == pytest.approx(expected[0], rel=1e-10)
    assert float(model.performance_variance()) == pytest.approx(expected[1], rel=1e-10)


def test_condition_on_observations_gives_a_new_model(problem: Problem) -> None:
    model = make(problem, ORDER)
    X = torch.tensor([[6.0], [7.0]]).double()
    more = model.condition_on_observations(X, problem.scores[[6, 7]].unsqueeze(-1))
    assert model.evaluated == ORDER
    assert more.evaluated == [*ORDER, 6, 7]
    expected = problem.performance([*ORDER, 6, 7])
    assert float(more.performance_mean()) == pytest.approx(expected[0], rel=1e-10)
    expected = problem.performance(ORDER)
    assert float(model.performance_mean()) == pytest.approx(expected[0], rel=1e-10)


def test_errors_name_what_is_wrong(problem: Problem) -> None:
    model = make(problem, ORDER)
    with pytest.raises(ValueError, match="item: 4 is evaluated already"):
        model.append(4, 0.5)
    with pytest.raises(ValueError, match="noise: expected sigma"):
        SequentialBucketModel(problem.buckets, noise=0.0)
    with pytest.raises(ValueError, match=r"idcs: expected \[0\]"):
        model.subset_output([1])
    with pytest.raises(ValueError, match=r"indices 0..13, got \[99.0\]"):
        model.condition_on_observations(torch.tensor([[99.0]]), torch.tensor([[0.5]]))


def test_a_copy_keeps_its_hyperparameters_when_the_original_gets_new_ones(
    problem: Problem,
) -> None:
    model = make(problem, ORDER)
    copy = model.clone()
    model.covar_module.alpha, model.covar_module.beta = 0.9, 0.3
    model.refresh()
    copy.append(6, problem.scores[6])
    expected = problem.performance([*ORDER, 6])
    assert float(copy.performance_mean()) == pytest.approx(expected[0], rel=1e-10)
    assert float(copy.performance_variance()) == pytest.approx(expected[1], rel=1e-10)


def test_zero_weights_are_items_that_do_not_count(problem: Problem) -> None:
    references = problem.references
    weights = torch.ones(problem.n_items, dtype=torch.float64)
    weights[[2, 5]] = 0.0
    problem.references = References(
        references.scores, references.items, references.models, item_weights=weights
    )
    problem.buckets = Buckets.from_references(problem.references)
    model = make(problem, ORDER)
    expected = problem.performance(ORDER)
    assert float(model.performance_mean()) == pytest.approx(expected[0], rel=1e-10)
    assert float(model.performance_variance()) == pytest.approx(expected[1], rel=1e-10)


def test_reference_weights_must_fit_the_table(problem: Problem) -> None:
    kernel = ReferenceScoreKernel(weights=torch.ones(3).double())
    with pytest.raises(ValueError, match=r"one per reference \(5\), got 3"):
        make(problem, covar_module=kernel)


def test_it_refuses_to_leave_its_tables_behind(problem: Problem) -> None:
    with pytest.raises(RuntimeError, match="cannot be moved or cast"):
        make(problem).to(torch.float32)


def test_posterior_refuses_indices_that_are_not_items(problem: Problem) -> None:
    for wrong in (-1.0, 99.0, 0.5):
        with pytest.raises(ValueError, match=r"expected indices 0..13"):
            make(problem).posterior(torch.tensor([[wrong]]).double())


def test_a_mean_with_new_parameters_counts_after_refresh(problem: Problem) -> None:
    mean = ConstantMean().double()
    model = make(problem, mean_module=mean)
    mean.constant = 0.7
    model.refresh()
    assert float(model.performance_mean()) == pytest.approx(0.7)
