"""Forests and boosted trees as plain arrays: what is saved, and what predicts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor

from gp_eval.disco.prediction import Prediction

__all__ = ["TreeEnsemble"]


@dataclass(frozen=True)
class TreeEnsemble:
    r"""Regression trees with one node in each place of the arrays.

    A model goes from the root of a tree to ``left`` where its feature, rounded to
    single precision as in scikit-learn, is at most the threshold, else to ``right``. In
    a leaf, ``feature`` is -1. The prediction is ``base + scale * sum of the leaves``.

    Attributes:
        roots: Node of each tree's root.
        left: Left child of each node, an index into these arrays.
        right: Right child.
        feature: Feature of the split; -1 in a leaf.
        threshold: Threshold of the split.
        value: Value of a leaf.
        scale: ``1 / trees`` of a forest, the learning rate of boosting.
        base: 0 of a forest, the mean of the targets of boosting.
    """

    roots: np.ndarray
    left: np.ndarray
    right: np.ndarray
    feature: np.ndarray
    threshold: np.ndarray
    value: np.ndarray
    scale: float
    base: float

    @classmethod
    def from_sklearn(
        cls, estimators: Sequence[Any], *, scale: float, base: float
    ) -> Self:
        """The arrays of fitted ``DecisionTreeRegressor`` objects."""
        trees = [estimator.tree_ for estimator in estimators]
        sizes = [tree.node_count for tree in trees]
        roots = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int64)
        feature = np.concatenate([tree.feature for tree in trees]).astype(np.int64)

        def children(name: str) -> np.ndarray:
            parts = [getattr(t, name) + r for t, r in zip(trees, roots, strict=True)]
            return np.where(feature < 0, -1, np.concatenate(parts)).astype(np.int64)

        return cls(
            roots=roots,
            left=children("children_left"),
            right=children("children_right"),
            feature=np.where(feature < 0, -1, feature),
            threshold=np.concatenate([tree.threshold for tree in trees]),
            value=np.concatenate([tree.value[:, 0, 0] for tree in trees]),
            scale=scale,
            base=base,
        )

    def predict(self, features: Tensor) -> Prediction:
        """Prediction of features ``T x F``, without an interval."""
        rows = features.numpy().astype(np.float32)
        nodes = np.tile(self.roots, (len(rows), 1))
        while (inner := self.feature[nodes] >= 0).any():
            split = np.take_along_axis(rows, np.where(inner, self.feature[nodes], 0), 1)
            below = split <= self.threshold[nodes]
            child = np.where(below, self.left[nodes], self.right[nodes])
            nodes = np.where(inner, child, nodes)
        leaves = self.value[nodes].sum(-1)
        return Prediction(torch.from_numpy(self.base + self.scale * leaves))

    def state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Scale and base, and the arrays of the nodes."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        settings = {name: values.pop(name) for name in ("scale", "base")}
        return settings, values

    @classmethod
    def restore(cls, settings: dict[str, Any], arrays: dict[str, np.ndarray]) -> Self:
        """The inverse of :meth:`state`."""
        return cls(**{**arrays, **settings})
