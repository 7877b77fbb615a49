from __future__ import annotations

import torch
from oracles import Problem, make_problem

from gp_eval.kernels import ReferenceScoreKernel
from gp_eval.linalg.kernel_table import squared_distances
from gp_eval.linalg.lockstep import LockstepPosterior

CLOSE = {"rtol": 1e-10, "atol": 1e-13}


def targets(problem: Problem) -> torch.Tensor:
    generator = torch.Generator().manual_seed(7)
    return torch.rand(3, problem.n_items, generator=generator, dtype=torch.float64)


def make(problem: Problem) -> LockstepPosterior:
    buckets = problem.buckets
    return LockstepPosterior(
        squared_distances(ReferenceScoreKernel().double(), buckets.phi),
        buckets.phi.shape[1],
        buckets.phi.mean(1),
        problem.sigma2 * buckets.counts,
        buckets.counts,
        n_runs=3,
        capacity=problem.n_items,
    )


def check(
    made: LockstepPosterior,
    problem: Problem,
    scores: torch.Tensor,
    coresets: list[list[int]],
    hyperparameters: torch.Tensor,
) -> None:
    for run in range(3):
        problem.scores = scores[run]
        problem.alpha, problem.beta = hyperparameters[run].tolist()
        mean, covariance = problem.posterior(coresets[run])
        part = min(run, made.variance.shape[0] - 1)
        left = problem.buckets.counts - problem.indicator[coresets[run]].sum(0)
        torch.testing.assert_close(made.mean[run], mean, **CLOSE)
        torch.testing.assert_close(made.variance[part], covariance.diagonal(), **CLOSE)
        torch.testing.assert_close(
            made.covariance_with_rest[part], covariance @ left, **CLOSE
        )


def test_shared_covariance_is_kept_once_and_serves_all_runs() -> None:
    problem = make_problem(0)
    made, scores = make(problem), targets(problem)
    coreset = [3, 0, 11, 7]
    for item in coreset:
        made.append(problem.buckets.item_bucket[[item]], scores[:, item])
    assert made.variance.shape[0] == 1
    check(made, problem, scores, [coreset] * 3, torch.ones(3, 2).double())


def test_runs_part_after_hyperparameters_of_their_own() -> None:
    problem = make_problem(0)
    made, scores = make(problem), targets(problem)
    bucket_of, noise = problem.buckets.item_bucket, made.noise
    first = [3, 0, 11, 7]
    for item in first:
        made.append(bucket_of[[item]], scores[:, item])
    hyperparameters = torch.tensor([[0.4, 1.7], [1.0, 0.1], [0.02, 9.0]]).double()
    made.set_hyperparameters(hyperparameters)
    bucket = bucket_of[first].expand(3, -1)
    made.condition(bucket, scores[:, first], noise[bucket])
    check(made, problem, scores, [first] * 3, hyperparameters)
    later = [[1, 2], [5, 13], [2, 9]]
    for step in range(2):
        items = torch.tensor([pair[step] for pair in later])
        made.append(bucket_of[items], scores.gather(1, items.unsqueeze(-1)).squeeze(-1))
    check(made, problem, scores, [first + pair for pair in later], hyperparameters)


def test_shared_conditioning_of_many_targets() -> None:
    problem = make_problem(0)
    made, scores = make(problem), targets(problem)
    coreset = [3, 0, 11, 7]
    bucket = problem.buckets.item_bucket[coreset].unsqueeze(0)
    made.remaining -= problem.indicator[coreset].sum(0)
    made.set_hyperparameters(torch.tensor([[0.4, 1.7]]).double())
    made.condition(bucket, scores[:, coreset], made.noise[bucket])
    same = torch.tensor([[0.4, 1.7]]).double().expand(3, 2)
    check(made, problem, scores, [coreset] * 3, same)
