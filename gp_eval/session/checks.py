"""Checks of what comes from outside, before anything is changed."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from gp_eval.errors import ScoreError

__all__ = ["as_score", "json_options"]

_LARGEST = 1e100


def as_score(item: str, raw: object) -> float:
    """The score as a float.

    Raises:
        ScoreError: If it is not a finite number.
    """
    try:
        number = hasattr(raw, "__float__") and not isinstance(raw, str)
        score = float(raw) if number else math.nan  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        score = math.nan
    # Squares and sums of scores have to stay finite as well.
    if not abs(score) <= _LARGEST:
        raise ScoreError(f"score of {item!r}: expected a finite number, got {raw!r}")
    return score


def json_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options as they are read again from a file."""
    for name, value in options.items():
        try:
            json.dumps(value, allow_nan=False)
        except (TypeError, ValueError) as error:
            raise ValueError(f"model_options: {name!r}: not JSON: {error}") from error
    return dict(json.loads(json.dumps(dict(options))))
