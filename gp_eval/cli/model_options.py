"""Options of a model from the shell: JSON values, and weights of the references."""

from __future__ import annotations

import inspect
import json
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, get_type_hints

import pandas as pd
import typer
from pydantic import ConfigDict, TypeAdapter, ValidationError

from gp_eval.data import References, weights_from_metadata
from gp_eval.data.validation import as_ids, some
from gp_eval.errors import DataError
from gp_eval.models.registry import check_options, model_factory

__all__ = [
    "check_values",
    "metadata_weights",
    "parse_options",
    "read_weights",
    "text_options",
]

_DATE = r"\d{4}-\d{2}-\d{2}"
_TYPES = ConfigDict(arbitrary_types_allowed=True, strict=True)


def parse_options(
    words: Sequence[str], *, texts: Collection[str] = ()
) -> dict[str, Any]:
    """Options from ``NAME=JSON`` words.

    A value that is no JSON is refused rather than taken as text: ``lookahead=False``
    would be a text, and true. Only options that are texts anyway need no quotes.

    Args:
        words: The words.
        texts: Names of the options that are texts, see :func:`text_options`.

    Raises:
        BadParameter: For a word of another form, or an option given twice.
    """
    options: dict[str, Any] = {}
    for word in words:
        name, sign, text = word.partition("=")
        if not sign or not name.isidentifier():
            raise typer.BadParameter(f"--option: expected NAME=JSON, got {word!r}")
        if name in options:
            raise typer.BadParameter(f"--option: {name!r} is given twice")
        try:
            options[name] = json.loads(text)
        except json.JSONDecodeError:
            if name in texts and text.strip():
                options[name] = text
                continue
            raise typer.BadParameter(
                f"--option: {name}: expected JSON, such as 2, true, null or a text in "
                f"double quotes, got {text!r}"
            ) from None
    return options


def text_options(model: str) -> set[str]:
    """Names of the options of a model that are texts and nothing else.

    Raises:
        ValueError: For an unknown model.
    """
    return {name for name, hint in _hints(model).items() if hint is str}


def check_values(model: str, options: Mapping[str, Any]) -> None:
    """Check names and types of options against the signature of the model.

    Raises:
        ValueError: For an unknown model or option, or a value of another type.
    """
    check_options(model, list(options))
    hints = _hints(model)
    for name, value in options.items():
        try:
            TypeAdapter(hints.get(name, Any), config=_TYPES).validate_python(value)
        except ValidationError as error:
            reasons = dict.fromkeys(found["msg"] for found in error.errors())
            raise ValueError(
                f"{model}: {name}: {', or '.join(reasons)}; got {value!r}"
            ) from error


def _hints(model: str) -> dict[str, Any]:
    """Annotations of what builds the model."""
    factory = model_factory(model)
    while isinstance(factory, partial):
        factory = factory.func
    return get_type_hints(factory.__init__ if inspect.isclass(factory) else factory)


def read_weights(path: Path, references: References) -> list[float]:
    """Weights of the references from a CSV file with the columns model and weight.

    Other models in the file are not used.

    Raises:
        DataError: For another file, or a reference without a weight.
    """
    frame = _read(path)
    if list(frame.columns) != ["weight"]:
        raise DataError(
            f"--weights: {str(path)!r}: expected the columns model and weight, got "
            f"{[frame.index.name, *frame.columns]}"
        )
    known = frame["weight"].dropna()
    _check_rows("--weights", path, known, references)
    try:
        return known.loc[list(references.models)].astype(float).tolist()
    except ValueError as error:
        raise DataError(f"--weights: {str(path)!r}: {error}") from error


def metadata_weights(path: Path, row: str, references: References) -> list[float]:
    """Weights of the references by their likeness to one row of a metadata table.

    See :func:`~gp_eval.weights_from_metadata`.

    Args:
        path: CSV file, a row for each model, its id in the first column.
        row: Id of the row that describes the target.
        references: The references; other rows are not used.

    Raises:
        DataError: For another file, or a model without a row.
    """
    frame = _read(path)
    if row not in frame.index:
        raise DataError(
            f"--like: {row!r} is no row of {str(path)!r}, which has "
            f"{some(frame.index.tolist())}"
        )
    _check_rows("--metadata", path, frame, references)
    frame = frame.apply(_as_dates)
    target = {str(column): frame.at[row, column] for column in frame.columns}
    return weights_from_metadata(frame, target, models=references.models)


def _read(path: Path) -> pd.DataFrame:
    """A CSV table with unique ids in its first column."""
    try:
        frame = pd.read_csv(path, index_col=0, converters={0: str})
    except (OSError, ValueError) as error:
        raise DataError(f"cannot read {str(path)!r}: {error}") from error
    as_ids(f"{str(path)!r}", frame.index.tolist())
    return frame


def _as_dates(column: pd.Series) -> pd.Series:
    """A column of texts that are all ISO dates as dates; any other as it is."""
    known = column.dropna()
    texts = known.map(lambda value: isinstance(value, str)).all()
    if known.empty or not (texts and known.str.match(_DATE).all()):
        return column
    return pd.to_datetime(column, format="ISO8601", errors="raise")


def _check_rows(
    flag: str, path: Path, rows: pd.DataFrame | pd.Series, references: References
) -> None:
    if absent := [model for model in references.models if model not in rows.index]:
        raise DataError(
            f"{flag}: {str(path)!r} has nothing for {len(absent)} of the references: "
            f"{some(absent)}"
        )
