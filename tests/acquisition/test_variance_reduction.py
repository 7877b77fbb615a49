from __future__ import annotations

import numpy as np
import pytest
import torch
from botorch.optim import optimize_acqf_discrete
from oracles import Problem, make_problem
from torch import Tensor

from gp_eval.acquisition import select_items
from gp_eval.acquisition.variance_reduction import qVarianceReduction
from gp_eval.models.baselines.latent_scores import LatentScoreModel


def dense_variance(problem: Problem, coreset: list[int], noise: float) -> float:
    """Var(R) of latent scores by the textbook formula over all items."""
    table = torch.from_numpy(np.cov(problem.references.scores.numpy()))
    w = problem.weights
    gram = table[coreset][:, coreset] + noise * torch.eye(len(coreset)).double()
    cross = table[coreset] @ w
    return float(w @ table @ w - cross @ torch.linalg.solve(gram, cross))


def conditioned(problem: Problem, coreset: list[int], noise: float = 0.3):
    model = LatentScoreModel(problem.references.scores, problem.weights, noise=noise)
    for item in coreset:
        model.append(item, float(problem.scores[item]))
    return model


def column(items: list[int]) -> Tensor:
    return torch.tensor(items, dtype=torch.float64).unsqueeze(-1)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("batch", [[4], [1, 9], [7, 2, 12]])
def test_is_the_drop_in_variance(batch: list[int], weighted: bool) -> None:
    problem = make_problem(3, counts=(1,) * 14, weighted=weighted)
    gain = qVarianceReduction(conditioned(problem, [0, 5]))
    drop = dense_variance(problem, [0, 5], 0.3)
    drop -= dense_variance(problem, [0, 5, *batch], 0.3)
    assert float(gain(column(batch).unsqueeze(0))) == pytest.approx(drop, rel=1e-10)


def test_botorch_and_the_harness_select_alike() -> None:
    problem = make_problem(3, counts=(1,) * 14)
    gain = qVarianceReduction(conditioned(problem, [0, 5]))
    open_ = [i for i in range(14) if i not in (0, 5)]
    by_botorch, _ = optimize_acqf_discrete(gain, q=3, choices=column(open_))
    available = torch.ones(14, dtype=torch.bool)
    available[[0, 5]] = False
    chosen = select_items(
        gain, available, q=3, same_as=torch.arange(14), rank=torch.arange(14)
    )
    assert by_botorch.squeeze(-1).long().tolist() == chosen
    single = []
    model = conditioned(problem, [0, 5])
    for _ in range(3):
        values = qVarianceReduction(model).of_items(torch.arange(14).unsqueeze(-1))
        values[[0, 5, *single]] = -1.0
        single.append(int(values.argmax()))
        model.append(single[-1], 0.123)
    assert single == chosen


def test_pending_items_are_part_of_the_batch() -> None:
    problem = make_problem(3, counts=(1,) * 14)
    model = conditioned(problem, [0])
    pending = qVarianceReduction(model, X_pending=column([6]))
    joint = qVarianceReduction(model)
    assert float(pending(column([2]).unsqueeze(0))) == pytest.approx(
        float(joint(column([2, 6]).unsqueeze(0))), rel=1e-12
    )


def test_is_0_and_finite_without_any_variance() -> None:
    scores = torch.tensor([[1.0, 1.0], [0.0, 0.0], [0.5, 0.5]]).double()
    model = LatentScoreModel(scores, torch.full((3,), 1 / 3).double(), noise=0.3)
    values = qVarianceReduction(model).of_items(torch.arange(3).unsqueeze(-1))
    assert values.tolist() == [0.0, 0.0, 0.0]
