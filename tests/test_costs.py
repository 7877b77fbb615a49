"""Costs of items: nothing unknown counts as zero, and nothing is rounded."""

from __future__ import annotations

import math
from decimal import Decimal

import numpy as np
import pytest
import torch

from gp_eval.costs import ItemCosts, Purse
from gp_eval.errors import DataError

ITEMS = ["a", "b", "c", "d"]


def purse(costs: list[float], budget: float | None = None) -> Purse:
    return Purse(ItemCosts(costs, [f"q{i}" for i in range(len(costs))]), budget)


def test_costs_are_in_the_order_of_the_items_and_others_are_not_used() -> None:
    costs = ItemCosts.of_items({"d": 4, "x": 9, "a": 1, "c": 0.0, "b": 2.5}, ITEMS)
    assert costs.values.tolist() == [1.0, 2.5, 0.0, 4.0]
    assert costs.values.dtype == torch.float64
    assert costs.total() == 7.5
    assert costs.total([1, 3]) == 6.5


def test_an_item_without_a_cost_is_named() -> None:
    with pytest.raises(DataError, match=r"nothing for 2 of the 4 items: .*'b'.*'d'"):
        ItemCosts.of_items({"a": 1.0, "c": 1.0}, ITEMS)


@pytest.mark.parametrize("wrong", [-1.0, math.nan, math.inf, None, "1", object()])
def test_a_cost_that_is_unknown_or_negative_does_not_count_as_zero(
    wrong: object,
) -> None:
    known = {"a": 1.0, "b": wrong, "c": 1.0, "d": 0.0}
    with pytest.raises(DataError, match=r"finite costs >= 0, not so for 'b'"):
        ItemCosts.of_items(known, ITEMS)  # type: ignore[arg-type]


def test_the_fingerprint_knows_every_item_and_every_bit() -> None:
    costs = [0.1, 0.2, 0.3, 0.0]
    made = ItemCosts(costs, ITEMS).fingerprint
    assert made == ItemCosts(list(costs), tuple(ITEMS)).fingerprint
    others = [
        ItemCosts([0.1, 0.2, 0.3, 1e-300], ITEMS),
        ItemCosts([0.1, math.nextafter(0.2, 1), 0.3, 0.0], ITEMS),
        ItemCosts([0.2, 0.1, 0.3, 0.0], ITEMS),
        ItemCosts(costs, ["a", "b", "c", "e"]),
    ]
    assert len({made, *(other.fingerprint for other in others)}) == 5


def test_ten_items_of_a_tenth_cost_one() -> None:
    made = purse([0.1] * 11, 1.0)
    assert made.first(range(11), 11) == list(range(10))
    for item in range(9):
        made.commit(item)
    available = torch.ones(11, dtype=torch.bool)
    assert bool(made.affordable(available)[9])
    made.commit(9)
    assert made.left == 0.0
    assert not bool(made.affordable(available).any())


def test_what_is_left_against_decimals() -> None:
    generator = np.random.default_rng(0)
    costs = generator.random(60).round(3).tolist()
    made = purse(costs, 9.9)
    spent = Decimal("9.9")
    available = torch.ones(60, dtype=torch.bool)
    for item in generator.permutation(60)[:25].tolist():
        ahead = [(item + 1) % 60]
        rest = spent - Decimal(repr(costs[ahead[0]]))
        expected = [Decimal(repr(cost)) <= rest for cost in costs]
        assert made.affordable(available, ahead).tolist() == expected
        made.commit(item)
        made.commit(item)
        spent -= Decimal(repr(costs[item]))
        assert made.left == float(spent)
    assert made.left < 0.0


def test_the_first_items_end_where_one_costs_more_than_is_left() -> None:
    made = purse([2.0, 5.0, 1.0, 0.0], 4.0)
    assert made.first([0, 2, 3, 1], 9) == [0, 2, 3]
    assert made.first([0, 2, 3, 1], 2) == [0, 2]
    assert made.first([0, 1, 2, 3], 9) == [0]
    assert made.first([1, 0], 9) == []


def test_without_a_budget_everything_can_be_paid() -> None:
    made = purse([1e300, 1.0])
    made.commit(0)
    assert made.left == math.inf
    assert made.affordable(torch.tensor([True, False])).tolist() == [True, False]
    assert made.first([0, 1], 9) == [0, 1]
