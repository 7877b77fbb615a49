from __future__ import annotations

import pytest

from gp_eval.experiments.disco import Costs


def test_the_paper_breaks_even_at_389_models() -> None:
    costs = Costs(full=8.53, online=0.07, offline=3284.0)
    assert costs.saved == pytest.approx(8.46)
    assert costs.break_even == 389


@pytest.mark.parametrize(
    ("full", "online", "offline"),
    [(8.53, 0.07, 3284.0), (2.0, 1.0, 10.0), (1.0, 0.9, 0.05), (3.0, 0.5, 7.3)],
)
def test_break_even_is_the_first_number_that_costs_no_more(
    full: float, online: float, offline: float
) -> None:
    costs = Costs(full=full, online=online, offline=offline)
    n = 0
    while offline + n * online > n * full:
        n += 1
    assert costs.break_even == n
    with_plan, without = costs.total(n)
    assert with_plan <= without
    before = costs.total(n - 1)
    assert before[0] > before[1]


def test_a_plan_may_never_pay_or_at_once() -> None:
    assert Costs(full=1.0, online=1.0, offline=5.0).break_even is None
    assert Costs(full=1.0, online=2.0, offline=0.0).break_even is None
    assert Costs(full=1.0, online=0.5, offline=0.0).break_even == 0


@pytest.mark.parametrize("value", [-1.0, float("nan"), float("inf")])
def test_costs_are_finite_and_not_negative(value: float) -> None:
    with pytest.raises(ValueError, match="online: expected a finite cost >= 0"):
        Costs(full=1.0, online=value, offline=0.0)


@pytest.mark.parametrize(("full", "online"), [(0.1, 0.0), (0.3, 0.1), (8.53, 0.07)])
def test_rounding_does_not_put_the_break_even_off_by_one(
    full: float, online: float
) -> None:
    for n in range(1, 400):
        costs = Costs(full=full, online=online, offline=n * (full - online))
        assert costs.break_even == n
        later = Costs(full=full, online=online, offline=(n + 0.01) * (full - online))
        assert later.break_even == n + 1
