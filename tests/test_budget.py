"""Runs with costs: within the budget, by information per cost, batches as singles."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pytest
import torch
from oracles import Problem, make_problem

from gp_eval.costs import ItemCosts
from gp_eval.evaluation import evaluate
from gp_eval.loop import EvaluationLoop
from gp_eval.models import make_model
from gp_eval.multi_target_loop import MultiTargetLoop
from gp_eval.stopping import StoppingRule

SIZE = 40


def problem_and_costs(seed: int = 0, *, free: int = 0) -> tuple[Problem, list[float]]:
    problem = make_problem(seed + 1, counts=(1,) * SIZE, n_references=6)
    generator = np.random.default_rng(seed)
    costs = generator.lognormal(sigma=1.0, size=SIZE).round(2).tolist()
    for item in generator.permutation(SIZE)[:free].tolist():
        costs[item] = 0.0
    return problem, costs


def loop(
    problem: Problem,
    costs: list[float] | None,
    max_cost: float | None = None,
    *,
    model: str = "bayesame",
    cost_aware: bool | None = None,
    seed: int = 0,
    max_items: int | None = None,
    **options,
) -> EvaluationLoop:
    if model.startswith("bayesame"):
        options.setdefault("refit_every", 7)
    items = problem.references.items
    return EvaluationLoop(
        make_model(model, problem.references, **options),
        problem.references,
        stop=StoppingRule(width=1e-12, max_cost=max_cost, max_items=max_items),
        seed=seed,
        costs=None if costs is None else ItemCosts(costs, items),
        cost_aware=cost_aware,
    )


def finish(made: EvaluationLoop, problem: Problem, *, q: int = 1) -> list[int]:
    while not made.done:
        asked = made.ask(q)
        assert asked, "not done, and nothing to ask"
        for item in asked:
            made.tell(item, float(problem.scores[item]))
    return list(made.scores)


def exact(costs: list[float], items: list[int]) -> Decimal:
    return sum((Decimal(repr(costs[i])) for i in items), Decimal(0))


@pytest.mark.parametrize("model", ["bayesame", "bayesame-rs", "rs-mean"])
@pytest.mark.parametrize("cost_aware", [None, False])
@pytest.mark.parametrize("q", [1, 4])
def test_no_item_is_asked_that_costs_more_than_is_left(
    model: str, cost_aware: bool | None, q: int
) -> None:
    for seed in range(4):
        problem, costs = problem_and_costs(seed)
        budget = Decimal("12.34")
        made = loop(
            problem, costs, float(budget), model=model, cost_aware=cost_aware, seed=seed
        )
        committed: list[int] = []
        while not made.done:
            asked = made.ask(q)
            committed += asked
            assert exact(costs, committed) <= budget
            for item in asked:
                made.tell(item, float(problem.scores[item]))
        assert made.stop_reason == "budget"
        assert made.stopped_at == made.n < SIZE
        assert made.cost == float(exact(costs, committed))
        assert made.ask() == []
        left = budget - exact(costs, committed)
        if model == "bayesame":
            cheapest = min(costs[i] for i in range(SIZE) if i not in committed)
            assert Decimal(repr(cheapest)) > left


@pytest.mark.parametrize("model", ["bayesame", "bayesame-rs"])
@pytest.mark.parametrize("cost_aware", [None, False])
def test_q_at_once_are_q_single_asks_under_a_budget(
    model: str, cost_aware: bool | None
) -> None:
    problem, costs = problem_and_costs(free=5)
    singly = loop(problem, costs, 15.0, model=model, cost_aware=cost_aware)
    whole = loop(problem, costs, 15.0, model=model, cost_aware=cost_aware)
    at_once = whole.ask(SIZE)
    one_by_one: list[int] = []
    while asked := singly.ask():
        one_by_one += asked
    assert one_by_one == at_once
    assert len(at_once) > 8
    # And with scores in between, up to each update.
    ends = [
        finish(
            loop(problem, costs, 15.0, model=model, cost_aware=cost_aware), problem, q=q
        )
        for q in (1, 7)
    ]
    assert ends[0] == ends[1]


def test_each_choice_is_the_best_gain_per_cost_that_can_be_paid() -> None:
    problem, costs = problem_and_costs()
    made = loop(problem, costs, 6.0, refit_every=None)
    problem.alpha = problem.beta = 1.0
    problem.sigma2 = 1e-4
    chosen: list[int] = []
    while not made.done:
        left = Decimal("6.0") - exact(costs, chosen)
        can = [
            i
            for i in range(SIZE)
            if i not in chosen and Decimal(repr(costs[i])) <= left
        ]
        best = max(can, key=lambda i: problem.gain(chosen, [i]) / costs[i])
        assert made.ask() == [best]
        made.tell(best, float(problem.scores[best]))
        chosen.append(best)
    assert len(chosen) > 5


def test_free_items_are_taken_first() -> None:
    problem, costs = problem_and_costs(free=6)
    free = {i for i in range(SIZE) if costs[i] == 0.0}
    for budget in (None, 5.0):
        made = loop(problem, costs, budget)
        assert set(made.ask(6)) == free
        assert costs[made.ask()[0]] > 0.0
    # With nothing to spend only they are.
    made = loop(problem, costs, 0.0)
    assert set(finish(made, problem)) == free
    assert (made.stop_reason, made.cost) == ("budget", 0.0)


def test_a_random_sample_ends_with_the_first_item_it_cannot_pay() -> None:
    """Going on with cheaper ones would make it a sample of cheap items."""
    problem, costs = problem_and_costs()
    order = finish(loop(problem, None, model="rs-mean", seed=3), problem)
    made = loop(problem, costs, 15.0, model="rs-mean", seed=3)
    items = finish(made, problem, q=5)
    assert items == order[: len(items)]
    assert exact(costs, items) <= 15 < exact(costs, order[: len(items) + 1])
    assert any(Decimal("15") - exact(costs, [*items, i]) >= 0 for i in order)


def test_pending_items_are_paid_and_hold_the_stop_back() -> None:
    problem, costs = problem_and_costs()
    made = loop(problem, costs, 3.0)
    asked = made.ask(SIZE)
    assert made.ask() == []
    for item in asked[:-1]:
        made.tell(item, 0.5)
        assert made.cost == float(exact(costs, list(made.scores)))
    assert not made.done
    made.tell(asked[-1], 0.5)
    assert made.stop_reason == "budget"


def test_an_item_that_was_tried_in_vain_is_paid_and_one_never_asked_is_not() -> None:
    problem, costs = problem_and_costs()
    made = loop(problem, costs, 100.0)
    (tried,) = made.ask()
    made.skip(tried)
    assert made.cost == costs[tried]
    untouched = next(i for i in range(SIZE) if i != tried)
    made.skip(untouched)
    assert made.cost == costs[tried]
    made.tell(tried, 0.5)
    made.tell(untouched, 0.5)
    assert made.cost == float(exact(costs, [tried, untouched]))


def test_a_skip_can_end_what_can_be_paid() -> None:
    problem, costs = problem_and_costs()
    made = loop(problem, costs, 3.0)
    for item in made.ask(SIZE):
        assert not made.done
        made.skip(item)
    assert made.stop_reason == "budget"
    assert made.stopped_at == 0


def test_scores_nobody_asked_for_are_paid_and_may_exceed_the_budget() -> None:
    problem, costs = problem_and_costs()
    made = loop(problem, costs, 1.0)
    dear = int(np.argmax(costs))
    made.tell(dear, 0.5)
    assert made.stop_reason == "budget"
    assert made.cost == costs[dear] > 1.0


def test_a_budget_that_pays_for_all_ends_complete() -> None:
    problem, costs = problem_and_costs()
    made = loop(problem, costs, float(exact(costs, list(range(SIZE)))))
    finish(made, problem, q=3)
    assert made.stop_reason == "complete"
    assert made.estimate == float(problem.scores.mean())


def test_max_items_holds_beside_a_budget() -> None:
    problem, costs = problem_and_costs()
    made = loop(problem, costs, 1e9, max_items=5)
    assert len(finish(made, problem, q=3)) == 5
    assert made.stop_reason == "max_items"


def test_costs_without_awareness_change_no_choice() -> None:
    problem, costs = problem_and_costs()
    plain = finish(loop(problem, None), problem)
    assert finish(loop(problem, costs, cost_aware=False), problem) == plain
    assert finish(loop(problem, costs), problem) != plain
    equal = [0.1] * SIZE
    assert finish(loop(problem, equal), problem) == plain


def test_information_per_cost_buys_more_information() -> None:
    """Greedy per cost is no optimum, but far from blindness to costs."""
    narrower = 0
    for seed in range(10):
        problem, costs = problem_and_costs(seed)
        blind = loop(problem, costs, 5.0, cost_aware=False, refit_every=None)
        aware = loop(problem, costs, 5.0, refit_every=None)
        finish(blind, problem)
        finish(aware, problem)
        narrower += aware.width < blind.width
    assert narrower == 10


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"costs": None, "max_cost": 1.0}, "max_cost: needs the costs of the items"),
        ({"costs": None, "cost_aware": True}, "cost_aware: needs the costs"),
        ({"max_cost": 1e-9}, "max_cost: the cheapest item costs"),
        (
            {"model": "rs-mean", "cost_aware": True},
            "RandomMean selects items at random",
        ),
        ({"model": "seq-apw", "cost_aware": True}, "by no measure of information"),
        ({"batch": 2, "cost_aware": True}, "BayesAME selects optimal batches"),
        ({"batch": 2, "max_cost": 5.0}, "max_cost: optimal batches do not mind it"),
    ],
)
def test_what_cannot_be_done_with_costs_is_refused(options: dict, message: str) -> None:
    problem, costs = problem_and_costs()
    options.setdefault("costs", costs)
    with pytest.raises(ValueError, match=message):
        loop(problem, options.pop("costs"), options.pop("max_cost", None), **options)


def test_several_targets_have_no_budget_in_common() -> None:
    problem, _ = problem_and_costs()
    model = make_model("bayesame-multi", problem.references, n_targets=2)
    with pytest.raises(ValueError, match="max_cost: several targets have no budget"):
        MultiTargetLoop(model, problem.references, stop=StoppingRule(max_cost=1.0))  # type: ignore[arg-type]


def test_a_run_in_memory_takes_costs_by_id() -> None:
    problem, costs = problem_and_costs()
    items = problem.references.items
    result = evaluate(
        problem.references,
        lambda item: float(problem.scores[int(item[1:])]),
        stop=StoppingRule(width=1e-12, max_cost=4.0),
        costs=dict(zip(items, costs, strict=True)),
    )
    assert result.stop_reason == "budget"
    assert result.cost == float(exact(costs, [int(i[1:]) for i in result.items])) <= 4.0


def test_weighted_items_of_no_weight_do_not_break_the_run() -> None:
    problem, costs = problem_and_costs(free=5)
    weights = torch.ones(SIZE, dtype=torch.float64)
    weights[::4] = 0.0
    references = type(problem.references)(
        problem.references.scores,
        problem.references.items,
        problem.references.models,
        item_weights=weights,
    )
    problem.references = references
    made = loop(problem, costs)
    assert sorted(finish(made, problem)) == list(range(SIZE))
