from __future__ import annotations

import pytest

from gp_eval.planning.content import Estimate, Forecast, Quantiles
from gp_eval.planning.recommend import acceptable, recommend
from gp_eval.stopping import StoppingRule

ASKED = StoppingRule(width=0.03, stable=0.004, window=20)


def number(value: float) -> Estimate:
    return Estimate(value=value, low=value, high=value)


def found(
    model: str,
    items: float,
    *,
    width: float = 0.03,
    regime: str = "interpolation",
    rmse: float = 0.008,
    coverage: float = 0.95,
    stopped: float = 1.0,
) -> Forecast:
    return Forecast(
        model=model,
        regime=regime,
        width=width,
        items=number(items),
        spread=Quantiles(q10=items, q50=items, q90=items),
        narrow=items,
        projected=items,
        rmse=number(rmse),
        coverage=number(coverage),
        stopped=stopped,
        runs=40,
        targets=40,
        references=30,
        acceptable=acceptable(
            rmse=rmse, coverage=coverage, stopped=stopped, asked=0.03
        ),
    )


@pytest.mark.parametrize(
    ("rmse", "coverage", "stopped", "wanted"),
    [
        (0.0099, 0.9, 0.9, True),
        (0.0101, 0.95, 1.0, False),
        (0.005, 0.89, 1.0, False),
        (0.005, 0.95, 0.89, False),
    ],
)
def test_acceptable_needs_error_coverage_and_stops(
    rmse: float, coverage: float, stopped: float, wanted: bool
) -> None:
    asked = acceptable(rmse=rmse, coverage=coverage, stopped=stopped, asked=0.03)
    assert asked is wanted


def test_the_fewest_items_among_acceptable_models_win() -> None:
    best = recommend(
        [found("a", 100), found("b", 80), found("c", 20, coverage=0.6)], ASKED
    )
    assert (best.model, best.items, best.acceptable) == ("b", 80, True)
    assert (best.width, best.stable, best.window) == (0.03, 0.004, 20)


def test_each_model_enters_with_its_widest_acceptable_width() -> None:
    best = recommend(
        [
            found("a", 50, rmse=0.02),
            found("a", 70, width=0.02),
            found("a", 90, width=0.01),
            found("b", 100),
        ],
        ASKED,
    )
    assert (best.model, best.width, best.items) == ("a", 0.02, 70)


def test_a_model_has_to_be_acceptable_in_every_regime() -> None:
    outside = {"regime": "extrapolation"}
    best = recommend(
        [
            found("a", 50),
            found("a", 60, coverage=0.7, **outside),
            found("b", 100),
            found("b", 140, **outside),
        ],
        ASKED,
    )
    assert (best.model, best.items) == ("b", 120)


def test_the_first_of_equal_models_is_taken() -> None:
    assert recommend([found("b", 80), found("a", 80)], ASKED).model == "b"


def test_without_an_acceptable_model_the_highest_coverage_is_named_as_such() -> None:
    best = recommend(
        [
            found("a", 50, coverage=0.5),
            found("b", 90, coverage=0.8),
            found("c", 10, coverage=0.99, stopped=0.2),
        ],
        ASKED,
    )
    assert (best.model, best.acceptable) == ("b", False)
    assert best.reason.startswith("no model is acceptable")
    assert "coverage 80%" in best.reason


def test_runs_that_were_cut_are_part_of_the_reason() -> None:
    best = recommend([found("a", 500, stopped=0.25)], ASKED)
    assert "75% of runs were cut" in best.reason


def test_nothing_to_choose_from_is_an_error() -> None:
    with pytest.raises(ValueError, match="at least one"):
        recommend([], ASKED)
