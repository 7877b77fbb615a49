from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from simulated import N, result

from gp_eval.experiments import evaluation_weighted_rmse
from gp_eval.experiments.paired import RmseRatio, geometric_mean, rmse_ratio
from gp_eval.experiments.store import CellResult
from gp_eval.experiments.summary import summarise


def both(n_seeds: int = 4, **options) -> tuple[list[CellResult], list[CellResult]]:
    mine = [
        result(100 + seed, n_targets=5, model="mine", error=0.03, **options)
        for seed in range(n_seeds)
    ]
    for i, r in enumerate(mine):  # other errors than the base's, the same seeds
        object.__setattr__(r.cell, "seed", i)
    base = [result(seed, n_targets=5, model="base") for seed in range(n_seeds)]
    return mine, base


def integral(squares: np.ndarray, n_items: int = N) -> float:
    """The trapezoid rule over n = 1.. of x RMSE(x), written out."""
    rmse = np.sqrt(squares.reshape(-1, squares.shape[-1]).mean(0))
    total = 0.0
    for n in range(1, len(rmse)):
        left, right = n / n_items * rmse[n - 1], (n + 1) / n_items * rmse[n]
        total += (left + right) / 2 / n_items
    return 1e4 * total


def squares_of(results: list[CellResult]) -> np.ndarray:
    return np.stack(
        [(r.curves.mean - r.truth.unsqueeze(-1)).square().numpy() for r in results]
    )


def test_ratio_is_that_of_the_integrals_that_summaries_show() -> None:
    mine, base = both()
    got = rmse_ratio(mine, base)
    (summary,), (other,) = summarise(mine), summarise(base)
    own = float(evaluation_weighted_rmse(summary.rmse))
    theirs = float(evaluation_weighted_rmse(other.rmse))
    assert got.integral == pytest.approx(own, rel=1e-10)
    assert got.base_integral == pytest.approx(theirs, rel=1e-10)
    assert got.ratio == pytest.approx(own / theirs, rel=1e-10)
    assert got.integral == pytest.approx(integral(squares_of(mine)), rel=1e-10)
    assert (got.n_first, got.n_max, got.n_seeds, got.n_targets) == (1, N, 4, 5)


def test_standard_error_leaves_out_targets_and_seeds_in_both() -> None:
    mine, base = both()
    a, b = squares_of(mine), squares_of(base)

    def variance(left: list[tuple[np.ndarray, np.ndarray]]) -> float:
        logs = [math.log(integral(x) / integral(y)) for x, y in left]
        n = len(logs)
        return (n - 1) / n * sum((v - sum(logs) / n) ** 2 for v in logs)

    targets = variance([(np.delete(a, t, 1), np.delete(b, t, 1)) for t in range(5)])
    seeds = variance([(np.delete(a, s, 0), np.delete(b, s, 0)) for s in range(4)])
    flat = [x.reshape(20, N) for x in (a, b)]
    runs = variance([tuple(np.delete(x, r, 0) for x in flat) for r in range(20)])
    expected = math.sqrt(max(targets + seeds - runs, targets, seeds))
    got = rmse_ratio(mine, base)
    assert got.log_se == pytest.approx(expected, rel=1e-10)
    assert got.se == pytest.approx(got.ratio * expected, rel=1e-10)


def test_a_model_against_itself_is_1_without_error() -> None:
    _, base = both()
    got = rmse_ratio(base, base)
    assert got.ratio == 1.0
    assert got.log_se == 0.0


def test_errors_that_go_together_are_told_apart_better() -> None:
    mine, base = both(n_seeds=8)
    scaled = []
    for r in base:  # the base's errors, each a little smaller
        curves = r.curves.mean - 0.1 * (r.curves.mean - r.truth.unsqueeze(-1))
        scaled.append(
            CellResult(
                **{**vars(r), "curves": type(r.curves)(curves, r.curves.variance)}
            )
        )
    paired, apart = rmse_ratio(scaled, base), rmse_ratio(mine, base)
    assert paired.ratio == pytest.approx(0.9, rel=1e-10)
    assert paired.log_se < 1e-10
    assert apart.log_se > 0.01


def test_only_runs_and_items_that_both_have_count() -> None:
    mine, base = both()
    cut = [
        result(seed, n_targets=5, model="base", n_max=25, error=0.05)
        for seed in range(4)
    ]
    for short, whole in zip(cut, base, strict=True):
        short.curves.mean.copy_(whole.curves.mean[:, :25])
    got = rmse_ratio(mine[1:], cut[:3])
    assert (got.n_seeds, got.n_max) == (2, 25)
    expected = integral(squares_of(mine[1:3])[..., :25])
    assert got.integral == pytest.approx(expected, rel=1e-10)
    assert got.ratio == pytest.approx(
        expected / integral(squares_of(base[1:3])[..., :25]), rel=1e-10
    )


def test_items_before_a_joint_model_was_trained_do_not_count() -> None:
    mine, base = both()
    for r in mine:
        r.curves.mean[:, :6] = torch.nan
    got = rmse_ratio(mine, base)
    assert got.n_first == 7
    squares = squares_of(base)
    squares[..., :6] = 0.0  # x RMSE is 0 there, but for the corner after it
    corner = 1e4 * 7 / N * math.sqrt(squares[..., 6].mean()) / 2 / N
    assert got.base_integral == pytest.approx(integral(squares) - corner, rel=1e-10)


def test_results_that_do_not_belong_together_are_refused() -> None:
    mine, base = both()
    with pytest.raises(ValueError, match="expected a common seed and draw"):
        rmse_ratio(mine[:1], base[1:])
    other = [result(0, n_targets=5, fingerprint="y")]
    with pytest.raises(ValueError, match="expected one setting"):
        rmse_ratio(mine, other)
    with pytest.raises(ValueError, match="expected the same targets"):
        rmse_ratio(mine, [result(0, n_targets=4)])


def test_geometric_mean_over_cells() -> None:
    def ratio(value: float, log_se: float) -> RmseRatio:
        return RmseRatio(value, log_se, 1.0, 1.0, 1, N, 2, 2)

    value, error = geometric_mean([ratio(0.5, 0.3), ratio(2.0, 0.4), ratio(0.125, 0)])
    assert value == pytest.approx(0.5, rel=1e-10)
    assert error == pytest.approx(0.5 / 3, rel=1e-10)
    with pytest.raises(ValueError, match="ratios: expected at least one"):
        geometric_mean([])
