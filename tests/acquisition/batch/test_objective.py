"""Eq. (12) against conditioning all item scores by brute force."""

from __future__ import annotations

from itertools import combinations

import pytest
import torch
from batches import conditioned
from oracles import Problem, make_problem

from gp_eval.acquisition.batch import BatchObjective
from gp_eval.models.baselines.latent_scores import LatentScoreModel


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("q", [1, 2, 3, 5])
def test_value_is_the_variance_that_conditioning_takes_away(
    weighted: bool, q: int
) -> None:
    problem, coreset = make_problem(0, weighted=weighted), [3, 7, 0, 11]
    left = [i for i in range(problem.n_items) if i not in coreset]
    objective = BatchObjective(conditioned(problem, coreset), torch.tensor(left))
    batches = list(combinations(range(len(left)), q))[:: 1 if q < 3 else 11]
    before = problem.performance(coreset)[1]
    expected = [
        before - problem.performance([*coreset, *(left[k] for k in batch)])[1]
        for batch in batches
    ]
    torch.testing.assert_close(
        objective.values(torch.tensor(batches)),
        torch.tensor(expected, dtype=torch.float64),
        rtol=1e-9,  # a difference of two variances
        atol=0,
    )


def test_rows_on_demand_are_those_of_the_whole_matrix(problem: Problem) -> None:
    model, items = conditioned(problem, [2, 5]), torch.tensor([0, 1, 3, 4, 9, 13])
    whole = model.score_covariance(items)
    objective = BatchObjective(model, items)
    for wanted in ([4], [1, 4], [[5, 0], [2, 2]], [3]):
        index = torch.tensor(wanted)
        torch.testing.assert_close(
            objective.rows(index), whole[index], rtol=1e-12, atol=1e-15
        )
    torch.testing.assert_close(objective.variance, whole.diagonal(), rtol=1e-12, atol=0)
    some = torch.tensor([1, 3])
    torch.testing.assert_close(
        objective.block(some), whole[some][:, some], rtol=1e-12, atol=1e-15
    )
    batch = torch.tensor([[0, 3, 5]])
    torch.testing.assert_close(
        objective.inverses(batch)[0],
        torch.linalg.inv(whole[batch[0]][:, batch[0]]),
        rtol=1e-10,
        atol=1e-12,
    )


def test_a_model_that_has_only_whole_matrices_will_do() -> None:
    scores = torch.rand(9, 4, generator=torch.Generator().manual_seed(0)).double()
    weights = torch.full((9,), 1 / 9, dtype=torch.float64)
    model = LatentScoreModel(scores, weights, noise=0.01)
    assert not hasattr(model, "score_cross_covariance")
    items = torch.tensor([0, 2, 3, 5, 8])
    objective = BatchObjective(model, items)
    batch = torch.tensor([1, 2, 4])
    c = model.performance_covariance(items)[batch]
    expected = c @ torch.linalg.solve(model.score_covariance(items[batch]), c)
    torch.testing.assert_close(
        objective.values(batch.unsqueeze(0))[0], expected, rtol=1e-10, atol=0
    )
    torch.testing.assert_close(
        objective.cross(batch, batch), model.score_covariance(items[batch])
    )
