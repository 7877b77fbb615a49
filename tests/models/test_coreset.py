from __future__ import annotations

import pytest
import torch
from oracles import Problem, make_problem

from gp_eval.models.coreset import Coreset


def filled(problem: Problem, order: list[int]) -> Coreset:
    coreset = Coreset(problem.references)
    for item, score in coreset.check(torch.tensor(order), problem.scores[order]):
        coreset.add(item, score)
    return coreset


def test_observed_part_is_the_weighted_sum_and_the_mean_at_the_end() -> None:
    for weighted in (False, True):
        problem = make_problem(0, weighted=weighted)
        part = filled(problem, [3, 0, 8])
        expected = sum(float(problem.weights[i] * problem.scores[i]) for i in (0, 3, 8))
        assert float(part.observed) == pytest.approx(expected, rel=1e-14)
        assert (part.n, part.complete, part.evaluated) == (3, False, [3, 0, 8])
    problem = make_problem(0)
    whole = filled(problem, list(range(problem.n_items))[::-1])
    assert whole.complete
    assert float(whole.observed) == float(problem.scores.mean())


@pytest.mark.parametrize(
    ("items", "scores", "message"),
    [
        ([0, 14], [1.0, 1.0], "items: expected indices 0..13, got \\[14\\]"),
        ([1, 5], [1.0, 1.0], "item: 5 is evaluated already"),
        ([1, 1], [1.0, 0.0], "item: 1 is evaluated already"),
        ([0, 1], [1.0, float("nan")], "expected finite ones, got nan of 1"),
        ([0, 1], [1.0], "expected as many, got 2 and 1"),
    ],
)
def test_a_bad_batch_changes_nothing(
    problem: Problem, items: list[int], scores: list[float], message: str
) -> None:
    coreset = filled(problem, [5])
    before = coreset.observed
    with pytest.raises(ValueError, match=message):
        coreset.check(torch.tensor(items), torch.tensor(scores))
    assert coreset.evaluated == [5]
    assert coreset.observed == before
