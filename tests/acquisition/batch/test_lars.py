from __future__ import annotations

import pytest
import torch
from batches import conditioned
from oracles import make_problem
from sklearn.linear_model import Lars
from torch import Tensor

from gp_eval.acquisition.batch import BatchObjective, lars_batch


def objective_of(seed: int, n_items: int = 40) -> BatchObjective:
    problem = make_problem(seed, counts=(1,) * n_items, sigma2=1e-3)
    return BatchObjective(conditioned(problem, [0, 5, 7]), torch.arange(8, n_items))


def by_regression(objective: BatchObjective, q: int) -> list[int]:
    """The same path from a design matrix with this Gram matrix, not from the latter."""
    gram = objective.block(torch.arange(len(objective)))
    design = torch.linalg.cholesky(gram).T
    target = torch.linalg.solve(design.T, objective.covariance)
    path = Lars(n_nonzero_coefs=q, fit_intercept=False, precompute=False)
    return list(path.fit(design.numpy(), target.numpy()).active_)


@pytest.mark.parametrize("q", [1, 3, 6])
def test_path_is_that_of_a_regression_on_the_square_root(q: int) -> None:
    for seed in range(5):
        objective = objective_of(seed)
        assert lars_batch(objective, q).tolist() == by_regression(objective, q)


def test_screening_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few candidates to begin with: those left out have to find their way back."""
    sizes: list[int] = []
    block = BatchObjective.block

    def spy(self: BatchObjective, candidates: Tensor) -> Tensor:
        sizes.append(candidates.shape[0])
        return block(self, candidates)

    monkeypatch.setattr(BatchObjective, "block", spy)
    for seed in range(8):
        objective = objective_of(seed)
        whole = lars_batch(objective, 5, screen=32)
        assert torch.equal(lars_batch(objective, 5, screen=5), whole)
    assert any(5 < size < 32 for size in sizes), sizes


def test_a_path_without_any_correlation_still_gives_a_batch() -> None:
    objective = objective_of(0)
    objective.covariance.zero_()
    assert len(set(lars_batch(objective, 4).tolist())) == 4
