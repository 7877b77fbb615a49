from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.ensemble import GradientBoostingRegressor, RandomForestRegressor
from sklearn.linear_model import Lasso
from sklearn.neighbors import KNeighborsRegressor

from gp_eval.disco import fit_predictor, predictor_names
from gp_eval.disco.predictors import restore_predictor
from gp_eval.disco.trees import TreeEnsemble


def data(n: int = 30, f: int = 6) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Centred features, targets, and features of later models."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(n + 9, f, generator=generator, dtype=torch.float64)
    y = 0.5 + 0.1 * x[:, 0] + 0.05 * x[:, 1].square() - 0.02 * x[:, 2]
    return x[:n] - x[:n].mean(0), y[:n], x[n:]


def predicted(name: str, **options: object) -> np.ndarray:
    x, y, later = data()
    return (
        fit_predictor(name, x, y, seed=3, options=options).predict(later).mean.numpy()
    )


def test_ridge_solves_its_normal_equations() -> None:
    x, y, later = data()
    for alpha in (0.1, 10.0):
        left = x.T @ x + alpha * torch.eye(6, dtype=torch.float64)
        coefficients = torch.linalg.solve(left, x.T @ (y - y.mean()))
        expected = y.mean() + later @ coefficients
        np.testing.assert_allclose(
            predicted("ridge", alpha=alpha), expected.numpy(), rtol=1e-10
        )
    np.testing.assert_array_equal(predicted("ridge"), predicted("ridge", alpha=10.0))


def test_lasso_is_scikit_learns_and_zeroes_coefficients() -> None:
    x, y, later = data()
    theirs = Lasso(alpha=0.01).fit(x.numpy(), y.numpy())
    np.testing.assert_allclose(
        predicted("lasso", alpha=0.01), theirs.predict(later.numpy()), rtol=1e-12
    )
    fitted = fit_predictor("lasso", x, y, options={"alpha": 0.05})
    assert int((fitted.coefficients == 0).sum()) >= 3  # type: ignore[attr-defined]


@pytest.mark.parametrize("n_neighbors", [1, 4])
@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
def test_knn_by_loops_over_references(n_neighbors: int, metric: str) -> None:
    x, y, later = data()
    found = predicted("knn", n_neighbors=n_neighbors, metric=metric)
    for t, row in enumerate(later):
        if metric == "cosine":
            distance = [
                1.0 - float(row @ other / row.norm() / other.norm()) for other in x
            ]
        else:
            distance = [float((row - other).norm()) for other in x]
        nearest = sorted(range(len(x)), key=distance.__getitem__)[:n_neighbors]
        assert found[t] == pytest.approx(float(y[nearest].mean()), rel=1e-12)
    theirs = KNeighborsRegressor(n_neighbors, metric=metric).fit(x.numpy(), y.numpy())
    np.testing.assert_allclose(found, theirs.predict(later.numpy()), rtol=1e-12)


def test_trees_predict_what_scikit_learn_predicts() -> None:
    x, y, later = data()
    forest = RandomForestRegressor(100, random_state=3).fit(x.numpy(), y.numpy())
    np.testing.assert_allclose(
        predicted("random-forest"), forest.predict(later.numpy()), rtol=1e-12
    )
    boosted = GradientBoostingRegressor(n_estimators=200, random_state=3)
    boosted.fit(x.numpy(), y.numpy())
    np.testing.assert_allclose(
        predicted("boosting"), boosted.predict(later.numpy()), rtol=1e-12
    )


def test_a_tree_by_walking_down_from_its_root() -> None:
    x, y, later = data()
    trees = fit_predictor("random-forest", x, y, options={"n_estimators": 3})
    assert isinstance(trees, TreeEnsemble)
    found = trees.predict(later).mean
    for t, row in enumerate(later.float()):
        leaves = []
        for root in trees.roots:
            node = root
            while trees.feature[node] >= 0:
                below = float(row[trees.feature[node]]) <= trees.threshold[node]
                node = (trees.left if below else trees.right)[node]
            leaves.append(trees.value[node])
        assert float(found[t]) == pytest.approx(sum(leaves) / 3, rel=1e-12)


@pytest.mark.parametrize("name", predictor_names())
def test_the_state_of_a_predictor_rebuilds_it(name: str) -> None:
    x, y, later = data()
    fitted = fit_predictor(name, x, y, seed=1)
    settings, arrays = fitted.state()
    assert all(array.dtype != object for array in arrays.values())
    restored = restore_predictor(name, settings, arrays)
    first, second = fitted.predict(later), restored.predict(later)
    assert first.mean.dtype == torch.float64
    assert first.mean.tolist() == second.mean.tolist()
    assert (first.std is not None) == (second.std is not None) == (name == "gp")
    again = fit_predictor(name, x, y, seed=1).predict(later)
    assert again.mean.tolist() == first.mean.tolist()


@pytest.mark.parametrize("name", ["random-forest", "boosting"])
def test_trees_follow_the_seed_and_leave_the_global_generator_alone(name: str) -> None:
    x, y, later = data()
    state = np.random.get_state()[1].tolist()  # noqa: NPY002
    first, second = (
        fit_predictor(name, x, y, seed=seed).predict(later).mean for seed in (1, 2)
    )
    assert np.random.get_state()[1].tolist() == state  # noqa: NPY002
    assert first.tolist() != second.tolist()


@pytest.mark.parametrize("name", predictor_names())
def test_every_predictor_beats_the_mean_of_the_references(name: str) -> None:
    x, y, later = data(n=80)
    truth = 0.5 + 0.1 * later[:, 0] + 0.05 * later[:, 1] ** 2 - 0.02 * later[:, 2]
    error = (fit_predictor(name, x, y).predict(later).mean - truth).abs().mean()
    assert float(error) < 0.9 * float((y.mean() - truth).abs().mean())


def test_unknown_names_and_options_are_refused_with_the_known_ones() -> None:
    x, y, _ = data()
    with pytest.raises(ValueError, match="expected one of .*'ridge'.*got 'mlp'"):
        fit_predictor("mlp", x, y)
    with pytest.raises(ValueError, match=r"unknown options \['k'\]; it takes \['n_nei"):
        fit_predictor("knn", x, y, options={"k": 3})
    with pytest.raises(ValueError, match=r"n_neighbors: expected 1..30, got 31"):
        fit_predictor("knn", x, y, options={"n_neighbors": 31})
    with pytest.raises(ValueError, match="ridge: expected at least 2 references"):
        fit_predictor("ridge", x[:1], y[:1])
