"""What the tests of batches share: a conditioned model, and Eq. (12) item by item."""

from __future__ import annotations

from itertools import combinations

import torch
from oracles import Problem
from torch import Tensor

from gp_eval.kernels import ReferenceScoreKernel
from gp_eval.models import SequentialBucketModel


def conditioned(problem: Problem, coreset: list[int]) -> SequentialBucketModel:
    """The problem's model after its scores of some items."""
    kernel = ReferenceScoreKernel().double()
    kernel.alpha = torch.tensor(problem.alpha, dtype=torch.float64)
    kernel.beta = torch.tensor(problem.beta, dtype=torch.float64)
    model = SequentialBucketModel(
        problem.buckets, noise=problem.sigma2, covar_module=kernel
    )
    for item in coreset:
        model.append(item, float(problem.scores[item]))
    return model


def left_over(problem: Problem, coreset: list[int]) -> Tensor:
    """Which items are available, booleans of shape ``N``."""
    available = torch.ones(problem.n_items, dtype=torch.bool)
    available[coreset] = False
    return available


def all_batches(
    problem: Problem, coreset: list[int], q: int
) -> tuple[list[list[int]], Tensor]:
    """Every batch of item indices, and Eq. (12) of each by solving with its matrix."""
    rest, _, covariance = problem.rest(coreset)
    with_sum = covariance @ problem.weights[rest]
    places = torch.tensor(list(combinations(range(len(rest)), q)))
    matrices = covariance[places.unsqueeze(-1), places.unsqueeze(-2)]
    target = with_sum[places]
    solved = torch.linalg.solve(matrices, target.unsqueeze(-1)).squeeze(-1)
    items = torch.tensor(rest)[places].tolist()
    return items, (target * solved).sum(-1)
