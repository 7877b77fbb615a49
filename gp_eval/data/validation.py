"""Checks of a reference score table; every complaint names the ids."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, Literal, get_args

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from gp_eval._names import some
from gp_eval.errors import DataError

__all__ = [
    "DuplicateModels",
    "Missing",
    "apply_missing",
    "as_groups",
    "as_ids",
    "as_models",
    "as_weights",
    "check_missing",
    "check_scores",
    "positions",
    "some",
]

Missing = Literal["error", "keep", "drop-items", "drop-models", "mean"]
DuplicateModels = Literal["error", "number"]


def as_ids(name: str, ids: Sequence[str], *, unique: bool = True) -> tuple[str, ...]:
    """Ids as a tuple of strings, unique unless told otherwise."""
    if isinstance(ids, str):
        raise DataError(f"{name}: expected a sequence of ids, got the string {ids!r}")
    values = tuple(str(i) for i in ids)
    repeated = [i for i, count in Counter(values).items() if count > 1]
    if unique and repeated:
        raise DataError(f"{name}: expected unique ids, repeated: {some(repeated)}")
    return values


def as_groups(name: str, groups: Sequence[Any]) -> tuple[str, ...]:
    """Group names as a tuple of strings, ``""`` for ``None``, NaN and the like."""
    if isinstance(groups, str):
        raise DataError(f"{name}: expected a sequence of names, got {groups!r}")
    # `is True`: of a cell that holds a list, pandas makes an array.
    return tuple("" if pd.isna(group) is True else str(group) for group in groups)


def as_models(models: Sequence[str], duplicates: DuplicateModels) -> tuple[str, ...]:
    """Model ids; ``"number"`` turns a repeated ``x`` into ``x#2``, ``x#3`` ..."""
    if duplicates not in get_args(DuplicateModels):
        raise DataError(
            f"duplicate_models: expected one of {list(get_args(DuplicateModels))}, "
            f"got {duplicates!r}"
        )
    if duplicates == "error":
        try:
            return as_ids("models", models)
        except DataError as error:
            raise DataError(f"{error}; duplicate_models='number' keeps them") from None
    seen: Counter[str] = Counter()
    numbered = []
    for name in as_ids("models", models, unique=False):
        seen[name] += 1
        numbered.append(name if seen[name] == 1 else f"{name}#{seen[name]}")
    return as_ids("models", numbered)


def check_scores(
    scores: Any, items: tuple[str, ...], models: tuple[str, ...]
) -> np.ndarray:
    """The scores as a checked ``N x K`` float64 array of our own."""
    try:
        if torch.is_tensor(scores):
            scores = scores.detach().cpu().numpy()
        table = np.array(scores, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"scores: expected numbers, got {error}") from error
    if table.shape != (len(items), len(models)):
        raise DataError(
            f"scores: expected shape {(len(items), len(models))} (items x models), "
            f"got {table.shape}"
        )
    if table.size == 0:
        raise DataError(
            "scores: expected at least 1 item and 1 reference model, got "
            f"{len(items)} items and {len(models)} models"
        )
    infinite = np.isinf(table)
    if infinite.any():
        where = [items[i] for i in np.flatnonzero(infinite.any(1))]
        raise DataError(f"scores: expected finite scores, infinite on {some(where)}")
    empty = np.isnan(table).all(1)
    if empty.any():
        where = [items[i] for i in np.flatnonzero(empty)]
        raise DataError(f"scores: no reference model has a score on {some(where)}")
    return table


def as_weights(weights: Any, items: tuple[str, ...]) -> Tensor:
    """Item weights as a float64 tensor of shape ``N`` with sum 1."""
    if weights is None:
        return torch.full((len(items),), 1.0 / len(items), dtype=torch.float64)
    try:
        values = torch.as_tensor(weights, dtype=torch.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"item_weights: expected numbers, got {error}") from error
    if values.shape != (len(items),):
        raise DataError(
            f"item_weights: expected one per item ({len(items)}), "
            f"got shape {tuple(values.shape)}"
        )
    bad = [items[i] for i in torch.nonzero(~(values >= 0) | values.isinf()).flatten()]
    if bad:
        raise DataError(
            f"item_weights: expected finite weights >= 0, not so for {some(bad)}"
        )
    total = float(values.sum())
    if total == 0.0:
        raise DataError("item_weights: expected a positive sum, all are 0")
    if bool((values == values[0]).all()):
        return as_weights(None, items)
    # Weights that sum to 1 already are kept to the last bit: what is read from a file
    # has the fingerprint of what was written.
    return values if abs(total - 1.0) <= 1e-12 else values / total


def positions(
    name: str, known: tuple[str, ...], wanted: Sequence[str] | None
) -> list[int]:
    """Positions of the wanted ids among the known ones (all of them for ``None``)."""
    if wanted is None:
        return list(range(len(known)))
    index = {value: i for i, value in enumerate(known)}
    ids = as_ids(name, wanted)
    unknown = [value for value in ids if value not in index]
    if unknown:
        raise DataError(f"{name}: not in these references: {some(unknown)}")
    if not ids:
        raise DataError(f"{name}: expected at least one id, got none")
    return [index[value] for value in ids]


def check_missing(missing: Missing) -> None:
    """Raise for an unknown policy."""
    if missing not in get_args(Missing):
        raise DataError(
            f"missing: expected one of {list(get_args(Missing))}, got {missing!r}"
        )


def apply_missing(
    table: np.ndarray,
    items: tuple[str, ...],
    models: tuple[str, ...],
    missing: Missing,
) -> tuple[np.ndarray, tuple[str, ...], tuple[str, ...]]:
    """Complete a table with NaN cells by the named policy."""
    gaps = np.isnan(table)
    if missing == "error":
        by_item = [items[i] for i in np.flatnonzero(gaps.any(1))]
        raise DataError(
            f"scores: {int(gaps.sum())} missing cells, on items {some(by_item)}; "
            "choose missing='drop-items', 'drop-models' or 'mean'"
        )
    if missing == "mean":
        return np.where(gaps, np.nanmean(table, 1, keepdims=True), table), items, models
    axis = 1 if missing == "drop-items" else 0
    keep = ~gaps.any(axis)
    if not keep.any():
        raise DataError(f"missing={missing!r}: no complete row or column is left")
    if missing == "drop-items":
        return table[keep], tuple(np.array(items)[keep].tolist()), models
    return table[:, keep], items, tuple(np.array(models)[keep].tolist())
