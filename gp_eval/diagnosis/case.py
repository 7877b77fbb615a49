"""All measurements on one table, before they are put into words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from gp_eval.diagnosis.blocks import find_blocks
from gp_eval.diagnosis.duplicates import duplicate_groups
from gp_eval.diagnosis.models import Agreement, agreement, weak
from gp_eval.diagnosis.table import Table, reliability
from gp_eval.errors import DataError

__all__ = ["Case", "examine"]

Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class Case:
    """What was measured; models are positions in the table.

    Attributes:
        table: All ``N x K`` scores, as shares of their range: 0 is the lowest score in
            the table, 1 the highest.
        low: The lowest score.
        high: The highest score.
        models: Ids of the models.
        items: Ids of the items.
        level: Level of the tests.
        keep: Models known to be right.
        constant: Models with the same score on all their items.
        copies: Groups of equal or nearly equal models, the one to keep first.
        blocks: Blocks of models, the one to keep first; all copies are in the block of
            the first of them.
        judged: The models that ``agreement`` is about, one of each group of copies:
            all but constant ones and those of the other blocks.
        agreement: How these agree.
        tied: Whether a block is as large as the one kept.
    """

    table: Table
    low: float
    high: float
    models: tuple[str, ...]
    items: tuple[str, ...]
    level: float
    keep: frozenset[str]
    constant: list[int]
    copies: list[list[int]]
    blocks: list[list[int]]
    judged: list[int]
    agreement: Agreement
    tied: bool = False
    _twins: dict[int, list[int]] = field(default_factory=dict)

    def score(self, share: float) -> float:
        """A share of the range in score units."""
        if share in (0.0, 1.0):  # exactly what the table has
            return self.high if share else self.low
        return self.low + share * (self.high - self.low)

    def with_copies(self, models: Sequence[int]) -> list[int]:
        """The models and their copies, in the order of the table."""
        return sorted(k for model in models for k in self._twins.get(model, [model]))

    def names(self, models: Sequence[int]) -> tuple[str, ...]:
        """Their ids."""
        return tuple(self.models[k] for k in models)

    def to_drop(self, models: Sequence[int]) -> tuple[str, ...]:
        """The ids of those that are not known to be right."""
        return tuple(name for name in self.names(models) if name not in self.keep)

    def flagged(self, flags: Flags) -> list[int]:
        """The models behind flags of ``agreement``, with their copies."""
        return self.with_copies([self.judged[j] for j in np.flatnonzero(flags)])

    def correlation(self, model: int) -> float | None:
        """Item-rest correlation of one model with those that agree."""
        return self._value(self.agreement.correlations.r, model)

    def expected(self, model: int) -> float | None:
        """What would be typical of it."""
        return self._value(self.agreement.expected, model)

    def _value(self, values: NDArray[np.float64], model: int) -> float | None:
        first = next((g[0] for g in self.copies if model in g), model)
        if first not in self.judged:
            return None
        value = float(values[self.judged.index(first)])
        return None if np.isnan(value) else value

    @cached_property
    def agreeing(self) -> list[int]:
        """One of each model that is in order."""
        return [self.judged[j] for j in np.flatnonzero(self.agreement.members)]

    @cached_property
    def sound(self) -> Table:
        """The scores of these."""
        return self.table.columns(np.array(self.agreeing, dtype=int))

    @cached_property
    def weak(self) -> Flags:
        """Models that score no more than the weakest which shows order, shape ``K``."""
        shows = np.zeros(len(self.models), dtype=bool)
        positive = self.agreement.correlations.high <= self.level
        shows[[self.judged[j] for j in np.flatnonzero(positive)]] = True
        return weak(self.table, shows, level=self.level)

    @cached_property
    def reliability(self) -> float | None:
        """Reliability of the item means over the models that are in order."""
        value = reliability(self.sound) if self.agreeing else float("nan")
        return None if np.isnan(value) else value


def examine(
    scores: NDArray[np.float64],
    *,
    models: tuple[str, ...],
    items: tuple[str, ...],
    level: float,
    keep: frozenset[str],
) -> Case:
    """Measure a table: copies first, then blocks, then each model against its block.

    Raises:
        DataError: If ``keep`` names models of different blocks.
    """
    low, high = float(np.nanmin(scores)), float(np.nanmax(scores))
    table = Table((scores - low) / (high - low if high > low else 1.0))
    varying = _varying(table)
    groups = duplicate_groups(
        table.columns(np.array(varying, dtype=int)),
        tuple(models[k] for k in varying),
        level=level,
        keep=set(keep),
    )
    copies = [[varying[j] for j in group] for group in groups]
    twins = {k: group for group in copies for k in group}
    single = [k for k in varying if twins.get(k, [k])[0] == k]
    found = find_blocks(table.columns(np.array(single, dtype=int)), level=level)
    blocks = [[single[j] for j in block] for block in found.blocks]
    blocks = _sorted_blocks(blocks, twins, models, keep)
    others = {k for block in blocks[1:] for k in block}
    judged = [k for k in single if k not in others]
    return Case(
        table=table,
        low=low,
        high=high,
        models=models,
        items=items,
        level=level,
        keep=keep,
        constant=[k for k in range(len(models)) if k not in set(varying)],
        copies=copies,
        blocks=[sorted(m for k in b for m in twins.get(k, [k])) for b in blocks],
        judged=judged,
        agreement=agreement(table.columns(np.array(judged, dtype=int)), level=level),
        tied=len(blocks) > 1 and len(blocks[0]) == len(blocks[1]),
        _twins=twins,
    )


def _varying(table: Table) -> list[int]:
    low = np.min(np.where(table.present, table.scores, np.inf), 0)
    high = np.max(np.where(table.present, table.scores, -np.inf), 0)
    return [int(k) for k in np.flatnonzero(low < high)]


def _sorted_blocks(
    blocks: list[list[int]],
    twins: dict[int, list[int]],
    models: tuple[str, ...],
    keep: frozenset[str],
) -> list[list[int]]:
    """The block to keep first: that of the models to keep, else the largest."""

    def kept(block: list[int]) -> list[str]:
        members = [m for k in block for m in twins.get(k, [k])]
        return [models[m] for m in members if models[m] in keep]

    named = [block for block in blocks if kept(block)]
    if len(named) > 1:
        raise DataError(
            f"keep: expected models of one block, but {kept(named[0])[0]!r} and "
            f"{kept(named[1])[0]!r} do not agree on which items are hard"
        )
    return sorted(
        blocks,
        key=lambda b: (not kept(b), -len(b), min(models[k] for k in b)),
    )
