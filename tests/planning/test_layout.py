from __future__ import annotations

import pytest
from plans import population

from gp_eval.planning.layout import FEWEST_RUNS, Amount, amount, lay_out, share_runs
from gp_eval.planning.pilot import PILOT_ITEMS, affordable_items

BOTH = ("interpolation", "extrapolation")


def test_models_share_the_time_and_cheap_ones_leave_theirs_to_others() -> None:
    seconds = {"slow": 1.0, "free": 0.0, "quick": 0.5}
    runs = share_runs(seconds, budget_s=60, jobs=2)
    assert list(runs) == list(seconds)
    assert runs == {"slow": 60, "free": 240, "quick": 120}
    spent = sum(runs[model] * seconds[model] for model in runs)
    assert spent == pytest.approx(120)


def test_every_model_has_a_few_runs_whatever_they_cost() -> None:
    assert share_runs({"slow": 100.0}, budget_s=1, jobs=1) == {"slow": FEWEST_RUNS}


@pytest.mark.parametrize("runs", [10, 30, 100, 240])
def test_an_amount_spends_about_its_runs(runs: int) -> None:
    of = amount(runs, regimes=BOTH, strongest=12, has_curve=True)
    spent = of.interpolation + 12 * of.repeats + 2 * of.on_curve
    assert of.interpolation >= FEWEST_RUNS
    assert of.on_curve <= of.interpolation
    assert of.repeats >= 1
    assert spent <= runs + 12 + 4


def test_only_what_is_asked_for_is_laid_out() -> None:
    inside = amount(100, regimes=("interpolation",), strongest=0, has_curve=False)
    assert inside == Amount(100, 0, 0)
    outside = amount(100, regimes=("extrapolation",), strongest=12, has_curve=True)
    assert outside == Amount(0, 3, 0)


def test_the_curve_has_targets_of_the_forecast_at_two_smaller_sizes() -> None:
    table = population(n_models=20)
    tasks = lay_out(table, {"m": Amount(8, 1, 4)}, gap=0.1, n_max=30, seed=0)
    whole = [t.fold for t in tasks if t.fold.size is None]
    assert sorted(f.regime for f in whole) == ["extrapolation"] + ["interpolation"] * 4
    # The first of each regime comes before all others: it is always run.
    assert [f.regime for f in whole[:2]] == ["interpolation", "extrapolation"]
    inside = [f for f in whole if f.regime == "interpolation"]
    fewer = [t.fold for t in tasks if t.fold.size is not None]
    assert [f.size for f in fewer] == [4, 9, 4, 9]
    assert [f.targets for f in fewer[::2]] == [f.targets for f in inside[:2]]
    assert {task.n_max for task in tasks} == {30}


def test_large_sets_are_cut_where_the_time_is_short() -> None:
    items, seconds = affordable_items(1000, {"m": 4.0}, runs=20, budget_s=20)
    assert items == 500
    assert seconds == {"m": pytest.approx(1.0)}
    assert affordable_items(1000, {"m": 4.0}, runs=20, budget_s=80)[0] == 1000
    assert affordable_items(1000, {"m": 4e6}, runs=20, budget_s=1)[0] == PILOT_ITEMS
    assert affordable_items(150, {"m": 4e6}, runs=20, budget_s=1)[0] == 150
