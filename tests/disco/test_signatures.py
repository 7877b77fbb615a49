from __future__ import annotations

import sys
import types

import numpy as np
import pytest
import torch
from populations import random_probabilities

from gp_eval.disco.signatures import (
    Principal,
    Umap,
    probability_signatures,
    score_signatures,
)
from gp_eval.errors import DataError, MissingDependencyError


def signatures(n: int, d: int, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(n, d, generator=generator, dtype=torch.float64)


def test_signatures_put_responses_side_by_side() -> None:
    f = random_probabilities(3, 4, 2)
    expected = [
        [float(f[m, i, c]) for i in range(4) for c in range(2)] for m in range(3)
    ]
    found = probability_signatures(f)
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-14)
    assert found.data_ptr() != f.data_ptr()
    scores = torch.rand(4, 3)
    assert score_signatures(scores).tolist() == scores.double().T.tolist()
    with pytest.raises(DataError, match="log-likelihoods go through"):
        probability_signatures(f.log())


@pytest.mark.parametrize("shape", [(8, 20), (20, 8)])
def test_components_are_those_of_the_singular_value_decomposition(
    shape: tuple[int, int],
) -> None:
    values = signatures(*shape)
    found = Principal.fit(values, 3)
    centred = values - values.mean(0)
    _, _, rows = torch.linalg.svd(centred, full_matrices=False)
    assert found.components is not None
    agreement = (found.components * rows[:3]).sum(-1).abs()
    torch.testing.assert_close(agreement, torch.ones(3).double(), rtol=1e-12, atol=0)
    torch.testing.assert_close(
        found(values).abs(), (centred @ rows[:3].T).abs(), rtol=1e-9, atol=1e-12
    )


def test_components_are_clipped_to_what_the_data_allow() -> None:
    assert Principal.fit(signatures(6, 30), 256)(signatures(2, 30)).shape == (2, 5)
    assert Principal.fit(signatures(30, 6), 256)(signatures(2, 6)).shape == (2, 6)
    twins = signatures(4, 30)[[0, 0, 1, 1, 2, 3]]
    assert Principal.fit(twins, 256)(twins).shape == (6, 3)


def test_clipped_components_keep_all_distances_between_references() -> None:
    values = signatures(10, 40)
    features = Principal.fit(values, 256)(values)
    torch.testing.assert_close(torch.pdist(features), torch.pdist(values))


def test_padding_changes_no_feature() -> None:
    values, later = signatures(10, 12), signatures(3, 12, seed=1)
    padding = torch.zeros(10, 25, dtype=torch.float64)
    plain = Principal.fit(values, 5)
    padded = Principal.fit(torch.cat([values, padding], 1), 5)
    with_padding = torch.cat([later, padding[:3]], 1)
    torch.testing.assert_close(padded(with_padding), plain(later))


@pytest.mark.parametrize("shape", [(8, 30), (30, 8)])
def test_whole_signatures_keep_all_distances_and_products(
    shape: tuple[int, int],
) -> None:
    values, later = signatures(*shape), signatures(5, shape[1], seed=1)
    reducer = Principal.whole(values)
    features, new = reducer(values), reducer(later)
    assert features.shape == (shape[0], min(shape[0] - 1, shape[1]) + 1)
    mean = values.mean(0)
    close = torch.testing.assert_close
    close(torch.cdist(new, features), torch.cdist(later, values))
    close(features @ features.T, (values - mean) @ (values - mean).T)
    close(new @ features.T, (later - mean) @ (values - mean).T)
    close(new.norm(dim=1), (later - mean).norm(dim=1))
    if shape[0] < shape[1]:  # what components alone leave out
        assert float(new[:, -1].min()) > 1.0


def test_without_components_signatures_are_only_centred() -> None:
    values = signatures(5, 3)
    found = Principal.fit(values, None)
    torch.testing.assert_close(found(values), values - values.mean(0))


@pytest.mark.parametrize("n_components", [None, 4])
def test_equal_signatures_are_refused(n_components: int | None) -> None:
    with pytest.raises(DataError, match="all references respond alike"):
        Principal.fit(torch.ones(4, 3, dtype=torch.float64), n_components)


def test_no_component_is_refused() -> None:
    with pytest.raises(ValueError, match="pca: expected at least 1, got 0"):
        Principal.fit(signatures(4, 3), 0)


def test_umap_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "umap", None)
    with pytest.raises(MissingDependencyError, match=r"gp-eval\[umap\]"):
        Umap(signatures(5, 3), 2, seed=0)


def test_umap_is_made_with_the_seed_and_keeps_the_references_features(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With a stand-in: umap-learn is optional and heavy."""
    made = {}

    class Stub:
        def __init__(self, **options: int) -> None:
            made.update(options)

        def fit_transform(self, values: np.ndarray) -> np.ndarray:
            return np.float32(values[:, :2])

        def transform(self, values: np.ndarray) -> np.ndarray:
            return np.float32(values[:, :2] + 1.0)

    monkeypatch.setitem(sys.modules, "umap", types.SimpleNamespace(UMAP=Stub))
    values = signatures(5, 3)
    reducer = Umap(values, 2, seed=7)
    assert made == {"n_components": 2, "random_state": 7, "n_jobs": 1}
    assert reducer(values).dtype == torch.float64
    torch.testing.assert_close(reducer(values), values[:, :2].float().double())
    torch.testing.assert_close(
        reducer(values[:2]), (values[:2, :2] + 1).float().double()
    )
    assert reducer.arrays()["signatures"].shape == (5, 3)
