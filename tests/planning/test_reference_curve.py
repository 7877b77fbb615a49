from __future__ import annotations

import numpy as np
import pytest
import torch
from plans import done

from gp_eval.planning.reference_curve import fit_inverse, reference_curve
from gp_eval.stopping import StoppingRule

N, RUNS = 80, 6
RULE = StoppingRule(width=0.1, stable=0.05, window=2)
NAMES = tuple("abcdef")


def test_the_fit_is_that_of_a_line_in_the_inverse() -> None:
    sizes = np.array([5.0, 11.0, 40.0])
    values = np.random.default_rng(0).normal(size=(4, 3))
    found = fit_inverse(sizes, values)
    for row, (a, b) in zip(values, found, strict=True):
        slope, intercept = np.polyfit(1 / sizes, row, 1)
        assert (a, b) == pytest.approx((intercept, slope), rel=1e-9)
        design = np.stack([np.ones(3), 1 / sizes], axis=1)
        normal = np.linalg.solve(design.T @ design, design.T @ row)
        assert (a, b) == pytest.approx(tuple(normal), rel=1e-9)


def at_size(size: int, pool: int = 40, spread: float = 0.0):
    """Runs of ``20 + 200 / size`` items and squared error ``1e-4 (1 + 4 / size)``."""
    stop = 20 + 200 / size + spread * torch.arange(RUNS, dtype=torch.float64)
    n = torch.arange(1, N + 1, dtype=torch.float64)
    wide = n.unsqueeze(0) < stop.round().unsqueeze(-1)
    variance = torch.where(wide, 1.0, 1e-4).double()
    error = 1e-2 * np.sqrt(1 + 4 / size)
    truth = torch.zeros(RUNS, dtype=torch.float64)
    mean = torch.full((RUNS, N), error, dtype=torch.float64)
    return done(mean, variance, truth, targets=NAMES, n_items=N, pool=pool, size=size)


def test_a_planted_curve_is_found_and_extrapolated() -> None:
    groups = [[at_size(size)] for size in (10, 20, 40)]
    curve = reference_curve(groups, RULE, n_references=50, more=10, seed=0)
    assert curve.sizes == [10, 20, 40]
    assert curve.items == pytest.approx([40, 30, 25])
    assert curve.at_n == 25
    assert curve.items_now.value == pytest.approx(20 + 200 / 50)
    assert curve.items_more.value == pytest.approx(20 + 200 / 60)
    change = (20 + 200 / 60) / 24 - 1
    assert curve.items_change.value == pytest.approx(change)
    assert curve.rmse_now.value == pytest.approx(1e-2 * np.sqrt(1 + 4 / 50))
    assert curve.rmse_more.value == pytest.approx(1e-2 * np.sqrt(1 + 4 / 60))
    # All targets are alike here, so that resampling changes nothing.
    assert curve.items_change.low == pytest.approx(curve.items_change.high)


def test_targets_that_differ_give_an_interval() -> None:
    groups = [[at_size(size, spread=2.0)] for size in (10, 20, 40)]
    curve = reference_curve(groups, RULE, n_references=50, more=10, seed=0)
    assert curve.items_now.low < curve.items_now.value < curve.items_now.high
    assert curve.items_change.low < curve.items_change.value < 0


def test_another_form_than_the_curve_is_in_the_interval() -> None:
    """Items that fall in proportion to the references, which ``a + b / K`` cannot."""
    groups = [[at_size(size)] for size in (10, 20, 40)]
    stops = (50, 45, 35)
    for (of,), stop in zip(groups, stops, strict=True):
        n = torch.arange(1, N + 1).expand(RUNS, -1)
        of.curves.variance.copy_(torch.where(n < stop, 1.0, 1e-4))
    curve = reference_curve(groups, RULE, n_references=50, more=10, seed=0)
    near = fit_inverse(np.array([20.0, 40.0]), np.array([45.0, 35.0]))
    every = fit_inverse(np.array([10.0, 20.0, 40.0]), np.array([50.0, 45.0, 35.0]))
    by_near, by_every = (float(a + b / 60) for a, b in (near, every))
    assert curve.items_more.value == pytest.approx(by_near, rel=1e-10)
    assert curve.items_more.low == pytest.approx(min(by_near, by_every), rel=1e-10)
    assert curve.items_more.high == pytest.approx(max(by_near, by_every), rel=1e-10)


def test_no_error_at_all_does_not_change() -> None:
    groups = [[at_size(size)] for size in (10, 20, 40)]
    for (of,) in groups:
        of.curves.mean.zero_()
    curve = reference_curve(groups, RULE, n_references=50, more=10, seed=0)
    assert curve.rmse_now.value == curve.rmse_change.value == 0.0


def test_other_targets_are_refused() -> None:
    other = at_size(20)
    fold = other.task.fold
    moved = type(fold)(fold.regime, NAMES[::-1], fold.pool, fold.seed, fold.size)
    task = type(other.task)(other.task.model, moved, N)
    mixed = type(other)(task, other.curves, other.truth, N, 0.1)
    with pytest.raises(ValueError, match="same targets"):
        reference_curve(
            [[at_size(10)], [mixed]], RULE, n_references=50, more=10, seed=0
        )
