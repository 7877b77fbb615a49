"""Tables as text columns: CSV of any usual separator, and Parquet."""

from __future__ import annotations

import csv
import io
import math
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from gp_eval._names import some
from gp_eval.errors import DataError, MissingDependencyError
from gp_eval.readers.source import head, read_bytes

__all__ = [
    "GAPS",
    "csv_columns",
    "parquet_columns",
    "read_csv",
    "read_parquet",
    "require_pyarrow",
    "to_numbers",
]

GAPS = frozenset(("", "na", "n/a", "nan", "null", "none", "-"))
_SEPARATORS = ",;\t"
_MAX_ROWS = 50_000_000


def csv_columns(path: Path) -> tuple[list[str], str]:
    """Names of the columns and the separator.

    Raises:
        DataError: For text that is not UTF-8, an empty file, or repeated names.
    """
    lines = head(path).split(b"\n", 1)
    try:
        first = lines[0].decode("utf-8").rstrip("\r")
    except UnicodeDecodeError as error:
        raise DataError(f"{str(path)!r}: not UTF-8: {error}") from error
    separator = max(_SEPARATORS, key=first.count)
    names = next(csv.reader(io.StringIO(first), delimiter=separator), [])
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        raise DataError(f"{str(path)!r}: columns named twice: {some(repeated)}")
    return names, separator


def read_csv(path: Path, columns: list[str] | None = None) -> pd.DataFrame:
    """A CSV with every cell as text, so that ids stay as they are written.

    Raises:
        DataError: For text that is not UTF-8, or rows of another width than the
            header, such as the last one of a file cut short.
    """
    names, separator = csv_columns(path)
    data = read_bytes(path)
    try:
        _check_width(data, path, separator, len(names))
        frame = pd.read_csv(
            io.BytesIO(data),
            sep=separator,
            dtype=str,
            keep_default_na=False,
            encoding="utf-8-sig",
            index_col=False,
        )
    except UnicodeDecodeError as error:
        raise DataError(f"{str(path)!r}: not UTF-8: {error}") from error
    except (ValueError, csv.Error) as error:
        raise DataError(f"{str(path)!r}: not a CSV table: {error}") from error
    return frame if columns is None else frame[columns]


def _check_width(data: bytes, path: Path, separator: str, width: int) -> None:
    """Pandas fills up rows that are too short and cuts those too long, silently."""
    text = io.TextIOWrapper(io.BytesIO(data), encoding="utf-8-sig", newline="")
    try:
        for number, row in enumerate(csv.reader(text, delimiter=separator)):
            if row and len(row) != width:
                raise DataError(
                    f"{str(path)!r}, row {number}: {len(row)} cells for {width} columns"
                )
    except csv.Error as error:
        # Its limit of a cell is a global setting, and answers may be longer.
        if "field larger than" not in str(error):
            raise


def require_pyarrow() -> Any:
    """The pyarrow package, or an error that says how to get it."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise MissingDependencyError(
            "Parquet files need pyarrow: pip install 'gp-eval[parquet]'"
        ) from error
    return pyarrow


def _parquet_file(path: Path) -> Any:
    arrow = require_pyarrow()
    try:
        file = arrow.parquet.ParquetFile(path)
    except (arrow.ArrowException, OSError, UnicodeError) as error:
        raise DataError(f"{str(path)!r}: not readable Parquet: {error}") from error
    if file.metadata.num_rows > _MAX_ROWS:
        raise DataError(
            f"{str(path)!r}: {file.metadata.num_rows} rows, over {_MAX_ROWS}: refused"
        )
    return file


def parquet_columns(path: Path) -> list[str]:
    """Names of the columns at the top."""
    return list(_parquet_file(path).schema_arrow.names)


def read_parquet(path: Path, columns: list[str] | None = None) -> Any:
    """A pyarrow table; ``doc.id`` names a part of a struct."""
    arrow = require_pyarrow()
    try:
        return _parquet_file(path).read(columns=columns)
    except (arrow.ArrowException, OSError, UnicodeError) as error:
        raise DataError(f"{str(path)!r}: not readable Parquet: {error}") from error


def to_numbers(column: pd.Series, path: Path, name: str) -> np.ndarray:
    """Scores of a column, NaN for blanks.

    Raises:
        DataError: For a cell that is neither blank nor a number, with its row.
    """
    if pd.api.types.is_numeric_dtype(column.dtype):  # booleans count as numbers
        return column.to_numpy(dtype=np.float64, na_value=math.nan)
    text = column.astype(str).str.strip().str.lower()
    text = text.replace({"true": "1", "false": "0"})
    values = pd.to_numeric(text, errors="coerce").to_numpy(dtype=np.float64).copy()
    wrong = np.isnan(values) & ~text.isin([*GAPS, "<na>"]).to_numpy()
    if wrong.any():
        at = int(np.flatnonzero(wrong)[0])
        raise DataError(
            f"{str(path)!r}, column {name!r}, row {at + 1}: expected a number, got "
            f"{column.iloc[at]!r:.60}"
        )
    return values
