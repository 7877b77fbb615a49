from __future__ import annotations

import pytest
import torch
from oracles import Problem, make_problem

from gp_eval.errors import NotPositiveDefiniteError
from gp_eval.kernels import ReferenceScoreKernel
from gp_eval.linalg import (
    DenseKernelTable,
    Observations,
    ReferenceKernelTable,
    RowAppendPosterior,
)

TOLERANCE = {"rtol": 1e-10, "atol": 1e-13}


def kernel(problem: Problem) -> ReferenceScoreKernel:
    made = ReferenceScoreKernel().double()
    made.alpha, made.beta = problem.alpha, problem.beta
    return made


def engine(problem: Problem, table: str = "reference") -> RowAppendPosterior:
    buckets = problem.buckets
    kind = ReferenceKernelTable if table == "reference" else DenseKernelTable
    return RowAppendPosterior(
        kind(kernel(problem), buckets.phi), buckets.phi.mean(1), buckets.counts
    )


def append(made: RowAppendPosterior, problem: Problem, item: int) -> None:
    buckets = problem.buckets
    bucket = int(buckets.item_bucket[item])
    noise = problem.sigma2 * float(buckets.counts[bucket])
    made.append(bucket, float(problem.scores[item]), noise, 1.0)


@pytest.mark.parametrize("table", ["reference", "dense"])
def test_appends_are_equation_7_after_every_item(problem: Problem, table: str) -> None:
    made = engine(problem, table)
    coreset: list[int] = []
    for item in [3, 0, 11, 7, 5, 1, 13, 2, 9]:
        append(made, problem, item)
        coreset.append(item)
        mean, covariance = problem.posterior(coreset)
        torch.testing.assert_close(made.mean, mean, **TOLERANCE)
        torch.testing.assert_close(made.variance, covariance.diagonal(), **TOLERANCE)
        left = problem.buckets.counts - problem.indicator[coreset].sum(0)
        torch.testing.assert_close(made.remaining, left, rtol=0, atol=0)
        torch.testing.assert_close(
            made.covariance_with_rest, covariance @ left, **TOLERANCE
        )


@pytest.mark.parametrize("form", [Observations.by_item, Observations.by_bucket])
def test_conditioning_at_once_is_the_same_in_both_forms(
    problem: Problem, form: type[Observations.by_item]
) -> None:
    coreset = [3, 0, 11, 7, 5, 1, 13, 2, 9]
    buckets = problem.buckets
    made = engine(problem)
    made.remaining = buckets.counts - problem.indicator[coreset].sum(0)
    made.condition(
        form(
            buckets.item_bucket[coreset],
            problem.scores[coreset],
            problem.sigma2 * buckets.counts,
        )
    )
    mean, covariance = problem.posterior(coreset)
    torch.testing.assert_close(made.mean, mean, **TOLERANCE)
    torch.testing.assert_close(made.variance, covariance.diagonal(), **TOLERANCE)
    torch.testing.assert_close(
        made.covariance_with_rest, covariance @ made.remaining, **TOLERANCE
    )
    append(made, problem, 4)
    mean, covariance = problem.posterior([*coreset, 4])
    torch.testing.assert_close(made.mean, mean, **TOLERANCE)
    torch.testing.assert_close(made.variance, covariance.diagonal(), **TOLERANCE)


def test_joint_covariance_of_any_shape(problem: Problem) -> None:
    made = engine(problem)
    for item in (2, 8, 4):
        append(made, problem, item)
    _, covariance = problem.posterior([2, 8, 4])
    left, right = torch.tensor([0, 3, 3]), torch.tensor([1, 2])
    torch.testing.assert_close(
        made.covariance(left, right), covariance[left][:, right], **TOLERANCE
    )
    batch = torch.tensor([[0, 1], [2, 2], [6, 3]])
    for i, pair in enumerate(batch):
        torch.testing.assert_close(
            made.covariance(batch, batch)[i], covariance[pair][:, pair], **TOLERANCE
        )


@pytest.mark.parametrize(
    ("alpha", "beta", "rtol"),
    # 1e-10 is for ordinary priors; at condition 4e8 double precision has less.
    [(1.0, 1.0, 1e-9), (0.2, 5.0, 1e-9), (100.0, 1e-5, 1e-6)],
)
def test_stays_exact_after_many_appends(alpha: float, beta: float, rtol: float) -> None:
    """Against one direct Cholesky after 0.8 B appends, in the unique regime."""
    size = 300
    problem = make_problem(1, counts=(1,) * size, n_references=40, sigma2=1e-4)
    problem.alpha, problem.beta = alpha, beta
    order = torch.randperm(size, generator=torch.Generator().manual_seed(2))
    coreset = order[: int(0.8 * size)].tolist()
    made, direct = engine(problem), engine(problem)
    for item in coreset:
        append(made, problem, item)
    table = direct.table.block(torch.arange(size), torch.arange(size))
    gram = table[coreset][:, coreset] + 1e-4 * torch.eye(len(coreset)).double()
    residual = problem.scores[coreset] - problem.score_mean[coreset]
    solved = torch.cholesky_solve(
        torch.cat([residual.unsqueeze(-1), table[coreset]], -1),
        torch.linalg.cholesky(gram),
    )
    mean = problem.score_mean + table[:, coreset] @ solved[:, 0]
    variance = table.diagonal() - (table[coreset] * solved[:, 1:]).sum(0)
    torch.testing.assert_close(made.mean, mean, rtol=rtol, atol=rtol)
    torch.testing.assert_close(made.variance, variance, rtol=rtol, atol=rtol * 1e-2)


def test_variances_never_increase_and_stay_positive(problem: Problem) -> None:
    made = engine(problem)
    before = made.variance.clone()
    for item in range(problem.n_items):
        append(made, problem, item)
        assert bool((made.variance <= before).all())
        assert bool((made.variance > 0).all())
        before = made.variance.clone()
    assert made.remaining.tolist() == [0.0] * problem.buckets.n_buckets


def test_snapshot_and_clone(problem: Problem) -> None:
    made = engine(problem)
    append(made, problem, 3)
    kept, state = made.mean.clone(), made.snapshot()
    twin = made.clone()
    append(made, problem, 5)
    assert not torch.equal(made.mean, kept)
    made.restore(state)
    assert torch.equal(made.mean, kept)
    append(made, problem, 6)
    assert torch.equal(twin.mean, kept)
    append(twin, problem, 6)
    assert torch.equal(twin.mean, made.mean)
    assert torch.equal(twin.covariance_with_rest, made.covariance_with_rest)


def test_singular_covariance_is_an_error_with_its_eigenvalues(problem: Problem) -> None:
    made = engine(problem)
    twice = Observations(
        torch.tensor([1, 1]),
        torch.tensor([0.1, 0.2]).double(),
        torch.zeros(2).double(),
        torch.zeros(()).double(),
    )
    with pytest.raises(NotPositiveDefiniteError, match="eigenvalues from .*n = 2"):
        made.condition(twice)
