"""Responses of later models from files."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pandas as pd
import torch

from gp_eval.data.files import GAPS, read_arrays, read_table
from gp_eval.data.validation import some
from gp_eval.disco.probabilities import probabilities_from_log_likelihoods
from gp_eval.disco.responses import Responses
from gp_eval.errors import DataError

__all__ = ["read_responses"]

_CLASS = re.compile(r"p(\d+)")
_Array = np.ndarray


def read_responses(path: str | Path, *, log_likelihoods: bool = False) -> Responses:
    """Responses to some items, the chosen ones among them.

    Three forms:

    - a wide table (``.csv``, ``.parquet``): item ids in the first column, then a column
      of scores for each model;
    - a long table (``.csv``, ``.parquet``): a row for each item and model, with the
      columns ``item``, ``model``, and ``score``, or ``p0``, ``p1`` ... for the
      probabilities of the classes, or both; classes that an item lacks stay empty;
    - ``.npz`` with ``item_ids``, ``model_ids``, and ``scores`` (items by models) or
      ``probs`` (models by items by classes), or both.

    Items that no model answered count as absent, so that a table with a row for every
    item of the benchmark may be filled in where it was run.

    Args:
        path: The file.
        log_likelihoods: Whether what stands for probabilities are log-likelihoods.

    Raises:
        DataError: For a file of no such form, or an item repeated for a model.
    """
    path = Path(path)
    if path.suffix == ".npz":
        responses = _from_arrays(path, log_likelihoods)
    else:
        frame = read_table(path)
        if frame.shape[1] < 2:
            raise DataError(f"path: {str(path)!r}: expected ids and a column of scores")
        names = [str(column) for column in frame.columns]
        known = [n for n in names if n in ("item", "model", "score") or _is_class(n)]
        is_long = {"item", "model"} <= set(known) and len(known) > 2
        if is_long and len(known) < len(names):
            others = [name for name in names if name not in known]
            raise DataError(
                f"path: {str(path)!r}: a long table has the columns item, model, and "
                f"score or p0, p1 ...; leave out {others}"
            )
        if is_long or set(names) == {"item", "model"}:
            responses = _from_long(frame.set_axis(names, axis=1), log_likelihoods)
        else:
            wide = frame.iloc[:, 1:].replace(list(GAPS), np.nan)
            responses = Responses.from_frame(wide.set_axis(list(frame.iloc[:, 0])))
    if log_likelihoods and responses.probabilities is None:
        raise DataError(f"log_likelihoods: {str(path)!r} holds scores only")
    return _answered(responses)


def _is_class(name: str) -> bool:
    return _CLASS.fullmatch(name) is not None


def _from_arrays(path: Path, log_likelihoods: bool) -> Responses:
    arrays = read_arrays(path)
    ids = [name for name in ("item_ids", "model_ids") if name not in arrays]
    if ids or not {"scores", "probs"} & set(arrays):
        raise DataError(
            f"path: {str(path)!r}: expected item_ids, model_ids and scores or probs, "
            f"got the arrays {sorted(arrays)}"
        )
    scores, values = arrays.get("scores"), arrays.get("probs")
    return Responses(
        tuple(str(i) for i in arrays["item_ids"]),
        tuple(str(m) for m in arrays["model_ids"]),
        None if scores is None else torch.from_numpy(scores.astype(np.float64)),
        None if values is None else _probabilities(values, log_likelihoods),
    )


def _from_long(frame: pd.DataFrame, log_likelihoods: bool) -> Responses:
    classes = sorted(filter(_is_class, frame.columns), key=lambda name: int(name[1:]))
    if [int(name[1:]) for name in classes] != list(range(len(classes))):
        raise DataError(f"responses: expected columns p0, p1 ..., got {classes}")
    if "score" not in frame.columns and not classes:
        raise DataError("responses: expected a column score, or p0, p1 ..., got none")
    pairs = frame["item"].astype(str), frame["model"].astype(str)
    repeated = pd.MultiIndex.from_arrays(pairs).duplicated()
    if repeated.any():
        twice = [f"{pairs[0][i]} of {pairs[1][i]}" for i in np.flatnonzero(repeated)]
        raise DataError(f"responses: given twice: {some(twice)}")
    (rows, items), (columns, models) = (pd.factorize(ids) for ids in pairs)
    cells = frame.drop(columns=["item", "model"]).replace(list(GAPS), np.nan)
    try:
        numbers = cells.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"responses: expected numbers, got {error}") from error
    scores = probabilities = None
    if "score" in numbers:
        scores = np.full((len(items), len(models)), np.nan)
        scores[rows, columns] = numbers["score"]
    if classes:
        probabilities = np.full((len(models), len(items), len(classes)), np.nan)
        probabilities[columns, rows] = numbers[classes]
    return Responses(
        tuple(items),
        tuple(models),
        None if scores is None else torch.from_numpy(scores),
        None
        if probabilities is None
        else _probabilities(probabilities, log_likelihoods),
    )


def _probabilities(values: _Array, log_likelihoods: bool) -> torch.Tensor:
    """``T x m x C`` without gaps but for whole answers that are missing."""
    table = torch.from_numpy(values.astype(np.float64))
    if table.ndim != 3:
        raise DataError(
            f"probs: expected models x items x classes, got {tuple(table.shape)}"
        )
    answered = ~table.isnan().all(-1)
    found = table[answered]
    found = found.where(~found.isnan(), -torch.inf if log_likelihoods else 0.0)
    if log_likelihoods:
        found = probabilities_from_log_likelihoods(found)
    table[answered] = found
    return table


def _answered(responses: Responses) -> Responses:
    """Without the items that no model answered."""
    there = torch.zeros(len(responses.items), dtype=torch.bool)
    if responses.scores is not None:
        there |= ~responses.scores.isnan().all(1)
    if responses.probabilities is not None:
        there |= ~responses.probabilities.isnan().any(-1).all(0)
    if not bool(there.any()):
        raise DataError("responses: expected numbers, found none")
    items = zip(responses.items, there.tolist(), strict=True)
    return responses.on([item for item, answered in items if answered])
