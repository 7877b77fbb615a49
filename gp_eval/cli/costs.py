"""Costs of items from a file."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from gp_eval.data.validation import as_ids
from gp_eval.errors import DataError

__all__ = ["read_costs"]


def read_costs(path: Path) -> dict[str, float]:
    """Costs by item from a CSV file with the columns item and cost.

    Raises:
        DataError: For another file, an item that is there twice, or a cost that is no
            number; what is unknown does not count as 0.
    """
    try:
        frame = pd.read_csv(
            path, dtype=str, keep_default_na=False, encoding="utf-8-sig"
        )
    except (OSError, ValueError) as error:
        raise DataError(f"--costs: cannot read {str(path)!r}: {error}") from error
    if sorted(frame.columns) != ["cost", "item"]:
        raise DataError(
            f"--costs: {str(path)!r}: expected the columns item and cost, got "
            f"{list(frame.columns)}"
        )
    items = as_ids(f"--costs: {str(path)!r}", frame["item"].tolist())
    costs: dict[str, float] = {}
    for item, text in zip(items, frame["cost"], strict=True):
        try:
            costs[item] = float(text)
        except ValueError:
            raise DataError(
                f"--costs: cost of {item!r}: expected a number, got {text!r}; an "
                "unknown cost does not count as 0"
            ) from None
    return costs
