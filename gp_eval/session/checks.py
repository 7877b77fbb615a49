"""Checks of what comes from outside, before anything is changed."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from gp_eval.data import References
from gp_eval.data.validation import some
from gp_eval.errors import DataError, ScoreError

__all__ = ["as_score", "check_targets", "json_options"]

_LARGEST = 1e100


def as_score(name: str, raw: object) -> float:
    """The score as a float.

    Args:
        name: Whose score it is, for the message.
        raw: The score.

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
        raise ScoreError(f"score of {name}: expected a finite number, got {raw!r}")
    return score


def check_targets(
    argument: str, targets: Sequence[object], references: References
) -> list[str]:
    """Names of the models to evaluate.

    Args:
        argument: What the caller calls them.
        targets: At least one name.
        references: The reference models, of which none may be a target.

    Raises:
        DataError: For no name at all, one that is empty, no string, there twice, or
            that of a reference model.
    """
    if isinstance(targets, str) or not targets:
        raise DataError(f"{argument}: expected at least one name, got {targets!r}")
    names: list[str] = []
    for target in targets:
        if not isinstance(target, str) or not target:
            raise DataError(
                f"{argument}: expected a name that is not empty, got {target!r}"
            )
        if target in references.models:
            raise DataError(
                f"{argument}: {target!r} is one of the reference models; its scores "
                "would predict themselves. Remove it: references.without([target])"
            )
        names.append(target)
    if repeated := [name for name, count in Counter(names).items() if count > 1]:
        raise DataError(
            f"{argument}: expected unique names, repeated: {some(repeated)}"
        )
    return names


def json_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options as they are read again from a file."""
    for name, value in options.items():
        try:
            json.dumps(value, allow_nan=False)
        except (TypeError, ValueError) as error:
            raise ValueError(f"model_options: {name!r}: not JSON: {error}") from error
    return dict(json.loads(json.dumps(dict(options))))
