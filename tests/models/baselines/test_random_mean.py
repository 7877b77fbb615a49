from __future__ import annotations

import statistics

import pytest
from oracles import make_problem

from gp_eval.models.baselines import RandomMean

ITEMS = [9, 3, 0, 12, 6]


def test_mean_and_variance_of_a_sample_without_replacement() -> None:
    problem = make_problem(5)
    scores = [float(problem.scores[i]) for i in ITEMS]
    model = RandomMean(problem.references)
    for n in range(2, 6):
        model = RandomMean(problem.references)
        model.condition(
            problem.scores.new_tensor(ITEMS[:n]).long(), problem.scores[ITEMS[:n]]
        )
        belief = model.performance()
        sample = scores[:n]
        assert float(belief.mean) == pytest.approx(statistics.mean(sample), rel=1e-14)
        expected = statistics.variance(sample) / n * (1 - n / 14)
        assert float(belief.variance) == pytest.approx(expected, rel=1e-13)


def test_equal_scores_have_no_variance_as_published() -> None:
    problem = make_problem(5)
    model = RandomMean(problem.references)
    scores = problem.scores.new_full((3,), 0.7)
    model.condition(problem.scores.new_tensor([1, 2, 3]).long(), scores)
    assert float(model.performance().variance) == pytest.approx(0.0, abs=1e-30)
    assert float(model.performance().mean) == pytest.approx(0.7, rel=1e-14)
