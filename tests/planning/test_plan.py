from __future__ import annotations

import math

import numpy as np
import pytest
from plans import population

from gp_eval._random import random_order
from gp_eval.data import References
from gp_eval.errors import DataError, GpEvalError
from gp_eval.experiments.simulators import make_simulator
from gp_eval.models.protocol import Performance
from gp_eval.planning import Plan, PlanSettings, make_plan
from gp_eval.planning.folds import interpolation_folds
from gp_eval.stopping import StoppingRule

RULE = StoppingRule(width=0.25, stable=0.05, window=5)


def settings(**more) -> PlanSettings:
    defaults = {
        "models": ("rs-mean", "bayesame"),
        "stop": RULE,
        "targets": 6,
        "jobs": 1,
    }
    return PlanSettings(**{**defaults, **more})


@pytest.fixture(scope="module")
def plan() -> Plan:
    return make_plan(population(), settings())


def test_a_plan_has_a_forecast_for_each_model_regime_and_width(plan: Plan) -> None:
    table = population()
    assert plan.fingerprint == table.fingerprint
    assert (plan.n_items, plan.n_references, plan.n_max) == (40, 12, 40)
    found = [(f.model, f.regime) for f in plan.forecasts if f.width == 0.25]
    assert found == [
        (model, regime)
        for model in ("rs-mean", "bayesame")
        for regime in ("interpolation", "extrapolation")
    ]
    assert len(plan.forecasts) == 4 * 4
    assert [curve.model for curve in plan.curves] == ["rs-mean", "bayesame"]
    assert plan.curves[0].sizes == [3, 6, 11]
    assert plan.recommendation.items <= 40


def test_narrower_widths_take_more_items(plan: Plan) -> None:
    for regime in ("interpolation", "extrapolation"):
        items = [
            f.items.value
            for f in plan.forecasts
            if (f.model, f.regime) == ("rs-mean", regime)
        ]
        assert items == sorted(items)


def test_a_forecast_is_that_of_the_runs_one_by_one(plan: Plan) -> None:
    table = population()
    items, squares, covered = [], [], []
    for fold in interpolation_folds(table, n_targets=6, n_max=40, seed=0):
        order = random_order(40, fold.seed)
        for name in fold.targets:
            scores = table.subset(models=[name]).scores.T
            simulator = make_simulator("rs-mean")
            curves = simulator(table.without([name]), scores, order, n_max=40)
            widths = Performance(curves.mean[0], curves.variance[0]).width().tolist()
            row = curves.mean[0].tolist()
            n = next((n for n in range(1, 41) if RULE.met(row[:n], widths[n - 1])), 40)
            items.append(n)
            error = row[n - 1] - float(scores.mean())
            squares.append(error**2)
            covered.append(abs(error) <= widths[n - 1] / 2 + 1e-12)
    (found,) = [f for f in plan.of("rs-mean") if f.regime == "interpolation"]
    assert found.runs == len(items) == 6
    assert found.items.value == pytest.approx(np.mean(items), rel=1e-10)
    assert found.rmse.value == pytest.approx(math.sqrt(np.mean(squares)), rel=1e-10)
    assert found.coverage.value == pytest.approx(np.mean(covered), rel=1e-10)
    assert found.references == 11


def test_a_plan_of_one_seed_is_the_same_plan_with_any_number_of_processes(
    plan: Plan,
) -> None:
    again = make_plan(population(), settings(jobs=2))
    assert again.model_copy(update={"seconds": plan.seconds}) == plan


def test_another_seed_is_another_plan(plan: Plan) -> None:
    other = make_plan(population(), settings(seed=1, models=("rs-mean",)))
    assert other.of("rs-mean")[0].items != plan.of("rs-mean")[0].items


def test_the_forecast_holds_for_targets_it_never_saw() -> None:
    everything = population(n_items=150, n_models=90, seed=4)
    table = everything.subset(models=everything.models[:40])
    rule = StoppingRule(width=0.12, stable=0.02, window=10)
    found = make_plan(
        table,
        settings(models=("rs-mean",), stop=rule, targets=160, more=None),
    ).of("rs-mean")[0]
    items, squares = [], []
    for place in range(40, 90):
        scores = everything.subset(models=[everything.models[place]]).scores.T
        order = random_order(150, 1000 + place)
        curves = make_simulator("rs-mean")(table, scores, order, n_max=150)
        widths = Performance(curves.mean[0], curves.variance[0]).width().tolist()
        row = curves.mean[0].tolist()
        n = next(n for n in range(1, 151) if _met(rule, row, widths, n))
        items.append(n)
        squares.append((row[n - 1] - float(scores.mean())) ** 2)
    assert found.items.value == pytest.approx(np.mean(items), rel=0.1)
    # Fifty errors give their root mean square to a tenth.
    assert found.rmse.value == pytest.approx(math.sqrt(np.mean(squares)), rel=0.3)


def _met(rule: StoppingRule, row: list, widths: list, n: int) -> bool:
    return n == len(row) or rule.met(row[:n], widths[n - 1])


def test_a_model_that_refuses_is_named_and_the_others_go_on() -> None:
    table = population()
    half = References(table.scores * 0.5, table.items, table.models)
    plan = make_plan(half, settings(models=("irt-2pl", "rs-mean")))
    assert list(plan.refused) == ["irt-2pl"]
    assert {f.model for f in plan.forecasts} == {"rs-mean"}
    with pytest.raises(GpEvalError, match="every model refuses .* irt-2pl: "):
        make_plan(half, settings(models=("irt-2pl",)))


@pytest.mark.parametrize("n_models", [4, 5, 7, 10])
def test_small_tables_work(n_models: int) -> None:
    plan = make_plan(population(n_models=n_models), settings(models=("bayesame",)))
    assert plan.n_references == n_models
    assert {f.regime for f in plan.forecasts} == {"interpolation", "extrapolation"}
    assert len(plan.curves) == (n_models >= 7)


def test_three_references_are_too_few() -> None:
    with pytest.raises(DataError, match="at least 4"):
        make_plan(population(n_models=3), settings())


def test_weighted_items_are_planned_for_with_their_weights() -> None:
    table = population()
    groups = ["a"] * 5 + ["b"] * 35
    grouped = References(table.scores, table.items, table.models, groups=groups)
    macro = grouped.macro()
    # Random means are of equal weights alone.
    plan = make_plan(macro, settings(targets=2))
    assert list(plan.refused) == ["rs-mean"]
    assert plan.fingerprint != table.fingerprint
    assert plan.of("bayesame")[0].runs == 2


def test_a_cut_is_counted() -> None:
    plan = make_plan(
        population(),
        settings(
            models=("bayesame",), n_max=8, stop=StoppingRule(width=0.01, window=2)
        ),
    )
    assert plan.n_max == 8
    assert all(f.stopped == 0.0 and f.items.value == 8 for f in plan.forecasts)
    assert not plan.recommendation.acceptable


def test_the_time_decides_how_much_is_simulated(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("gp_eval.planning.work._PATIENCE", math.inf)
    monkeypatch.setattr(
        "gp_eval.planning.work.run_pilot", lambda *a, **k: ({"rs-mean": 0.5}, {})
    )
    runs = []
    for budget in (1.0, 20.0, 40.0):
        wanted = settings(models=("rs-mean",), targets=None, budget_s=budget)
        log = Log()
        make_plan(population(n_models=30), wanted, watch=log)
        runs.append(log.outlooks[0].runs["rs-mean"])
    # Ten and the strongest five at least, then two a second, in whole folds.
    assert runs == pytest.approx([15, 40, 80], abs=6)


def test_what_is_late_is_left_out_but_for_the_first_of_each(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("gp_eval.planning.work._PATIENCE", 0.0)
    late = make_plan(population(n_models=30), settings(targets=None, budget_s=20))
    for model in ("rs-mean", "bayesame"):
        inside, outside = late.of(model)
        assert (inside.runs, outside.runs) == (3, 5)
    assert late.curves == []


class Log:
    def __init__(self) -> None:
        self.outlooks, self.shares = [], []

    def begin(self, outlook) -> None:
        self.outlooks.append(outlook)

    def advance(self, share: float) -> None:
        self.shares.append(share)


def test_progress_is_told_from_the_pilot_to_the_end() -> None:
    log = Log()
    make_plan(population(), settings(), watch=log)
    (outlook,) = log.outlooks
    # Six in interpolation, two orders of the two strongest, three at two sizes.
    assert outlook.runs == {"rs-mean": 16, "bayesame": 16}
    assert sum(log.shares) == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"models": ()}, "models: expected at least one"),
        ({"models": ("rs-mean", "rs-mean")}, "each once"),
        ({"models": ("gp",)}, "model: expected one of"),
        ({"models": ("bayesame-multi",)}, "several targets"),
        ({"regimes": ()}, "regimes: expected at least one"),
        ({"gap": 1.0}, "gap: expected 0 <= gap < 1"),
        ({"targets": 0}, "targets: expected at least 1"),
        ({"jobs": 0}, "jobs: expected at least 1"),
        ({"budget_s": 0.0}, "budget_s: expected more than 0"),
    ],
)
def test_settings_are_checked(wrong: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        PlanSettings(**wrong)


def test_scores_far_from_zero_and_one_are_planned_for() -> None:
    table = population()
    shifted = References(100.0 * table.scores - 30.0, table.items, table.models)
    # Thresholds that no difference of two means meets exactly.
    rule = StoppingRule(width=0.2511, stable=0.0473, window=5)
    large = StoppingRule(width=25.11, stable=4.73, window=5)
    plan = make_plan(shifted, settings(models=("rs-mean",), stop=large))
    plain = make_plan(table, settings(models=("rs-mean",), stop=rule))
    assert plan.of("rs-mean")[0].items.value == pytest.approx(
        plain.of("rs-mean")[0].items.value, rel=1e-10
    )
