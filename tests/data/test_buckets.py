"""Buckets against grouping by comparing every item with every other."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from gp_eval.data import Buckets, References
from gp_eval.errors import DataError


def make(scores: Any, **options: Any) -> References:
    table = np.asarray(scores, dtype=float)
    items = [f"q{i}" for i in range(table.shape[0])]
    return References(table, items, [f"m{k}" for k in range(table.shape[1])], **options)


def groups_by_comparing(rows: list[list[float]]) -> list[list[int]]:
    """Items of each bucket, in the order of the buckets' first items."""
    groups: list[list[int]] = []
    for i, row in enumerate(rows):
        for group in groups:
            if all(a == b for a, b in zip(rows[group[0]], row, strict=True)):
                group.append(i)
                break
        else:
            groups.append([i])
    return groups


def check(buckets: Buckets, groups: list[list[int]]) -> None:
    assert buckets.n_buckets == len(groups)
    assert buckets.n_items == sum(len(group) for group in groups)
    assert buckets.counts.tolist() == [len(group) for group in groups]
    assert buckets.counts.dtype == torch.float64
    expected = [0] * buckets.n_items
    for b, group in enumerate(groups):
        for i in group:
            expected[i] = b
    assert buckets.item_bucket.tolist() == expected


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(("n_items", "n_models"), [(40, 3), (25, 1), (1, 4), (60, 7)])
def test_buckets_are_the_groups_of_equal_rows_in_order_of_their_first_item(
    seed: int, n_items: int, n_models: int
) -> None:
    generator = np.random.default_rng(seed)
    references = make(generator.integers(0, 2, (n_items, n_models)))
    groups = groups_by_comparing(references.scores.tolist())
    buckets = Buckets.from_references(references)
    check(buckets, groups)
    first = [group[0] for group in groups]
    assert torch.equal(buckets.phi, references.scores[first])
    assert torch.equal(buckets.phi[buckets.item_bucket], references.scores)


@pytest.mark.parametrize("seed", range(3))
def test_unique_rows_make_bucket_i_of_item_i(seed: int) -> None:
    references = make(np.random.default_rng(seed).random((30, 2)))
    buckets = Buckets.from_references(references)
    assert buckets.item_bucket.tolist() == list(range(30))
    assert torch.equal(buckets.phi, references.scores)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("shape", [(1, 5), (5, 1), (4, 3)])
def test_the_memory_order_of_the_scores_does_not_matter(
    order: Any, shape: tuple[int, int]
) -> None:
    scores = np.array(np.random.default_rng(0).random(shape), order=order)
    buckets = Buckets.from_references(make(scores))
    check(buckets, groups_by_comparing(scores.tolist()))


def test_minus_zero_is_the_same_score_as_zero() -> None:
    buckets = Buckets.from_references(make([[0.0, 1.0], [-0.0, 1.0], [0.0, -1.0]]))
    check(buckets, [[0, 1], [2]])


def test_scores_one_bit_apart_are_in_different_buckets() -> None:
    near = math.nextafter(0.1, 1.0)
    buckets = Buckets.from_references(make([[0.1, 0.5], [near, 0.5], [0.1, 0.5]]))
    check(buckets, [[0, 2], [1]])


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("tolerance", [0.05, 0.25, 1.0])
def test_a_tolerance_groups_rounded_rows_and_phi_is_their_mean(
    seed: int, tolerance: float
) -> None:
    generator = np.random.default_rng(seed)
    references = make(generator.normal(scale=0.3, size=(40, 2)))
    rounded = [
        [float(round(s / tolerance)) for s in row] for row in references.scores.tolist()
    ]
    groups = groups_by_comparing(rounded)
    assert len(groups) < 40 or tolerance == 0.05
    buckets = Buckets.from_references(references, tolerance=tolerance)
    check(buckets, groups)
    for b, group in enumerate(groups):
        mean = references.scores[group].mean(0)
        torch.testing.assert_close(buckets.phi[b], mean, rtol=1e-14, atol=1e-15)


def test_a_tolerance_leaves_the_references_as_they_are() -> None:
    references = make([[0.1, 0.1], [0.12, 0.1]])
    Buckets.from_references(references, tolerance=0.5)
    assert references.scores.tolist() == [[0.1, 0.1], [0.12, 0.1]]


def test_without_a_tolerance_nearly_equal_rows_stay_apart() -> None:
    references = make([[0.5, 1.0], [0.5 + 1e-9, 1.0]])
    assert Buckets.from_references(references).n_buckets == 2
    assert Buckets.from_references(references, tolerance=1e-6).n_buckets == 1


@pytest.mark.parametrize("tolerance", [-0.1, -math.inf, math.nan])
def test_a_tolerance_that_is_no_number_of_at_least_0_is_refused(
    tolerance: float,
) -> None:
    with pytest.raises(DataError, match=f"tolerance: .*{tolerance}"):
        Buckets.from_references(make(np.eye(2)), tolerance=tolerance)


def test_missing_cells_are_refused_with_their_number_and_the_choices() -> None:
    references = make([[0.5, math.nan], [math.nan, 0.5], [1, 1]], missing="keep")
    with pytest.raises(DataError, match="2 missing cells; .*'drop-items'"):
        Buckets.from_references(references)


def test_buckets_are_nearly_unique_if_at_most_margin_items_are_not() -> None:
    # 7 items in 5 buckets: B = N - 2.
    buckets = Buckets.from_references(make([[0], [0], [1], [2], [2], [3], [4]]))
    assert (buckets.n_items, buckets.n_buckets) == (7, 5)
    assert not buckets.unique(margin=0)
    assert not buckets.unique(margin=1)
    assert buckets.unique(margin=2)
    assert buckets.unique(margin=3)


@pytest.mark.parametrize(("copies", "expected"), [(10, True), (11, False)])
def test_the_margin_is_10_by_default(copies: int, expected: bool) -> None:
    scores = [[float(i)] for i in range(30)] + [[0.0]] * copies
    assert Buckets.from_references(make(scores)).unique() is expected


def test_the_weights_of_unweighted_items_are_exactly_1() -> None:
    buckets = Buckets.from_references(make(np.random.default_rng(0).random((49, 2))))
    assert buckets.item_weights.tolist() == [1.0] * 49
    assert buckets.item_weights.dtype == torch.float64


@pytest.mark.parametrize("n_items", [6, 23, 49])
def test_equal_weights_are_exactly_1(n_items: int) -> None:
    scores = np.random.default_rng(0).random((n_items, 2))
    buckets = Buckets.from_references(make(scores, item_weights=[0.1] * n_items))
    assert buckets.item_weights.tolist() == [1.0] * n_items


def test_weights_are_scaled_to_sum_to_the_number_of_items() -> None:
    weights = [1.0, 3.0, 0.0, 4.0]
    buckets = Buckets.from_references(make(np.zeros((4, 2)), item_weights=weights))
    assert buckets.item_weights.tolist() == [0.5, 1.5, 0.0, 2.0]
    generator = np.random.default_rng(0)
    many = make(generator.random((50, 2)), item_weights=generator.random(50))
    assert float(Buckets.from_references(many).item_weights.sum()) == pytest.approx(50)


def test_the_inputs_are_phi_with_the_count_as_last_column() -> None:
    buckets = Buckets.from_references(make([[0.0, 0.5], [1.0, 0.5], [0.0, 0.5]]))
    assert buckets.inputs.tolist() == [[0.0, 0.5, 2.0], [1.0, 0.5, 1.0]]


def test_buckets_move_to_a_device_whole() -> None:
    references = make([[0.0], [1.0], [0.0]], item_weights=[1, 2, 3])
    buckets = Buckets.from_references(references)
    moved = buckets.to("meta")
    for name in ("phi", "counts", "item_bucket", "item_weights"):
        assert getattr(moved, name).device.type == "meta"
        assert getattr(moved, name).shape == getattr(buckets, name).shape
        assert getattr(buckets, name).device.type == "cpu"


def test_buckets_of_real_scores_are_the_groups_of_equal_rows(shared_data: Path) -> None:
    path = shared_data / "benchpred_commonsense.npz"
    references = References.read(path, duplicate_models="number")
    groups: dict[tuple[float, ...], list[int]] = {}
    for i, row in enumerate(references.scores.tolist()):
        groups.setdefault(tuple(row), []).append(i)
    buckets = Buckets.from_references(references)
    check(buckets, list(groups.values()))
    assert buckets.n_buckets < buckets.n_items
