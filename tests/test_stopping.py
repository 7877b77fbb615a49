from __future__ import annotations

import pytest

from gp_eval.stopping import StoppingRule

RULE = StoppingRule(width=0.03, stable=0.005, window=3)


def test_both_conditions_are_needed() -> None:
    calm, wild = [0.5, 0.502, 0.504], [0.5, 0.51, 0.504]
    assert RULE.met(calm, 0.03)
    assert not RULE.met(calm, 0.031)
    assert not RULE.met(wild, 0.03)


def test_window_holds_the_last_estimates_only() -> None:
    assert RULE.met([0.9, 0.5, 0.502, 0.504], 0.01)
    assert not RULE.met([0.9, 0.5, 0.502], 0.01)


def test_no_stop_before_the_window_is_full() -> None:
    assert not RULE.met([0.5, 0.5], 0.0)


def test_width_that_is_not_a_number_never_stops() -> None:
    assert not RULE.met([0.5, 0.5, 0.5], float("nan"))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"width": 0.0}, "width: expected a finite number > 0, got 0.0"),
        ({"width": float("nan")}, "width: expected"),
        ({"stable": -1.0}, "stable: expected"),
        ({"window": 0}, "window: expected at least 1"),
        ({"max_items": 0}, "max_items: expected at least 1"),
    ],
)
def test_bad_values_are_named(options: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        StoppingRule(**options)
