"""Information per cost against literal quotients, BoTorch's optimizer and selection."""

from __future__ import annotations

import itertools

import pytest
import torch
from botorch.acquisition.cost_aware import GenericCostAwareUtility
from botorch.acquisition.input_constructors import get_acqf_input_constructor
from botorch.optim.optimize import optimize_acqf_discrete
from oracles import Problem, make_problem

from gp_eval.acquisition import (
    DisagreementSelection,
    ItemCostModel,
    RandomSelection,
    inverse_cost,
    measures_information,
    qGainPerCost,
    qPerformanceInformationGain,
    qVarianceReduction,
    select_items,
)
from gp_eval.kernels import ReferenceScoreKernel
from gp_eval.models import SequentialBucketModel

CORESET = [3, 7, 11]


def make(problem: Problem) -> SequentialBucketModel:
    kernel = ReferenceScoreKernel().double()
    kernel.alpha, kernel.beta = problem.alpha, problem.beta
    model = SequentialBucketModel(
        problem.buckets, noise=problem.sigma2, covar_module=kernel
    )
    for item in CORESET:
        model.append(item, problem.scores[item])
    return model


def some_costs(n: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(5)
    return torch.rand(n, generator=generator, dtype=torch.float64) * 3.0 + 0.2


def per_cost(problem: Problem, costs: torch.Tensor, **options) -> qGainPerCost:
    gain = qPerformanceInformationGain(make(problem))
    return qGainPerCost(gain, inverse_cost(costs), **options)


def rest(problem: Problem) -> list[int]:
    return [i for i in range(problem.n_items) if i not in CORESET]


def column(items: list[int]) -> torch.Tensor:
    return torch.tensor(items, dtype=torch.float64).unsqueeze(-1)


def select(problem: Problem, acquisition: qGainPerCost, q: int, **options) -> list[int]:
    available = torch.zeros(problem.n_items, dtype=torch.bool)
    available[rest(problem)] = True
    return select_items(
        acquisition,
        available,
        q=q,
        same_as=problem.buckets.item_bucket,
        rank=torch.arange(problem.n_items),
        **options,
    )


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("q", [1, 2, 3])
def test_gain_of_every_batch_divided_by_what_it_costs(q: int, weighted: bool) -> None:
    problem = make_problem(0, weighted=weighted)
    costs = some_costs(problem.n_items)
    batches = list(itertools.combinations(rest(problem), q))[:60]
    expected = [
        problem.gain(CORESET, list(b)) / sum(float(costs[i]) for i in b)
        for b in batches
    ]
    X = torch.tensor(batches, dtype=torch.float64).unsqueeze(-1)
    torch.testing.assert_close(
        per_cost(problem, costs)(X),
        torch.tensor(expected, dtype=torch.float64),
        rtol=1e-10,
        atol=1e-14,
    )


def test_pending_items_are_paid_and_only_what_is_added_counts(problem: Problem) -> None:
    costs, (a, b, *left) = some_costs(problem.n_items), rest(problem)
    pending = per_cost(problem, costs, X_pending=column([a, b]))
    before = problem.gain(CORESET, [a, b])
    expected = [
        (problem.gain(CORESET, [a, b, i]) - before) / float(costs[i]) for i in left
    ]
    got = pending(column(left).unsqueeze(-1))
    # A difference of two gains of order 1: four digits fewer than each has.
    torch.testing.assert_close(
        got, torch.tensor(expected, dtype=torch.float64), rtol=1e-9, atol=1e-12
    )
    conditioned = per_cost(problem, costs)
    with conditioned.model.lookahead() as add:
        add(a)
        add(b)
        again = conditioned.of_items(torch.tensor(left).unsqueeze(-1))
    torch.testing.assert_close(got, again, rtol=1e-9, atol=1e-12)


def test_botorch_picks_what_selection_picks(problem: Problem) -> None:
    costs, choices = some_costs(problem.n_items), column(rest(problem))
    best, value = optimize_acqf_discrete(per_cost(problem, costs), q=1, choices=choices)
    assert [int(best)] == select(problem, per_cost(problem, costs), 1)
    ratios = [problem.gain(CORESET, [i]) / float(costs[i]) for i in rest(problem)]
    assert float(value) == pytest.approx(max(ratios), rel=1e-10)
    five, _ = optimize_acqf_discrete(per_cost(problem, costs), q=5, choices=choices)
    items = select(problem, per_cost(problem, costs), 5)
    assert five.flatten().long().tolist() == items
    # By the slow formula, one after the other.
    chosen: list[int] = []
    for _ in range(5):
        seen = CORESET + chosen
        left = [i for i in rest(problem) if i not in chosen]
        chosen.append(
            max(left, key=lambda i: problem.gain(seen, [i]) / float(costs[i]))
        )
    assert items == chosen
    # So that the test tells costs from no costs.
    plain = qPerformanceInformationGain(make(problem))
    assert select(problem, plain, 5) != items


def test_equal_costs_select_as_the_gain_and_the_unit_does_not_matter(
    problem: Problem,
) -> None:
    plain = select(problem, qPerformanceInformationGain(make(problem)), 6)
    equal = torch.full((problem.n_items,), 0.3, dtype=torch.float64)
    assert select(problem, per_cost(problem, equal), 6) == plain
    costs = some_costs(problem.n_items)
    in_cents = select(problem, per_cost(problem, 100.0 * costs), 6)
    assert select(problem, per_cost(problem, costs), 6) == in_cents


def test_free_items_come_first_in_the_order_of_their_gain(problem: Problem) -> None:
    costs = some_costs(problem.n_items)
    free = rest(problem)[1::3]
    costs[free] = 0.0
    values = per_cost(problem, costs)(column(rest(problem)).unsqueeze(-1))
    assert values.isfinite().all()
    items = select(problem, per_cost(problem, costs), len(free) + 1)
    assert sorted(items[:-1]) == sorted(free)
    assert items[-1] not in free
    chosen: list[int] = []
    for _ in free:
        seen = CORESET + chosen
        left = [i for i in free if i not in chosen]
        chosen.append(max(left, key=lambda i: problem.gain(seen, [i])))
    assert items[:-1] == chosen


def test_where_everything_is_free_the_gain_selects(problem: Problem) -> None:
    nothing = torch.zeros(problem.n_items, dtype=torch.float64)
    plain = select(problem, qPerformanceInformationGain(make(problem)), 6)
    assert select(problem, per_cost(problem, nothing), 6) == plain


def test_selection_leaves_out_what_is_not_allowed(problem: Problem) -> None:
    costs = some_costs(problem.n_items)
    first = select(problem, per_cost(problem, costs), 4)
    seen: list[list[int]] = []

    def allowed(available: torch.Tensor, chosen: list[int]) -> torch.Tensor:
        seen.append(list(chosen))
        without = available.clone()
        without[first[0]] = False
        return without

    for q in (1, 4):
        items = select(problem, per_cost(problem, costs), q, allowed=allowed)
        assert first[0] not in items
        assert seen == [items[:k] for k in range(q)]
        seen.clear()


def test_a_utility_of_ones_own_can_be_used(problem: Problem) -> None:
    gain = qPerformanceInformationGain(make(problem))
    halved = qGainPerCost(gain, GenericCostAwareUtility(lambda X, deltas: deltas / 2))
    X = column(rest(problem)).unsqueeze(-1)
    torch.testing.assert_close(halved(X), gain(X) / 2.0)


def test_the_reduction_of_variance_can_be_weighed_as_well(problem: Problem) -> None:
    reduction, costs = qVarianceReduction(make(problem)), some_costs(problem.n_items)
    X = column(rest(problem)).unsqueeze(-1)
    torch.testing.assert_close(
        qGainPerCost(reduction, inverse_cost(costs))(X),
        reduction(X) / costs[rest(problem)],
        rtol=1e-14,
        atol=0.0,
    )


def test_what_is_no_measure_of_information_is_known(problem: Problem) -> None:
    model = make(problem)
    assert measures_information(qPerformanceInformationGain(model))
    assert measures_information(qVarianceReduction(model))
    order = RandomSelection(model, n_items=problem.n_items)
    assert not measures_information(order)
    assert not measures_information(DisagreementSelection(model, scores=problem.scores))
    assert not measures_information(None)
    with pytest.raises(ValueError, match=r"with of_items, .* got RandomSelection"):
        qGainPerCost(order, inverse_cost(some_costs(problem.n_items)))


@pytest.mark.parametrize("wrong", [[-1.0, 1.0], [float("nan"), 1.0], [[1.0], [2.0]]])
def test_costs_of_another_kind_are_refused(wrong: list) -> None:
    with pytest.raises(ValueError, match="costs: expected finite numbers >= 0"):
        ItemCostModel(torch.tensor(wrong, dtype=torch.float64))


def test_the_input_constructor_builds_the_gain_per_cost(problem: Problem) -> None:
    construct = get_acqf_input_constructor(qGainPerCost)
    costs, model = some_costs(problem.n_items), make(problem)
    made = qGainPerCost(**construct(model, costs=costs))
    X = column(rest(problem)).unsqueeze(-1)
    torch.testing.assert_close(made(X), per_cost(problem, costs)(X))
