"""Predictors by name, from the features of signatures to the benchmark score."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Self, get_args

import numpy as np
import torch
from torch import Tensor

from gp_eval.disco.prediction import Prediction, Predictor
from gp_eval.disco.trees import TreeEnsemble

__all__ = [
    "Linear",
    "NearestModels",
    "PredictorName",
    "fit_predictor",
    "predictor_names",
    "restore_predictor",
]

PredictorName = Literal["gp", "ridge", "lasso", "knn", "random-forest", "boosting"]


@dataclass(frozen=True)
class Linear:
    """``features @ coefficients + intercept``: ridge, lasso, or a weighted mean."""

    coefficients: Tensor
    intercept: float

    def predict(self, features: Tensor) -> Prediction:
        """Prediction of features ``T x F``, without an interval."""
        return Prediction(features @ self.coefficients + self.intercept)

    def state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Intercept and coefficients."""
        arrays = {"coefficients": self.coefficients.numpy()}
        return {"intercept": self.intercept}, arrays

    @classmethod
    def restore(cls, settings: dict[str, Any], arrays: dict[str, np.ndarray]) -> Self:
        """The inverse of :meth:`state`."""
        return cls(torch.from_numpy(arrays["coefficients"]), **settings)


class NearestModels:
    """Mean benchmark score of the nearest references: scikit-learn's kNN.

    Args:
        features: Features of the references, ``K x F``.
        targets: Their benchmark scores, shape ``K``.
        n_neighbors: How many.
        metric: ``"cosine"`` or ``"euclidean"``.
    """

    def __init__(
        self, features: Tensor, targets: Tensor, *, n_neighbors: int, metric: str
    ) -> None:
        from sklearn.neighbors import KNeighborsRegressor

        if not isinstance(n_neighbors, int) or not 1 <= n_neighbors <= len(targets):
            raise ValueError(
                f"n_neighbors: expected 1..{len(targets)}, got {n_neighbors!r}"
            )
        self.features, self.targets = features, targets
        self.settings = {"n_neighbors": n_neighbors, "metric": metric}
        self._regressor = KNeighborsRegressor(algorithm="brute", **self.settings)
        self._regressor.fit(features.numpy(), targets.numpy())

    def predict(self, features: Tensor) -> Prediction:
        """Prediction of features ``T x F``, without an interval."""
        return Prediction(torch.from_numpy(self._regressor.predict(features.numpy())))

    def state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Number of neighbours, metric, and features and scores of the references."""
        return dict(self.settings), {
            "features": self.features.numpy(),
            "targets": self.targets.numpy(),
        }

    @classmethod
    def restore(cls, settings: dict[str, Any], arrays: dict[str, np.ndarray]) -> Self:
        """The inverse of :meth:`state`."""
        features, targets = (
            torch.from_numpy(arrays[name]) for name in ("features", "targets")
        )
        return cls(features, targets, **settings)


def _gp(features: Tensor, targets: Tensor, *, seed: int) -> Predictor:
    from gp_eval.disco.signature_gp import FittedSignatureGP

    return FittedSignatureGP(features, targets)


def _linear(regressor: Any, features: Tensor, targets: Tensor) -> Linear:
    regressor.fit(features.numpy(), targets.numpy())
    coefficients = torch.from_numpy(np.array(regressor.coef_, dtype=np.float64))
    return Linear(coefficients, float(regressor.intercept_))


def _ridge(
    features: Tensor, targets: Tensor, *, seed: int, alpha: float = 10.0
) -> Predictor:
    from sklearn.linear_model import Ridge

    return _linear(Ridge(alpha=alpha), features, targets)


def _lasso(
    features: Tensor, targets: Tensor, *, seed: int, alpha: float = 1e-4
) -> Predictor:
    from sklearn.linear_model import Lasso

    return _linear(Lasso(alpha=alpha, max_iter=100_000), features, targets)


def _knn(
    features: Tensor,
    targets: Tensor,
    *,
    seed: int,
    n_neighbors: int = 1,
    metric: str = "cosine",
) -> Predictor:
    return NearestModels(features, targets, n_neighbors=n_neighbors, metric=metric)


def _random_forest(
    features: Tensor, targets: Tensor, *, seed: int, n_estimators: int = 100
) -> Predictor:
    from sklearn.ensemble import RandomForestRegressor

    forest = RandomForestRegressor(n_estimators=n_estimators, random_state=seed)
    forest.fit(features.numpy(), targets.numpy())
    return TreeEnsemble.from_sklearn(
        forest.estimators_, scale=1.0 / n_estimators, base=0.0
    )


def _boosting(
    features: Tensor,
    targets: Tensor,
    *,
    seed: int,
    n_estimators: int = 200,
    learning_rate: float = 0.1,
) -> Predictor:
    from sklearn.ensemble import GradientBoostingRegressor

    boosted = GradientBoostingRegressor(
        n_estimators=n_estimators, learning_rate=learning_rate, random_state=seed
    )
    boosted.fit(features.numpy(), targets.numpy())
    return TreeEnsemble.from_sklearn(
        boosted.estimators_[:, 0], scale=learning_rate, base=float(targets.mean())
    )


_FIT: dict[str, Callable[..., Predictor]] = {
    "gp": _gp,
    "ridge": _ridge,
    "lasso": _lasso,
    "knn": _knn,
    "random-forest": _random_forest,
    "boosting": _boosting,
}


def predictor_names() -> tuple[str, ...]:
    """Names for :func:`fit_predictor`."""
    return get_args(PredictorName)


def fit_predictor(
    name: str,
    features: Tensor,
    targets: Tensor,
    *,
    seed: int = 0,
    options: Mapping[str, Any] | None = None,
) -> Predictor:
    """Fit across the references.

    Defaults are those of the published code: ridge with ``alpha=10``, lasso with
    ``1e-4``, one neighbour by cosine, 100 trees of a forest, 200 of boosting.

    Args:
        name: One of :func:`predictor_names`.
        features: ``K x F``.
        targets: Benchmark scores, shape ``K``.
        seed: Fixes forests and boosting.
        options: ``alpha`` (ridge, lasso), ``n_neighbors``, ``metric`` (knn),
            ``n_estimators`` (both kinds of trees), ``learning_rate`` (boosting).

    Raises:
        ValueError: For an unknown name or option, or fewer than two references.
    """
    if name not in _FIT:
        raise ValueError(
            f"predictor: expected one of {list(predictor_names())}, got {name!r}"
        )
    options = dict(options or {})
    known = list(inspect.signature(_FIT[name]).parameters)[3:]
    if unknown := [option for option in options if option not in known]:
        raise ValueError(f"{name}: unknown options {unknown}; it takes {known}")
    if len(targets) < 2:
        raise ValueError(f"{name}: expected at least 2 references, got {len(targets)}")
    return _FIT[name](features, targets, seed=seed, **options)


def restore_predictor(
    name: str, settings: dict[str, Any], arrays: dict[str, np.ndarray]
) -> Predictor:
    """The predictor that had this state."""
    if name == "gp":
        from gp_eval.disco.signature_gp import FittedSignatureGP

        return FittedSignatureGP.restore(settings, arrays)
    if name == "knn":
        return NearestModels.restore(settings, arrays)
    kind = TreeEnsemble if name in ("random-forest", "boosting") else Linear
    restored: Predictor = kind.restore(settings, arrays)
    return restored
