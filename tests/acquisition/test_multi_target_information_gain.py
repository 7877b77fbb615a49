"""The information gain over rows ``[item, target]``, Section 3.2."""

from __future__ import annotations

import pytest
import torch
from botorch.optim.optimize import optimize_acqf_discrete
from multi_target_oracle import (
    MultiTargetProblem,
    Pair,
    disjoint,
    identical,
    make_multi_target_problem,
    ragged,
)

from gp_eval.acquisition import qPerformanceInformationGain

CLOSE = {"rtol": 1e-10, "atol": 1e-14}


def rows(pairs: list[Pair]) -> torch.Tensor:
    return torch.tensor([[i, t] for t, i in pairs], dtype=torch.float64)


def rest(problem: MultiTargetProblem, coreset: list[Pair]) -> list[Pair]:
    return [pair for pair in problem.pairs if pair not in coreset]


def check(problem: MultiTargetProblem, coreset: list[Pair], batches) -> None:
    """Gains about the score of the target that each batch begins with."""
    gain = qPerformanceInformationGain(problem.model(coreset))
    expected = [problem.gain(coreset, list(b), b[0][0]) for b in batches]
    got = gain(torch.stack([rows(b) for b in batches]))
    torch.testing.assert_close(
        got, torch.tensor(expected, dtype=torch.float64), **CLOSE
    )


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("coreset", [ragged, disjoint])
@pytest.mark.parametrize("n_targets", [1, 2, 3])
def test_equation_6_of_every_pair(n_targets: int, coreset, weighted: bool) -> None:
    problem = make_multi_target_problem(n_targets=n_targets, weighted=weighted)
    pairs = coreset(problem)
    check(problem, pairs, [[pair] for pair in rest(problem, pairs)])


def test_equation_6_of_twenty_targets() -> None:
    problem = make_multi_target_problem(n_targets=20, counts=(1, 2, 1, 2))
    pairs = ragged(problem)
    check(problem, pairs, [[pair] for pair in rest(problem, pairs)[::5]])


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("q", [2, 3])
def test_joint_gain_of_items_of_one_target(q: int, weighted: bool) -> None:
    problem = make_multi_target_problem(weighted=weighted)
    coreset = ragged(problem)
    left = [[p for p in rest(problem, coreset) if p[0] == t] for t in range(3)]
    check(problem, coreset, [own[k : k + q] for own in left for k in (0, 2, 4)])


@pytest.mark.parametrize("weighted", [False, True])
def test_joint_gain_of_pairs_of_several_targets_is_about_the_first_ones(
    weighted: bool,
) -> None:
    problem = make_multi_target_problem(weighted=weighted)
    coreset = ragged(problem)
    c, d = (2, 13), (2, 4)
    a, b = (next(p for p in rest(problem, coreset) if p[0] == t) for t in (0, 1))
    check(problem, coreset, [[a, b, c], [b, c, a], [c, a, b], [c, d, a], [d, b, c]])


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_gains_do_not_depend_on_the_scores(value: float) -> None:
    problem = make_multi_target_problem()
    coreset = ragged(problem)
    left = rows(rest(problem, coreset)).unsqueeze(1)
    before = qPerformanceInformationGain(problem.model(coreset))(left)
    problem.scores.fill_(value)
    after = qPerformanceInformationGain(problem.model(coreset))(left)
    assert torch.equal(before, after)


def test_identical_targets_gain_alike() -> None:
    problem = identical(make_multi_target_problem())
    coreset = [(t, i) for i in (3, 9) for t in (0, 1)]
    check(problem, coreset, [[(0, 5)], [(1, 5)]])
    check(problem, coreset, [[(0, 5), (1, 5)]])
    gain = qPerformanceInformationGain(problem.model(coreset))
    one, other = gain(rows([(0, 5), (1, 5)]).unsqueeze(1)).tolist()
    assert one == pytest.approx(other, rel=1e-10)


def test_pending_pairs_of_any_target_enter_the_joint_gain() -> None:
    problem = make_multi_target_problem()
    coreset, pending = [(0, 3), (1, 5)], [(1, 2), (2, 7), (0, 1)]
    model = problem.model(coreset)
    gain = qPerformanceInformationGain(model, X_pending=rows(pending))
    later = qPerformanceInformationGain(model)
    later.set_X_pending(rows(pending))
    for pair in ((0, 4), (1, 0), (2, 12)):
        expected = problem.gain(coreset, [pair, *pending], pair[0])
        for acquisition in (gain, later):
            got = float(acquisition(rows([pair]).unsqueeze(0)))
            assert got == pytest.approx(expected, rel=1e-10)


def test_optimize_acqf_discrete_over_rows_of_item_and_target() -> None:
    problem = make_multi_target_problem()
    coreset = ragged(problem)
    left = rest(problem, coreset)
    gain = qPerformanceInformationGain(problem.model(coreset))
    gains = {pair: problem.gain(coreset, [pair], pair[0]) for pair in left}
    X, value = optimize_acqf_discrete(gain, q=1, choices=rows(left))
    item, target = X.squeeze(0).long().tolist()
    assert float(value) == pytest.approx(max(gains.values()), rel=1e-10)
    assert gains[target, item] == pytest.approx(max(gains.values()), rel=1e-10)
    other, _ = optimize_acqf_discrete(
        gain, q=1, choices=rows(problem.pairs), X_avoid=torch.cat([rows(coreset), X])
    )
    item, target = other.squeeze(0).long().tolist()
    best = max(v for pair, v in gains.items() if v < float(value) * (1 - 1e-9))
    assert gains[target, item] == pytest.approx(best, rel=1e-10)


def test_the_last_item_of_a_target_has_a_large_finite_gain() -> None:
    problem = make_multi_target_problem()
    coreset = [(1, i) for i in range(13)] + [(0, 2)]
    gain = qPerformanceInformationGain(problem.model(coreset))
    last = float(gain(rows([(1, 13)]).unsqueeze(0)))
    assert 15 < last < float("inf")


@pytest.mark.parametrize("weighted", [False, True])
def test_a_complete_target_has_nothing_to_gain(weighted: bool) -> None:
    problem = make_multi_target_problem(weighted=weighted)
    coreset = [(1, i) for i in range(14)]
    gain = qPerformanceInformationGain(problem.model(coreset))
    assert gain(rows([(1, 5)]).unsqueeze(0)).tolist() == [0.0]
    assert gain(rows([(1, 5), (0, 3)]).unsqueeze(0)).tolist() == [0.0]
    check(problem, coreset, [[(0, 3)]])
    check(problem, coreset, [[(0, 3), (2, 5)]])
