from __future__ import annotations

import numpy as np
import pytest
import torch
from populations import population
from sklearn.neighbors import NearestNeighbors

from gp_eval.calibration import own_variances
from gp_eval.data import References
from gp_eval.errors import DataError

TABLE = population(9, 14)


def literal(rows: list[list[float]], smoothing: float) -> list[float]:
    n_items, n_models = len(rows), len(rows[0])
    half = [0.0] * n_items
    for k in range(n_models):
        distances = {
            m: sum((row[k] - row[m]) ** 2 for row in rows)
            for m in range(n_models)
            if any(row[k] != row[m] for row in rows)
        }
        nearest = min(distances, key=lambda m: (distances[m], m))
        for i, row in enumerate(rows):
            half[i] += (row[k] - row[nearest]) ** 2 / 2.0 / n_models
    mean = sum(half) / n_items
    return [(n_models * d + smoothing * mean) / (n_models + smoothing) for d in half]


@pytest.mark.parametrize("smoothing", [0.0, 2.0, 7.5])
def test_own_variances_are_those_of_the_literal_formula(smoothing: float) -> None:
    found = own_variances(TABLE, smoothing=smoothing)
    expected = literal(TABLE.scores.tolist(), smoothing)
    assert found.tolist() == pytest.approx(expected, rel=1e-10)


def test_without_smoothing_they_agree_with_nearest_neighbours_of_scikit_learn() -> None:
    scores = TABLE.scores.numpy()
    search = NearestNeighbors(n_neighbors=2).fit(scores.T)
    nearest = search.kneighbors(return_distance=False)[:, 0]
    expected = np.mean((scores - scores[:, nearest]) ** 2, axis=1) / 2.0
    found = own_variances(TABLE, smoothing=0.0)
    assert found.numpy() == pytest.approx(expected, rel=1e-10)


def test_independent_coins_have_nearly_their_own_variance() -> None:
    generator = torch.Generator().manual_seed(0)
    coins = torch.rand(4000, 6, generator=generator, dtype=torch.float64) < 0.3
    table = References(
        coins.double(), [f"q{i}" for i in range(4000)], [f"m{k}" for k in range(6)]
    )
    # Nearest of five others is nearer than the average: somewhat below 0.21.
    assert 0.19 < float(own_variances(table).mean()) < 0.21


def test_an_item_on_which_all_agree_is_not_certain() -> None:
    scores = TABLE.scores.clone()
    scores[3] = 1.0
    table = References(scores, list(TABLE.items), list(TABLE.models))
    assert float(own_variances(table)[3]) > 0.0
    assert float(own_variances(table, smoothing=0.0)[3]) == 0.0


def test_smoothing_keeps_the_sum() -> None:
    plain = own_variances(TABLE, smoothing=0.0)
    assert float(own_variances(TABLE).sum()) == pytest.approx(
        float(plain.sum()), rel=1e-10
    )


def twice(table: References) -> References:
    models = [f"{model}{copy}" for copy in "ab" for model in table.models]
    return References(table.scores.repeat(1, 2), list(table.items), models)


def test_models_that_are_there_twice_do_not_make_items_certain() -> None:
    found = own_variances(twice(TABLE), smoothing=0.0)
    plain = own_variances(TABLE, smoothing=0.0)
    assert found.tolist() == pytest.approx(plain.tolist(), rel=1e-10)


def test_references_that_cannot_tell_are_refused() -> None:
    single = TABLE.subset(models=TABLE.models[:1])
    for table in (single, twice(single)):
        with pytest.raises(ValueError, match="at least 2 different ones, got [12] of"):
            own_variances(table)
    gap = TABLE.scores.clone()
    gap[0, 0] = torch.nan
    gappy = References(gap, list(TABLE.items), list(TABLE.models), missing="keep")
    with pytest.raises(DataError, match="calibrated: 1 missing cells"):
        own_variances(gappy)
