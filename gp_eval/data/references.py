"""The reference score matrix: what earlier models scored on every item."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from gp_eval.data.validation import (
    DuplicateModels,
    Missing,
    apply_missing,
    as_groups,
    as_ids,
    as_models,
    as_weights,
    check_missing,
    check_scores,
    positions,
    some,
)
from gp_eval.errors import DataError

__all__ = ["References"]


class References:
    """Scores of ``K`` reference models on the ``N`` items of one benchmark.

    Args:
        scores: A ``N x K`` array of real scores; NaN marks a missing cell.
        items: ``N`` unique item ids.
        models: ``K`` unique model ids.
        item_weights: ``N`` non-negative weights of the items in the benchmark score
            ``R = sum_i w_i s_i``; rescaled to sum to 1. Default: ``1 / N`` each, the
            plain mean.
        groups: ``N`` group names (subject, task ...), if the benchmark has them; an
            empty one, ``None`` or NaN for an item in no group.
        probabilities: ``K x N x C`` class probabilities, if they were logged.
        labels: ``N`` indices of the right class in ``probabilities``.
        meta: Provenance (metric, task, direction ...); JSON values only.
        missing: What to do with missing cells: ``"error"``, ``"keep"``,
            ``"drop-items"``, ``"drop-models"`` or ``"mean"`` (the mean of the item
            over the models that have it).
        duplicate_models: ``"error"``, or ``"number"`` to keep repeated model ids
            apart as ``x``, ``x#2`` ...

    Raises:
        DataError: For duplicate ids, infinite scores, an empty table, items without
            any score, or missing cells where ``missing="error"``.

    Example:
        >>> frame = pd.DataFrame({"a": [1.0, 0.0], "b": [1.0, 1.0]}, index=["q1", "q2"])
        >>> References.from_frame(frame).scores.shape
        torch.Size([2, 2])
    """

    def __init__(
        self,
        scores: Tensor | np.ndarray | Sequence[Sequence[float]],
        items: Sequence[str],
        models: Sequence[str],
        *,
        item_weights: Tensor | np.ndarray | Sequence[float] | None = None,
        groups: Sequence[str | None] | None = None,
        probabilities: Tensor | np.ndarray | None = None,
        labels: Tensor | np.ndarray | None = None,
        meta: Mapping[str, Any] | None = None,
        missing: Missing = "error",
        duplicate_models: DuplicateModels = "error",
    ) -> None:
        check_missing(missing)
        self.items = as_ids("items", items)
        self.models = as_models(models, duplicate_models)
        table = check_scores(scores, self.items, self.models)
        self.meta = dict(meta or {})
        self.item_weights = as_weights(item_weights, self.items)
        self.is_weighted = item_weights is not None and not bool(
            (self.item_weights == self.item_weights[0]).all()
        )
        self.groups = None if groups is None else as_groups("groups", groups)
        if self.groups is not None and len(self.groups) != len(self.items):
            raise DataError(
                f"groups: expected one per item ({len(self.items)}), "
                f"got {len(self.groups)}"
            )
        self.probabilities, self.labels = self._classes(probabilities, labels)
        self.scores = torch.from_numpy(table)
        if missing != "keep" and np.isnan(table).any():
            self._complete(missing)

    def _classes(
        self,
        probabilities: Tensor | np.ndarray | None,
        labels: Tensor | np.ndarray | None,
    ) -> tuple[Tensor | None, Tensor | None]:
        shape = (len(self.models), len(self.items))
        if probabilities is not None:
            probabilities = torch.as_tensor(probabilities)
            if probabilities.ndim != 3 or tuple(probabilities.shape[:2]) != shape:
                raise DataError(
                    f"probabilities: expected shape {shape} + (C,), "
                    f"got {tuple(probabilities.shape)}"
                )
        if labels is not None:
            labels = torch.as_tensor(labels)
            if tuple(labels.shape) != shape[1:]:
                raise DataError(
                    f"labels: expected shape {shape[1:]}, got {tuple(labels.shape)}"
                )
        return probabilities, labels

    def _complete(self, missing: Missing) -> None:
        table, items, models = apply_missing(
            self.scores.numpy(), self.items, self.models, missing
        )
        n_missing = int(self.scores.isnan().sum())
        kept = self.subset(items=items, models=models, missing="keep")
        self.__dict__.update(kept.__dict__)
        self.scores = torch.from_numpy(table)
        self.meta["missing"] = {"policy": missing, "cells": n_missing}

    @classmethod
    def from_frame(
        cls,
        frame: pd.DataFrame,
        *,
        item_weights: Sequence[float] | None = None,
        groups: Sequence[str | None] | None = None,
        meta: Mapping[str, Any] | None = None,
        missing: Missing = "error",
        duplicate_models: DuplicateModels = "error",
    ) -> References:
        """Build from a table whose index holds the items and columns the models."""
        try:
            values = frame.to_numpy(dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise DataError(
                f"frame: expected numeric columns, got {error}; the item ids must be "
                "the index"
            ) from error
        return cls(
            values,
            [str(i) for i in frame.index],
            [str(c) for c in frame.columns],
            item_weights=item_weights,
            groups=groups,
            meta=meta,
            missing=missing,
            duplicate_models=duplicate_models,
        )

    @classmethod
    def read(
        cls,
        path: str | Path,
        *,
        missing: Missing = "error",
        duplicate_models: DuplicateModels = "error",
    ) -> References:
        """Read ``.npz``, ``.parquet`` or a wide ``.csv`` (first column: item ids)."""
        from gp_eval.data.files import read_references

        return read_references(
            Path(path), missing=missing, duplicate_models=duplicate_models
        )

    def write(self, path: str | Path) -> None:
        """Write ``.npz``, ``.parquet`` (no probabilities) or ``.csv`` (scores only)."""
        from gp_eval.data.files import write_references

        write_references(self, Path(path))

    @property
    def frame(self) -> pd.DataFrame:
        """The scores as a table, items by models."""
        return pd.DataFrame(
            self.scores.numpy(), index=list(self.items), columns=list(self.models)
        )

    @property
    def n_missing(self) -> int:
        """Number of missing cells."""
        return int(self.scores.isnan().sum())

    @property
    def performance(self) -> Tensor:
        """Full-benchmark score of each reference model, shape ``K``."""
        return self.item_weights @ self.scores

    @property
    def fingerprint(self) -> str:
        """SHA-256 over ids, scores and weights: equal means the same references."""
        digest = hashlib.sha256()
        for ids in (self.items, self.models):
            for name in ids:
                digest.update(name.encode() + b"\0")
            digest.update(b"\1")
        digest.update(np.ascontiguousarray(self.scores.numpy() + 0.0).tobytes())
        digest.update(np.ascontiguousarray(self.item_weights.numpy()).tobytes())
        return digest.hexdigest()

    def subset(
        self,
        *,
        models: Sequence[str] | None = None,
        items: Sequence[str] | None = None,
        missing: Missing = "error",
    ) -> References:
        """The given models and items, in the given order; weights are rescaled.

        Raises:
            DataError: For an id that is not there.
        """
        rows = torch.as_tensor(positions("items", self.items, items))
        columns = torch.as_tensor(positions("models", self.models, models))
        probabilities, labels = self.probabilities, self.labels
        return References(
            self.scores[rows][:, columns],
            [self.items[i] for i in rows],
            [self.models[k] for k in columns],
            item_weights=self.item_weights[rows] if self.is_weighted else None,
            groups=None if self.groups is None else [self.groups[i] for i in rows],
            probabilities=None
            if probabilities is None
            else probabilities[columns][:, rows],
            labels=None if labels is None else labels[rows],
            meta=self.meta,
            missing=missing,
        )

    def without(self, models: Sequence[str]) -> References:
        """All models but the given ones, such as the targets of an experiment."""
        drop = set(np.array(self.models)[positions("models", self.models, models)])
        kept = [name for name in self.models if name not in drop]
        if not kept:
            raise DataError("models: removing all of them leaves no reference")
        return self.subset(models=kept, missing="keep")

    def macro(self) -> References:
        """The same scores with weights of a macro average.

        Every group counts the same, whatever its number of items: the benchmark score
        is the mean over groups of the mean over their items.

        Raises:
            DataError: If there are no groups, or items in none.
        """
        if self.groups is None:
            raise DataError("groups: a macro average needs the group of every item")
        named = zip(self.items, self.groups, strict=True)
        if alone := [item for item, group in named if not group]:
            raise DataError(
                "groups: a macro average needs the group of every item, there is none "
                f"for {some(alone)}"
            )
        size = Counter(self.groups)
        return References(
            self.scores,
            self.items,
            self.models,
            item_weights=[1.0 / size[group] for group in self.groups],
            groups=self.groups,
            probabilities=self.probabilities,
            labels=self.labels,
            meta=self.meta,
            missing="keep",
        )

    def __repr__(self) -> str:
        return (
            f"References(items={len(self.items)}, models={len(self.models)}, "
            f"missing={self.n_missing}, weighted={self.is_weighted})"
        )
