from __future__ import annotations

import pytest
import torch
from batches import all_batches, conditioned, left_over
from oracles import Problem, make_problem

from gp_eval.acquisition.batch import BatchObjective, best_pair, pair_values, pairs


def objective_of(problem: Problem, coreset: list[int]) -> BatchObjective:
    items = left_over(problem, coreset).nonzero().squeeze(-1)
    return BatchObjective(conditioned(problem, coreset), items)


def test_closed_form_is_equation_12_of_every_pair(problem: Problem) -> None:
    coreset = [1, 6, 10]
    objective = objective_of(problem, coreset)
    every = torch.arange(len(objective))
    values = pair_values(objective, every, every)
    upper = values[torch.triu(torch.ones_like(values), 1) > 0]
    # `combinations` runs through pairs as the upper triangle does.
    expected = all_batches(problem, coreset, 2)[1]
    torch.testing.assert_close(upper, expected, rtol=1e-10, atol=0)
    assert bool((values.diagonal() == -torch.inf).all())


@pytest.mark.parametrize("block", [1, 3, 256])
def test_finds_the_best_of_all_pairs(
    block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pairs, "_BLOCK", block)
    for seed in range(10):
        problem = make_problem(seed, counts=(1,) * 14)
        objective = objective_of(problem, [2, 12])
        items, values = all_batches(problem, [2, 12], 2)
        found = objective.items[best_pair(objective)].tolist()
        assert found == items[int(values.argmax())]


def test_the_first_of_tied_pairs_wins() -> None:
    problem = make_problem(3, counts=(2,) * 6)
    objective = objective_of(problem, [])
    bucket = problem.buckets.item_bucket
    found = best_pair(objective)
    twins = [
        sorted([i, j])
        for i in (bucket == bucket[found[0]]).nonzero().squeeze(1).tolist()
        for j in (bucket == bucket[found[1]]).nonzero().squeeze(1).tolist()
        if i != j
    ]
    assert len(twins) > 1
    assert found.tolist() == min(twins)
