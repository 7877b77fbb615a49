"""Responses of later models to the chosen items."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from gp_eval.data import References
from gp_eval.data.validation import as_ids, some
from gp_eval.errors import DataError

__all__ = ["Responses"]


@dataclass(frozen=True)
class Responses:
    """What ``T`` models answered on some items: scores, probabilities or both.

    Attributes:
        items: Ids of ``m`` items, in any order; others than the chosen ones may be
            among them.
        models: Ids of the ``T`` models.
        scores: ``m x T``, NaN where missing.
        probabilities: Class probabilities, ``T x m x C``.
    """

    items: tuple[str, ...]
    models: tuple[str, ...]
    scores: Tensor | None = None
    probabilities: Tensor | None = None

    def __post_init__(self) -> None:
        as_ids("items", self.items)
        as_ids("models", self.models)
        shape = (len(self.items), len(self.models))
        if self.scores is not None and tuple(self.scores.shape) != shape:
            raise DataError(
                f"scores: expected shape {shape} (items x models), "
                f"got {tuple(self.scores.shape)}"
            )
        probabilities = self.probabilities
        if probabilities is not None and (
            probabilities.ndim != 3 or tuple(probabilities.shape[:2]) != shape[::-1]
        ):
            raise DataError(
                f"probabilities: expected shape {shape[::-1]} + (C,), "
                f"got {tuple(probabilities.shape)}"
            )

    @classmethod
    def from_references(cls, table: References) -> Self:
        """Responses that were read like references."""
        return cls(table.items, table.models, table.scores, table.probabilities)

    @classmethod
    def from_frame(cls, frame: pd.DataFrame) -> Self:
        """Scores as a table whose index holds the items and columns the models.

        Raises:
            DataError: For columns that are not numeric.
        """
        try:
            values = frame.to_numpy(dtype=np.float64, copy=True)
        except (TypeError, ValueError) as error:
            raise DataError(
                f"responses: expected numeric columns, got {error}; the item ids must "
                "be the index"
            ) from error
        return cls(
            tuple(str(item) for item in frame.index),
            tuple(str(model) for model in frame.columns),
            torch.from_numpy(values),
        )

    def on(self, chosen: Sequence[str]) -> Self:
        """The chosen items in their order.

        Raises:
            DataError: With all the missing ones: they are what is left to run.
        """
        place = {item: i for i, item in enumerate(self.items)}
        if missing := [item for item in chosen if item not in place]:
            raise DataError(
                f"responses: {len(missing)} of the {len(chosen)} chosen items are "
                f"missing: {some(missing, limit=len(missing))}"
            )
        rows = torch.tensor([place[item] for item in chosen])
        return type(self)(
            tuple(chosen),
            self.models,
            None if self.scores is None else self.scores[rows],
            None if self.probabilities is None else self.probabilities[:, rows],
        )
