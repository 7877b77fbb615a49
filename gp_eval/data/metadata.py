"""Weights of the references from what is known about the models."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_args

import numpy as np
import pandas as pd
from pandas.api import types

from gp_eval.data.validation import as_ids, positions, some
from gp_eval.errors import DataError

__all__ = ["MissingMetadata", "gower_similarity", "weights_from_metadata"]

MissingMetadata = Literal["error", "skip"]


def weights_from_metadata(
    frame: pd.DataFrame,
    target_row: Mapping[str, Any] | pd.Series,
    *,
    models: Sequence[str] | None = None,
    importance: Mapping[str, float] | None = None,
    sharpness: float = 1.0,
    missing: MissingMetadata = "error",
) -> list[float]:
    r"""Weights of the references for the prior of Appendix B.2 of the BayesAME paper.

    The paper leaves open how metadata become weights. Here
    :math:`w_k \propto g_k^{\text{sharpness}}` with Gower's similarity :math:`g_k` of
    reference and target (see :func:`gower_similarity`). The result is a plain list, to
    be given to a model: ``make_model("bayesame", references, weights=weights)``.

    Args:
        frame: Metadata of ``K`` references, one row each, with model ids as index.
        target_row: The target's metadata: a value for each column of ``frame``.
        models: Ids in the order of the weights, such as ``references.models``; default
            the order of ``frame``. Other rows of ``frame`` are not used at all.
        importance: Weights of columns, >= 0; columns not named count 1.
        sharpness: 0 makes all weights equal; the larger it is, the more the most
            similar references count.
        missing: ``"error"``, or ``"skip"``: a column counts for a reference where both
            it and the target have a value, and the similarity is that of the others.

    Returns:
        ``K`` weights with sum 1.

    Raises:
        DataError: For ids or columns that do not match, missing or infinite values,
            a reference without any value in common with the target, or weights that
            are all 0.

    Example:
        >>> frame = pd.DataFrame({"size": [7, 70], "family": ["a", "b"]}, ["x", "y"])
        >>> weights_from_metadata(frame, {"size": 7, "family": "a"})
        [1.0, 0.0]
    """
    if missing not in get_args(MissingMetadata):
        raise DataError(
            f"missing: expected one of {list(get_args(MissingMetadata))}, "
            f"got {missing!r}"
        )
    if not 0.0 <= sharpness < math.inf:
        raise DataError(f"sharpness: expected a number >= 0, got {sharpness}")
    ids = as_ids("frame", frame.index.tolist())
    frame = frame.iloc[positions("models", ids, models)]
    similarity = gower_similarity(
        frame, target_row, importance=importance, missing=missing
    )
    weights = np.asarray(similarity)
    if not weights.max() > 0.0:
        raise DataError(
            "target_row: no reference has anything in common with it, so that all "
            "weights would be 0"
        )
    # Relative to the largest, which no sharpness takes to 0.
    weights = (weights / weights.max()) ** sharpness
    return (weights / weights.sum()).tolist()


def gower_similarity(
    frame: pd.DataFrame,
    target_row: Mapping[str, Any] | pd.Series,
    *,
    importance: Mapping[str, float] | None = None,
    missing: MissingMetadata = "error",
) -> list[float]:
    r"""Gower's similarity (1971) of each row with the target, in [0, 1].

    The mean over columns of :math:`1 - |x - x'| / \text{range}` for numbers and dates,
    the range being that of the rows and the target (1 if it is 0), and of 1 or 0 for
    equal or different values of anything else (texts, categories, booleans). What
    spans orders of magnitude, such as a number of parameters, is better given as its
    logarithm, and a number that is only a label as text.

    Args:
        frame: ``K`` rows of metadata.
        target_row: As in :func:`weights_from_metadata`, like all that follow.
        importance: As there.
        missing: As there.
    """
    target = {str(name): value for name, value in dict(target_row).items()}
    columns = [str(column) for column in frame.columns]
    if sorted(target) != sorted(columns) or not columns:
        raise DataError(
            f"target_row: expected the columns of frame ({columns}), "
            f"got {[str(name) for name in target]}"
        )
    value = _column_weights(frame, importance)
    shares, known = np.zeros(frame.shape), np.zeros(frame.shape, dtype=bool)
    for c, name in enumerate(frame.columns):
        value_there = target[str(name)]
        known[:, c] = frame[name].notna().to_numpy() & (not pd.isna(value_there))
        shares[:, c] = _similarity(frame[name], value_there, known[:, c])
    if missing == "error" and not known.all():
        gaps = [columns[c] for c in np.flatnonzero(~known.all(0))]
        raise DataError(
            f"frame, target_row: missing values in {some(gaps)}; drop these columns or "
            "choose missing='skip'"
        )
    total = known @ value
    if not (total > 0.0).all():
        names = frame.index[total <= 0.0].tolist()
        raise DataError(
            f"frame: no value in common with the target for {some(names)}; leave them "
            "out or fill them in"
        )
    return ((shares * known) @ value / total).tolist()


def _column_weights(
    frame: pd.DataFrame, importance: Mapping[str, float] | None
) -> np.ndarray:
    importance = dict(importance or {})
    unknown = [name for name in importance if name not in frame.columns]
    if unknown:
        raise DataError(f"importance: no columns of frame: {some(unknown)}")
    value = np.array([float(importance.get(name, 1.0)) for name in frame.columns])
    if not (np.isfinite(value).all() and (value >= 0.0).all() and value.any()):
        raise DataError(
            f"importance: expected finite weights >= 0, not all 0, got {value.tolist()}"
        )
    return value


def _similarity(column: pd.Series, target: Any, known: np.ndarray) -> np.ndarray:
    """Similarity of a column's known values with the target's, shape ``K``."""
    share = np.zeros(len(column))
    if not known.any():
        return share
    present = column[known]
    numeric = types.is_numeric_dtype(column) and not types.is_bool_dtype(column)
    if not (numeric or types.is_datetime64_any_dtype(column)):
        share[known] = (present == target).to_numpy(dtype=np.float64)
        return share
    try:
        if numeric:
            target, values = float(target), present.to_numpy(dtype=np.float64)
        else:
            since = present - pd.Timestamp(target)
            target, values = 0.0, since.dt.total_seconds().to_numpy()
    except (TypeError, ValueError) as error:
        raise DataError(f"target_row: {column.name!r}: {error}") from error
    if not (np.isfinite(values).all() and math.isfinite(target)):
        raise DataError(f"frame, target_row: {column.name!r}: expected finite values")
    span = max(values.max(), target) - min(values.min(), target)
    share[known] = 1.0 - np.abs(values - target) / span if span > 0.0 else 1.0
    return share
