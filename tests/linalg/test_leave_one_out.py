from __future__ import annotations

import torch
from oracles import Problem

from gp_eval.kernels import ReferenceScoreKernel
from gp_eval.linalg import DenseKernelTable, Observations, leave_one_out


def test_equals_conditioning_without_each_item(problem: Problem) -> None:
    coreset = [1, 4, 2, 9, 12, 3]
    kernel = ReferenceScoreKernel().double()
    kernel.alpha, kernel.beta = problem.alpha, problem.beta
    buckets = problem.buckets
    weights = torch.rand(buckets.n_buckets, dtype=torch.float64)
    residual, functional = leave_one_out(
        DenseKernelTable(kernel, buckets.phi),
        buckets.phi.mean(1),
        Observations.by_item(
            buckets.item_bucket[coreset],
            problem.scores[coreset],
            problem.sigma2 * buckets.counts,
        ),
        weights,
    )
    for place, item in enumerate(coreset):
        mean, _ = problem.posterior([i for i in coreset if i != item])
        expected = problem.scores[item] - mean[buckets.item_bucket[item]]
        torch.testing.assert_close(residual[place], expected, rtol=1e-10, atol=1e-13)
        torch.testing.assert_close(
            functional[place], weights @ mean, rtol=1e-10, atol=1e-13
        )
