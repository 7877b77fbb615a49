from __future__ import annotations

from collections import Counter

import pytest
import torch
from plans import population

from gp_eval.data import References
from gp_eval.errors import DataError
from gp_eval.planning.folds import (
    check_table,
    curve_sizes,
    extrapolation_folds,
    fewer_references,
    interpolation_folds,
)


def folds(table: References, n_targets: int, n_max: int = 40) -> list:
    return interpolation_folds(table, n_targets=n_targets, n_max=n_max, seed=3)


@pytest.mark.parametrize("n_models", [4, 12, 37])
def test_every_reference_is_a_target_once_before_any_is_twice(n_models: int) -> None:
    table = population(n_models=n_models)
    names = [name for fold in folds(table, n_models) for name in fold.targets]
    assert sorted(names) == sorted(table.models)
    twice = [name for fold in folds(table, 2 * n_models) for name in fold.targets]
    assert set(Counter(twice).values()) == {2}


@pytest.mark.parametrize("n_models", [4, 12, 37, 200])
def test_nine_tenths_of_the_references_remain(n_models: int) -> None:
    table = population(n_models=n_models)
    for fold in folds(table, n_models):
        assert len(fold.pool) >= min(0.9 * n_models - 0.5, n_models - 1)
        assert not set(fold.targets) & set(fold.pool)
        assert set(fold.targets) | set(fold.pool) == set(table.models)


def test_repeats_of_a_target_have_other_orders() -> None:
    seeds = [fold.seed for fold in folds(population(), 36)]
    assert len(set(seeds)) == len(seeds)


def test_fewer_references_are_a_fixed_part_of_the_pool() -> None:
    table = population()
    fold = fewer_references(folds(table, 1)[0], 4)
    chosen = fold.references(table)
    assert fold.n_references == len(chosen.models) == 4
    assert set(chosen.models) < set(fold.pool)
    assert fold.references(table).fingerprint == chosen.fingerprint


def test_extrapolation_takes_the_strongest_and_leaves_a_gap() -> None:
    table = population(n_models=30)
    (fold,) = extrapolation_folds(table, gap=0.2, n_max=40, repeats=1, seed=0)
    score = dict(zip(table.models, table.performance.tolist(), strict=True))
    assert len(fold.targets) == 5
    assert len(fold.pool) == 30 - 5 - 6
    between = set(table.models) - set(fold.targets) - set(fold.pool)
    weakest = min(score[name] for name in fold.targets)
    assert weakest >= max(score[name] for name in between)
    assert min(score[n] for n in between) >= max(score[n] for n in fold.pool)


def test_repeats_of_the_extrapolation_differ_in_the_order_alone() -> None:
    found = extrapolation_folds(
        population(n_models=30), gap=0.1, n_max=40, repeats=3, seed=5
    )
    assert [fold.seed for fold in found] == [5, 6, 7]
    assert len({(fold.targets, fold.pool) for fold in found}) == 1


def test_large_sets_are_run_a_few_targets_at_a_time() -> None:
    table = population(n_items=2500, n_models=60)
    few = folds(table, 60, n_max=10_000)
    assert max(len(fold.targets) for fold in few) == 2
    assert max(len(fold.targets) for fold in folds(table, 60, n_max=100)) == 6
    strong = extrapolation_folds(table, gap=0.1, n_max=10_000, repeats=1, seed=0)
    assert [len(fold.targets) for fold in strong] == [2] * 5


def test_models_without_any_score_are_no_targets() -> None:
    table = population()
    scores = table.scores.clone()
    scores[:, 2] = 0.0
    broken = References(scores, table.items, table.models)
    assert "m2" not in check_table(broken)
    assert all("m2" in fold.pool for fold in folds(broken, 11))


def test_sizes_of_the_curve_are_different_and_below_the_pool() -> None:
    assert curve_sizes(80) == [20, 40]
    assert curve_sizes(9) == [2, 4]
    for pool in range(2, 7):
        assert curve_sizes(pool) in ([], [2, 3])


def test_what_cannot_be_planned_is_refused() -> None:
    with pytest.raises(DataError, match="at least 4 with any .* got 3"):
        check_table(population(n_models=3))
    table = population()
    scores = table.scores.clone()
    scores[0, 0] = torch.nan
    holes = References(scores, table.items, table.models, missing="keep")
    with pytest.raises(DataError, match="1 cells are missing"):
        check_table(holes)
    with pytest.raises(DataError, match="gap: 0.8 of 12"):
        extrapolation_folds(table, gap=0.8, n_max=40, repeats=1, seed=0)
