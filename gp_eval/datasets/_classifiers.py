"""The 99 classifiers of the digits benchmark, as a table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["POOL_SIZE", "SPECS", "ClassifierSpec"]

POOL_SIZE = 697
"""Number of training images; a classifier with this ``n_train`` sees all of them."""

_PIXELS: dict[str, Any] = {
    "all": np.s_[:, :],
    "left": np.s_[:, :4],
    "top": np.s_[:4, :],
    "center": np.s_[2:6, 2:6],
    "even": np.s_[::2, ::2],
    "row0": np.s_[0, :],
    "row7": np.s_[7, :],
    "row34": np.s_[3:5, :],
    "col6": np.s_[:, 6],
    "col34": np.s_[:, 3:5],
}


@dataclass(frozen=True)
class _Step:
    """An estimator by its place in scikit-learn, which is imported only to make it."""

    path: str
    params: Mapping[str, Any]

    def make(self) -> Any:
        module, name = self.path.rsplit(".", 1)
        params = {
            key: value.make() if isinstance(value, _Step) else value
            for key, value in self.params.items()
        }
        return getattr(import_module(f"sklearn.{module}"), name)(**params)


@dataclass(frozen=True)
class ClassifierSpec:
    """One row of the table.

    Attributes:
        label: What sets it apart within the benchmark, but for the training size.
        family: Kind of classifier.
        steps: The last one is the classifier, those before it transform the pixels.
        n_train: Number of training images, at most ``POOL_SIZE``.
        pixels: Part of the 8 x 8 image that the classifier sees.
        label_noise: Share of training labels replaced by random ones.
    """

    label: str
    family: str
    steps: tuple[_Step, ...]
    n_train: int
    pixels: str = "all"
    label_noise: float = 0.0

    @property
    def name(self) -> str:
        """Unique name, such as ``"knn3_n50"``."""
        return f"{self.label}_n{self.n_train}"

    @property
    def columns(self) -> NDArray[np.intp]:
        """Indices of the visible pixels among the 64 of a flattened image."""
        return np.arange(64).reshape(8, 8)[_PIXELS[self.pixels]].ravel()

    def make(self) -> Any:
        """A new scikit-learn pipeline, not yet fitted."""
        from sklearn.pipeline import make_pipeline

        return make_pipeline(*(step.make() for step in self.steps))


def _step(path: str, **params: Any) -> _Step:
    return _Step(path, params)


def _logreg(part: str, n: int, c: float = 1.0, **sees: Any) -> ClassifierSpec:
    step = _step("linear_model.LogisticRegression", C=c, max_iter=60)
    return ClassifierSpec(f"logreg{part}", "logistic regression", (step,), n, **sees)


def _bayes(kind: str, label: str, n: int, **params: Any) -> ClassifierSpec:
    step = _step(f"naive_bayes.{kind}NB", **params)
    return ClassifierSpec(label, f"{kind} naive Bayes", (step,), n)


def _gnb(label: str, n: int, smoothing: float = 1e-2, **sees: Any) -> ClassifierSpec:
    step = _step("naive_bayes.GaussianNB", var_smoothing=smoothing)
    return ClassifierSpec(label, "Gaussian naive Bayes", (step,), n, **sees)


def _knn(
    k: int, n: int, weights: str = "uniform", part: str = "", **sees: Any
) -> ClassifierSpec:
    step = _step("neighbors.KNeighborsClassifier", n_neighbors=k, weights=weights)
    return ClassifierSpec(f"knn{k}{part}", "nearest neighbours", (step,), n, **sees)


def _tree(
    part: str, n: int, seed: int, leaf: int, depth: int | None = None, **sees: Any
) -> ClassifierSpec:
    step = _step(
        "tree.DecisionTreeClassifier",
        max_depth=depth,
        min_samples_leaf=leaf,
        random_state=seed,
    )
    return ClassifierSpec(f"tree{part}", "decision tree", (step,), n, **sees)


def _extra_tree(seed: int) -> ClassifierSpec:
    step = _step("tree.ExtraTreeClassifier", min_samples_leaf=3, random_state=seed)
    return ClassifierSpec(f"extratree_s{seed}", "extra tree", (step,), 400)


def _forest(kind: str, trees: int, depth: int | None, n: int) -> ClassifierSpec:
    path = {"rf": "RandomForestClassifier", "et": "ExtraTreesClassifier"}[kind]
    step = _step(
        f"ensemble.{path}", n_estimators=trees, max_depth=depth, random_state=trees
    )
    family = {"rf": "random forest", "et": "extra trees"}[kind]
    return ClassifierSpec(f"{kind}{trees}_d{depth}", family, (step,), n)


def _bagging(trees: int, n: int) -> ClassifierSpec:
    tree = _step("tree.DecisionTreeClassifier", max_depth=5, random_state=0)
    step = _step(
        "ensemble.BaggingClassifier",
        estimator=tree,
        n_estimators=trees,
        random_state=trees,
    )
    return ClassifierSpec(f"bag{trees}", "bagging", (step,), n)


def _lda(n: int, pixels: str = "all") -> ClassifierSpec:
    step = _step(
        "discriminant_analysis.LinearDiscriminantAnalysis", solver="lsqr", shrinkage=0.2
    )
    return ClassifierSpec(f"lda_{pixels}", "linear discriminant", (step,), n, pixels)


def _mlp(hidden: int, n: int, epochs: int = 25) -> ClassifierSpec:
    network = _step(
        "neural_network.MLPClassifier",
        hidden_layer_sizes=(hidden,),
        max_iter=epochs,
        random_state=hidden,
        learning_rate_init=0.01,
    )
    steps = (_step("preprocessing.StandardScaler"), network)
    return ClassifierSpec(f"mlp{hidden}", "neural network", steps, n)


def _pca(dims: int, head: ClassifierSpec) -> ClassifierSpec:
    step = _step("decomposition.PCA", n_components=dims, svd_solver="full")
    return replace(
        head,
        label=f"pca{dims}_{head.label}",
        family=f"PCA, {head.family}",
        steps=(step, *head.steps),
    )


def _spreading(n: int) -> ClassifierSpec:
    step = _step("semi_supervised.LabelSpreading", kernel="knn", n_neighbors=7)
    return ClassifierSpec("labelspread", "label spreading", (step,), n)


# The position in the table seeds the training subset: append only.
SPECS: tuple[ClassifierSpec, ...] = (
    *(_logreg("_C1", n) for n in (20, 50, 100, 200, 400, POOL_SIZE)),
    *(_logreg(f"_C{c}", 400, c) for c in (1e-5, 1e-4, 1e-3)),
    *(
        _logreg(f"_{part}", 400, pixels=part)
        for part in ("left", "top", "center", "row34", "col34", "even")
    ),
    *(_gnb("gnb", n) for n in (20, 50, 100, 200, 400, POOL_SIZE)),
    _gnb("gnb_rough", POOL_SIZE, smoothing=1e-6),
    *(_bayes("Bernoulli", "bnb", n, binarize=8.0) for n in (30, 100, 400, POOL_SIZE)),
    *(_bayes("Multinomial", "mnb", n) for n in (30, 100, 400, POOL_SIZE)),
    _bayes("Complement", "cnb", POOL_SIZE),
    *(_knn(k, POOL_SIZE) for k in (1, 3, 10, 50)),
    *(
        _knn(k, n, "distance")
        for k, n in ((1, 20), (3, 50), (5, 100), (5, 400), (10, 200))
    ),
    _knn(5, 400, "distance", "_center", pixels="center"),
    *(_tree(f"_d{d}", POOL_SIZE, d, leaf=3, depth=d) for d in (2, 3, 4, 5, 6, 8, 12)),
    *(_tree("", n, seed=n, leaf=2) for n in (50, 100, 200, 400)),
    *(_extra_tree(seed) for seed in (1, 2, 3)),
    _forest("rf", 5, 3, 100),
    _forest("rf", 10, 4, 200),
    _forest("rf", 20, 5, 400),
    _forest("rf", 30, 8, POOL_SIZE),
    _forest("rf", 10, None, 50),
    _forest("et", 5, 3, 200),
    _forest("et", 10, 5, 100),
    _forest("et", 30, 6, POOL_SIZE),
    _forest("et", 30, None, POOL_SIZE),
    _bagging(5, 100),
    _bagging(10, POOL_SIZE),
    *(_lda(n) for n in (100, 400, POOL_SIZE)),
    _lda(400, "left"),
    _lda(400, "top"),
    *(_mlp(hidden, n, 30) for hidden, n in ((4, 200), (8, 400), (16, 200))),
    *(_mlp(hidden, POOL_SIZE) for hidden in (32, 64)),
    *(
        _pca(dims, _logreg("", n))
        for dims, n in ((2, POOL_SIZE), (4, POOL_SIZE), (8, 400))
    ),
    _pca(3, _knn(10, 400)),
    _spreading(100),
    _knn(20, POOL_SIZE),
    _tree("_d1", POOL_SIZE, seed=0, leaf=1, depth=1),
    _knn(1, 10),
    _gnb("gnb", 15),
    *(_logreg(f"_{part}", 400, pixels=part) for part in ("row0", "col6", "row7")),
    _tree("_row7", 400, seed=7, leaf=5, pixels="row7"),
    *(
        _mlp(hidden, n)
        for hidden, n in ((2, 400), (3, POOL_SIZE), (24, 400), (48, POOL_SIZE))
    ),
    *(
        _logreg(f"_noise{z}", n, 1e-3, label_noise=z)
        for z, n in ((0.3, 200), (0.6, 400), (0.8, POOL_SIZE))
    ),
    *(
        _knn(7, n, part=f"_noise{z}", label_noise=z)
        for z, n in ((0.3, POOL_SIZE), (0.5, 400))
    ),
    _gnb("gnb_noise0.5", 400, label_noise=0.5),
)
