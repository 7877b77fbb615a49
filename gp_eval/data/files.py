"""Reading and writing of reference tables: ``.npz``, ``.parquet`` and wide ``.csv``."""

from __future__ import annotations

import io
import json
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict
from zipfile import BadZipFile

import numpy as np
import pandas as pd

from gp_eval._files import atomic_write
from gp_eval.data.validation import DuplicateModels, Missing
from gp_eval.errors import DataError, MissingDependencyError

if TYPE_CHECKING:
    from gp_eval.data.references import References

__all__ = [
    "GAPS",
    "read_arrays",
    "read_references",
    "read_table",
    "require_pyarrow",
    "write_references",
]

_META = b"gp_eval"
_EXTRA = ("item_weights", "groups", "labels")
# What numpy and zipfile raise for damaged bytes, TypeError for a lone .npy array.
_UNREADABLE = (
    *(ValueError, OSError, EOFError, KeyError, TypeError, RuntimeError),
    *(NotImplementedError, BadZipFile, zlib.error),
)
# Texts that stand for a missing score.
GAPS = ("", "NA", "N/A", "NaN", "nan", "null", "None")


class _Policies(TypedDict):
    missing: Missing
    duplicate_models: DuplicateModels


_AS_IT_IS: _Policies = {"missing": "keep", "duplicate_models": "error"}


def read_references(
    path: Path, *, missing: Missing, duplicate_models: DuplicateModels
) -> References:
    """Read a reference table; the format follows from the suffix.

    Raises:
        DataError: For a file that is not there, of another format or damaged.
    """
    readers = {".npz": _read_npz, ".parquet": _read_parquet, ".csv": _read_csv}
    if path.suffix not in readers:
        raise DataError(f"path: expected one of {list(readers)}, got {str(path)!r}")
    if not path.is_file():
        raise DataError(f"path: no such file: {str(path)!r}")
    policies: _Policies = {"missing": missing, "duplicate_models": duplicate_models}
    return readers[path.suffix](path, policies)


def write_references(references: References, path: Path) -> None:
    """Write a reference table in one atomic step; the suffix gives the format."""
    writers = {".npz": _to_npz, ".parquet": _to_parquet, ".csv": _to_csv}
    if path.suffix not in writers:
        raise DataError(f"path: expected one of {list(writers)}, got {str(path)!r}")
    atomic_write(path, writers[path.suffix](references))


def _build(
    arrays: dict[str, Any], meta: dict[str, Any], policies: _Policies
) -> References:
    from gp_eval.data.references import References

    return References(
        arrays["scores"],
        [str(i) for i in arrays["item_ids"]],
        [str(m) for m in arrays["model_ids"]],
        item_weights=arrays.get("item_weights"),
        groups=arrays.get("groups"),
        probabilities=arrays.get("probs"),
        labels=arrays.get("labels"),
        meta=meta,
        **policies,
    )


def read_arrays(path: Path) -> dict[str, np.ndarray]:
    """The arrays of a ``.npz`` file.

    Raises:
        DataError: For a file that cannot be read as one.
    """
    try:
        with np.load(io.BytesIO(path.read_bytes()), allow_pickle=False) as file:
            return {key: file[key] for key in file.files}
    except _UNREADABLE as error:
        raise DataError(
            f"path: {str(path)!r} is not a readable .npz: {error}"
        ) from error


def _read_npz(path: Path, policies: _Policies) -> References:
    arrays: dict[str, Any] = read_arrays(path)
    absent = [k for k in ("scores", "item_ids", "model_ids") if k not in arrays]
    if absent:
        raise DataError(f"path: {str(path)!r} lacks the arrays {absent}")
    if "groups" not in arrays and "category" in arrays:
        arrays["groups"] = arrays["category"]
    return _build(arrays, _meta(path, arrays), policies)


def _meta(path: Path, arrays: dict[str, Any]) -> dict[str, Any]:
    try:
        meta = json.loads(str(arrays["meta"])) if "meta" in arrays else {}
    except ValueError:
        meta = None
    if not isinstance(meta, dict):
        raise DataError(f"path: {str(path)!r}: meta is not a JSON object")
    return meta


def _to_npz(references: References) -> bytes:
    arrays: dict[str, Any] = {
        "scores": references.scores.numpy(),
        "item_ids": np.array(references.items),
        "model_ids": np.array(references.models),
        "meta": np.array(json.dumps(references.meta)),
    }
    if references.is_weighted:
        arrays["item_weights"] = references.item_weights.numpy()
    if references.groups is not None:
        arrays["groups"] = np.array(references.groups)
    if references.probabilities is not None:
        arrays["probs"] = references.probabilities.numpy()
    if references.labels is not None:
        arrays["labels"] = references.labels.numpy()
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)
    return buffer.getvalue()


def require_pyarrow() -> Any:
    """The pyarrow package, or an error that says how to get it."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise MissingDependencyError(
            "Parquet files need pyarrow: pip install 'gp-eval[parquet]', or use .npz"
        ) from error
    return pyarrow


def read_table(path: Path) -> pd.DataFrame:
    """A ``.parquet`` or ``.csv`` table as it is, the cells of the latter as text.

    Raises:
        DataError: For a file that is not there, of another format or damaged.
    """
    readers = {".parquet": _parquet_frame, ".csv": _csv_frame}
    if path.suffix not in readers:
        raise DataError(f"path: expected one of {list(readers)}, got {str(path)!r}")
    if not path.is_file():
        raise DataError(f"path: no such file: {str(path)!r}")
    return readers[path.suffix](path)


def _parquet_table(path: Path) -> Any:
    arrow = require_pyarrow()
    try:
        return arrow.parquet.read_table(path)
    except (arrow.ArrowException, OSError, UnicodeError) as error:
        raise DataError(f"path: {str(path)!r} is not readable: {error}") from error


def _parquet_frame(path: Path) -> pd.DataFrame:
    frame: pd.DataFrame = _parquet_table(path).to_pandas()
    return frame if isinstance(frame.index, pd.RangeIndex) else frame.reset_index()


def _read_parquet(path: Path, policies: _Policies) -> References:
    table = _parquet_table(path)
    raw = (table.schema.metadata or {}).get(_META)
    if raw is None:
        frame = table.to_pandas()
        if isinstance(frame.index, pd.RangeIndex):
            frame = frame.set_index(frame.columns[0])
        return _from_wide(frame, policies)
    try:
        extra = json.loads(raw)
        items, *columns = table.columns
        arrays = {
            "scores": np.column_stack([column.to_numpy() for column in columns]),
            "item_ids": items.to_pylist(),
            "model_ids": table.column_names[1:],
            **{k: extra[k] for k in _EXTRA if k in extra},
        }
        written = _build(arrays, extra["meta"], _AS_IT_IS)
        damaged = written.fingerprint != extra["fingerprint"]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DataError(f"path: {str(path)!r} is damaged: {error}") from error
    if damaged:
        raise DataError(f"path: {str(path)!r} is damaged: other scores than written")
    return written.subset(missing=policies["missing"])


def _to_parquet(references: References) -> bytes:
    arrow = require_pyarrow()
    if "item" in references.models:
        raise DataError("models: 'item' is the name of the id column in Parquet files")
    extra: dict[str, Any] = {
        "meta": references.meta,
        "fingerprint": references.fingerprint,
    }
    if references.is_weighted:
        extra["item_weights"] = references.item_weights.tolist()
    if references.groups is not None:
        extra["groups"] = list(references.groups)
    if references.labels is not None:
        extra["labels"] = references.labels.tolist()
    columns = {"item": arrow.array(references.items)}
    for k, name in enumerate(references.models):
        columns[name] = arrow.array(references.scores[:, k].numpy())
    table = arrow.table(columns)
    table = table.replace_schema_metadata({_META: json.dumps(extra).encode()})
    buffer = io.BytesIO()
    arrow.parquet.write_table(table, buffer)
    return buffer.getvalue()


def _to_csv(references: References) -> bytes:
    """Scores only; what a table of numbers cannot hold must not be lost unseen."""
    if references.is_weighted:
        raise DataError("path: a .csv has no place for item weights: use .npz")
    frame = references.frame
    return frame.to_csv(index_label="item", lineterminator="\n").encode()


def _csv_frame(path: Path) -> pd.DataFrame:
    try:  # as text: pandas would take ids for numbers or gaps and rename models
        raw = pd.read_csv(path, header=None, dtype=str, keep_default_na=False)
    except (pd.errors.ParserError, pd.errors.EmptyDataError, UnicodeError) as error:
        raise DataError(f"path: {str(path)!r} is not a wide CSV: {error}") from error
    return raw.iloc[1:].set_axis(list(raw.iloc[0]), axis=1).reset_index(drop=True)


def _read_csv(path: Path, policies: _Policies) -> References:
    table = _csv_frame(path)
    cells = table.iloc[:, 1:].replace(list(GAPS), np.nan)
    return _from_wide(cells.set_axis(list(table.iloc[:, 0])), policies)


def _from_wide(frame: pd.DataFrame, policies: _Policies) -> References:
    from gp_eval.data.references import References

    return References.from_frame(frame, **policies)
