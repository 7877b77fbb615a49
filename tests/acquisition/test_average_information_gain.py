from __future__ import annotations

import itertools

import pytest
import torch
from botorch.acquisition.input_constructors import get_acqf_input_constructor
from botorch.optim.optimize import optimize_acqf_discrete
from multi_target_oracle import (
    MultiTargetProblem,
    disjoint,
    identical,
    make_multi_target_problem,
    ragged,
)

from gp_eval.acquisition import qAverageInformationGain, qPerformanceInformationGain

CLOSE = {"rtol": 1e-10, "atol": 1e-14}


def column(items: list[int]) -> torch.Tensor:
    return torch.tensor(items, dtype=torch.float64).unsqueeze(-1)


def averages(problem: MultiTargetProblem, coreset, batches) -> torch.Tensor:
    gains = [problem.average_gain(coreset, list(batch)) for batch in batches]
    return torch.tensor(gains, dtype=torch.float64)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("coreset", [ragged, disjoint])
@pytest.mark.parametrize("n_targets", [1, 2, 3])
def test_of_every_item_by_conditioning_all_scores(
    n_targets: int, coreset, weighted: bool
) -> None:
    """An item that a target has got already brings that target nothing."""
    problem = make_multi_target_problem(n_targets=n_targets, weighted=weighted)
    pairs = coreset(problem)
    gain = qAverageInformationGain(problem.model(pairs))
    items = list(range(problem.n_items))
    got = gain(column(items).unsqueeze(1))
    torch.testing.assert_close(
        got, averages(problem, pairs, [[i] for i in items]), **CLOSE
    )


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("q", [2, 3])
def test_of_batches_by_conditioning_all_scores(q: int, weighted: bool) -> None:
    """Where the targets lack some items of a batch, others or all of them."""
    problem = make_multi_target_problem(weighted=weighted)
    coreset = ragged(problem)
    batches = list(itertools.combinations(range(problem.n_items), q))[::11]
    gain = qAverageInformationGain(problem.model(coreset))
    got = gain(torch.tensor(batches, dtype=torch.float64).unsqueeze(-1))
    torch.testing.assert_close(got, averages(problem, coreset, batches), **CLOSE)


def test_of_twenty_targets() -> None:
    problem = make_multi_target_problem(n_targets=20, counts=(1, 2, 1, 2))
    coreset = disjoint(problem)
    gain = qAverageInformationGain(problem.model(coreset))
    torch.testing.assert_close(
        gain(column([0, 3, 5]).unsqueeze(1)),
        averages(problem, coreset, [[0], [3], [5]]),
        **CLOSE,
    )


def test_is_the_mean_of_the_information_gains_about_each_target() -> None:
    problem = make_multi_target_problem()
    model = problem.model()
    single = qPerformanceInformationGain(model)
    items = torch.arange(problem.n_items).double()
    parts = [
        single(torch.stack([items, torch.full_like(items, t)], -1).unsqueeze(1))
        for t in range(3)
    ]
    torch.testing.assert_close(
        qAverageInformationGain(model)(items.view(-1, 1, 1)),
        torch.stack(parts).mean(0),
        **CLOSE,
    )


def test_of_one_target_it_is_the_information_gain() -> None:
    problem = make_multi_target_problem(n_targets=1)
    model = problem.model([(0, 3), (0, 8)])
    items = torch.tensor([[0.0, 5.0], [1.0, 2.0]]).double().unsqueeze(-1)
    torch.testing.assert_close(
        qAverageInformationGain(model)(items),
        qPerformanceInformationGain(model)(
            torch.cat([items, torch.zeros_like(items)], -1)
        ),
        **CLOSE,
    )


def test_of_two_identical_targets_it_is_that_of_either() -> None:
    problem = identical(make_multi_target_problem(n_targets=2))
    coreset = [(t, i) for i in (3, 9) for t in (0, 1)]
    gain = qAverageInformationGain(problem.model(coreset))
    expected = [problem.gain(coreset, [(1, i)], 1) for i in (0, 5)]
    assert gain(column([0, 5]).unsqueeze(1)).tolist() == pytest.approx(
        expected, rel=1e-10
    )


def test_nothing_is_gained_where_all_targets_have_the_item() -> None:
    problem = make_multi_target_problem()
    coreset = [(t, i) for t in range(3) for i in (4, 6)] + [(0, 1)]
    gain = qAverageInformationGain(problem.model(coreset))
    assert gain(column([4]).unsqueeze(0)).tolist() == [0.0]
    assert gain(column([4, 6]).unsqueeze(0)).tolist() == [0.0]
    some = gain(torch.tensor([[[1.0], [4.0]], [[1.0], [2.0]]]).double())
    expected = averages(problem, coreset, [[1, 4], [1, 2]])
    torch.testing.assert_close(some, expected, **CLOSE)


def test_a_complete_target_does_not_spoil_the_mean() -> None:
    problem = make_multi_target_problem()
    coreset = [(1, i) for i in range(14)] + [(0, 2)]
    gain = qAverageInformationGain(problem.model(coreset))
    batches = [[3, 5], [2, 7]]
    got = gain(torch.tensor(batches).double().unsqueeze(-1))
    expected = [
        sum(problem.gain(coreset, [(t, i) for i in b], t) for t in (0, 2)) / 3
        for b in batches
    ]
    assert got.tolist() == pytest.approx(expected, rel=1e-10)
    for pair in problem.pairs:
        if pair not in coreset:
            problem.tell(gain.model, pair)
    assert gain(column([5]).unsqueeze(0)).tolist() == [0.0]
    assert gain(column([5, 6]).unsqueeze(0)).tolist() == [0.0]


def test_pending_items_enter_the_joint_gain() -> None:
    problem = make_multi_target_problem()
    coreset = ragged(problem)
    model = problem.model(coreset)
    expected = problem.average_gain(coreset, [5, 1, 8])
    gain = qAverageInformationGain(model, X_pending=column([1, 8]))
    assert float(gain(column([5]).unsqueeze(0))) == pytest.approx(expected, rel=1e-10)
    later = qAverageInformationGain(model)
    later.set_X_pending(column([1, 8]))
    assert float(later(column([5]).unsqueeze(0))) == pytest.approx(expected, rel=1e-10)


def test_optimize_acqf_discrete_finds_the_best_item() -> None:
    problem = make_multi_target_problem()
    coreset = ragged(problem)
    gain = qAverageInformationGain(problem.model(coreset))
    choices = list(range(problem.n_items))
    item, value = optimize_acqf_discrete(gain, q=1, choices=column(choices))
    gains = averages(problem, coreset, [[i] for i in choices])
    assert float(value) == pytest.approx(float(gains.max()), rel=1e-10)
    assert float(gains[int(item)]) == pytest.approx(float(gains.max()), rel=1e-10)
    two, _ = optimize_acqf_discrete(gain, q=2, choices=column(choices))
    first = int(item)
    joint = {
        i: problem.average_gain(coreset, [first, i]) for i in choices if i != first
    }
    assert int(two[0]) == first
    assert joint[int(two[1])] == pytest.approx(max(joint.values()), rel=1e-10)


def test_input_constructor_is_registered() -> None:
    model = make_multi_target_problem().model()
    inputs = get_acqf_input_constructor(qAverageInformationGain)(
        model=model, X_pending=column([3])
    )
    gain = qAverageInformationGain(**inputs)
    assert gain.model is model
    assert gain.X_pending.tolist() == [[3.0]]


def test_inputs_are_items_and_nothing_else() -> None:
    """The item after the last one would be a point of another target."""
    gain = qAverageInformationGain(make_multi_target_problem().model())
    for wrong in (-1, 14):
        with pytest.raises(ValueError, match=r"expected indices 0\.\.13"):
            gain(column([wrong]).unsqueeze(0))
    with pytest.raises(ValueError, match=r"X: expected items, b x q x 1, got"):
        gain(torch.tensor([[[3.0, 1.0]]]))
