"""Tables of scores: long (a row a score), wide (a column or a row a model), ProEval."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from gp_eval._names import some
from gp_eval.errors import DataError
from gp_eval.readers.gold import gold_probability
from gp_eval.readers.records import Log, Options, Rows
from gp_eval.readers.tables import (
    csv_columns,
    parquet_columns,
    read_csv,
    read_parquet,
    to_numbers,
)

__all__ = ["is_long", "is_proeval", "is_wide", "read_proeval", "read_table"]

ITEM = ("item_id", "item", "question_id", "doc_id", "sample_id", "id")
MODEL = ("model_id", "model", "subject")
SCORE = ("score", "label", "correct", "acc", "value")
_LABEL, _PREDICTION = "label_", "prediction_"


def _first(names: Sequence[str], columns: Sequence[str]) -> str | None:
    return next((name for name in names if name in columns), None)


def is_long(columns: Sequence[str]) -> bool:
    """Whether a row holds one score."""
    return all(_first(names, columns) for names in (ITEM, MODEL, SCORE))


def is_wide(columns: Sequence[str]) -> bool:
    """Whether one column holds ids, so that every other one may hold scores."""
    return len(columns) > 1 and _id_column(columns) is not None


def _id_column(columns: Sequence[str]) -> str | None:
    """The first column if its name says so; an index, which Parquet keeps last."""
    if columns[0] in ("", "index", *ITEM, *MODEL):
        return columns[0]
    return _first(("__index_level_0__", *ITEM), columns)


def is_proeval(columns: Sequence[str]) -> bool:
    """Whether labels of errors stand beside predictions."""
    return any(
        name.startswith(_LABEL) and _PREDICTION + name.removeprefix(_LABEL) in columns
        for name in columns
    )


def read_table(path: Path, options: Options) -> Log:
    """Read a long or wide table, CSV or Parquet.

    Raises:
        DataError: For columns that are neither, cells that are no numbers, or the same
            score given twice.
    """
    columns = _columns(path)
    if is_long(columns):
        return _read_long(path, columns, options)
    if not is_wide(columns):
        raise DataError(
            f"{str(path)!r}: neither long (one of {list(ITEM)}, one of {list(MODEL)} "
            f"and one of {list(SCORE)}) nor wide (ids first, then a column for each "
            f"model); its columns are {some(columns)}"
        )
    if options.value == "gold-prob":
        raise DataError(f"{str(path)!r}: a wide table has no log-likelihoods")
    return _read_wide(path, columns)


def _columns(path: Path) -> list[str]:
    return parquet_columns(path) if _is_parquet(path) else csv_columns(path)[0]


def _is_parquet(path: Path) -> bool:
    with path.open("rb") as stream:
        return stream.read(4) == b"PAR1"


def _frame(path: Path, columns: list[str]) -> pd.DataFrame:
    if not _is_parquet(path):
        return read_csv(path, columns)
    table = read_parquet(path, columns)
    # Without what pandas wrote about its index: that is a column like others here.
    return table.replace_schema_metadata(None).to_pandas()


def _ids(column: pd.Series, path: Path, name: str) -> list[str]:
    if pd.api.types.is_float_dtype(column.dtype) and (column % 1 == 0).all():
        column = column.astype("int64")  # whole numbers that Parquet kept as floats
    values = column.tolist()
    ids = ["" if v is None or v != v else str(v) for v in values]
    if "" in ids:
        raise DataError(
            f"{str(path)!r}, column {name!r}: row {ids.index('') + 1} blank"
        )
    return ids


def _read_wide(path: Path, columns: list[str]) -> Log:
    frame = _frame(path, columns)
    name = str(_id_column(columns))
    ids, others = _ids(frame[name], path, name), [c for c in columns if c != name]
    table = np.column_stack([to_numbers(frame[c], path, c) for c in others])
    if name in MODEL:
        ids, others, table = others, ids, table.T
    items = pd.Series(ids)
    if items.duplicated().any():
        raise DataError(
            f"{str(path)!r}: items listed twice: "
            f"{some(items[items.duplicated()].unique().tolist())}"
        )
    if len(set(others)) < len(others):
        raise DataError(f"{str(path)!r}: models listed twice")
    log = Log(path, "csv")
    for k, model in enumerate(others):
        rows = Rows()
        for item, score in zip(ids, table[:, k].tolist(), strict=True):
            if score == score:  # a blank cell is an item that was not run
                rows.add(item, {"score": score})
        log.notes["blank cells"] += len(ids) - len(rows)
        log.blocks += rows.blocks(model=model, task="", source=path)
    return log


def _read_long(path: Path, columns: list[str], options: Options) -> Log:
    logliks = [f"loglik_{i}" for i in range(len(columns)) if f"loglik_{i}" in columns]
    extra = [c for c in ("task", "metric", "group", "weight", "epoch") if c in columns]
    item, model = str(_first(ITEM, columns)), str(_first(MODEL, columns))
    scores = [c for c in SCORE if c in columns]
    if "metric" in columns:
        scores = scores[:1]
    wants_gold = options.value == "gold-prob"
    if wants_gold and (len(logliks) < 2 or "truth" not in columns):
        raise DataError(
            f"{str(path)!r}: has no columns loglik_0, loglik_1 ... and truth"
        )
    used = [item, model, *scores, *extra, *([*logliks, "truth"] if wants_gold else [])]
    frame = _frame(path, list(dict.fromkeys(used)))
    if frame.empty:
        raise DataError(f"{str(path)!r}: holds no rows")
    values = pd.DataFrame({c: to_numbers(frame[c], path, c) for c in scores})
    if wants_gold:
        values = pd.DataFrame({"gold_prob": _gold(frame, logliks, path)})
    log = Log(path, "csv")
    keys = pd.DataFrame({"item": _ids(frame[item], path, item)})
    keys["model"] = _ids(frame[model], path, model)
    for name, blank in (("task", ""), ("metric", ""), ("group", ""), ("epoch", "1")):
        keys[name] = frame[name].fillna(blank).astype(str) if name in columns else blank
    epochs = to_numbers(keys["epoch"], path, "epoch")
    if not ((epochs % 1 == 0) & (abs(epochs) < 2**31)).all():
        raise DataError(f"{str(path)!r}, column 'epoch': expected whole numbers")
    keys["epoch"] = epochs.astype(int)
    weights = to_numbers(frame["weight"], path, "weight") if "weight" in extra else None
    _refuse_repeats(keys, path)
    for _, rows in keys.groupby(["model", "task", "metric"], sort=True):
        _add_part(log, rows, values.loc[rows.index], weights)
    return log


def _refuse_repeats(keys: pd.DataFrame, path: Path) -> None:
    repeated = keys.duplicated(["item", "model", "task", "metric", "epoch"])
    if repeated.any():
        where = keys[repeated].drop_duplicates(["item", "model"])
        pairs = [
            f"{m}: {i}" for m, i in zip(where["model"], where["item"], strict=True)
        ]
        raise DataError(
            f"{str(path)!r}: given more than once: {some(pairs)}; repetitions need a "
            "column epoch"
        )


def _add_part(
    log: Log, keys: pd.DataFrame, values: pd.DataFrame, weights: np.ndarray | None
) -> None:
    """One model, task and metric of a long table; blank cells were not run."""
    model, task, metric = keys[["model", "task", "metric"]].iloc[0]
    for column in values:
        here = values[column].notna().to_numpy()
        log.notes["blank cells"] += int((~here).sum())
        own = keys[here]
        rows = Rows()
        for item, epoch, score in zip(
            own["item"],
            own["epoch"].tolist(),
            values[column][here].tolist(),
            strict=True,
        ):
            rows.add(item, {metric or str(column): score}, epoch=epoch)
        if (own["group"] != "").any():
            rows.groups = own["group"].tolist()
        if weights is not None:
            rows.weights = weights[own.index].tolist()
        log.blocks += rows.blocks(model=model, task=task, source=log.path)


def _gold(frame: pd.DataFrame, logliks: list[str], path: Path) -> list[float]:
    table = np.column_stack([to_numbers(frame[c], path, c) for c in logliks])
    truth = to_numbers(frame["truth"], path, "truth")
    shares = [
        None if place != place else gold_probability(row, [int(place)])
        for row, place in zip(table.tolist(), truth.tolist(), strict=True)
    ]
    return [float("nan") if share is None else share for share in shares]


def read_proeval(path: Path, options: Options) -> Log:
    """Read ProEval predictions; its labels are errors, so a score is 1 - label.

    ProEval labels predictions that are empty or ``SKIPPED`` as wrong; they are counted.
    """
    columns = csv_columns(path)[0]
    models = [
        name.removeprefix(_LABEL)
        for name in columns
        if name.startswith(_LABEL)
        and _PREDICTION + name.removeprefix(_LABEL) in columns
    ]
    if not models:
        raise DataError(f"{str(path)!r}: has no columns label_* beside prediction_*")
    item = _first((*ITEM, "index", ""), columns)
    if item is None:
        raise DataError(f"{str(path)!r}: has no column of ids such as 'index'")
    used = [c + m for m in models for c in (_LABEL, _PREDICTION)]
    frame = read_csv(path, [item, *used])
    ids = _ids(frame[item], path, item)
    if len(set(ids)) < len(ids):
        raise DataError(f"{str(path)!r}, column {item!r}: ids listed twice")
    log = Log(path, "proeval")
    log.notes["labels of errors turned into scores"] += len(ids) * len(models)
    for model in models:
        labels = to_numbers(frame[_LABEL + model], path, _LABEL + model)
        answers = frame[_PREDICTION + model].str.strip()
        log.notes["empty or skipped predictions, scored as wrong"] += int(
            answers.isin(["", "SKIPPED"]).sum()
        )
        rows = Rows()
        for one, label in zip(ids, labels.tolist(), strict=True):
            rows.add(one, {"score": 1.0 - label})
        log.blocks += rows.blocks(model=model, task="", source=path)
    return log
