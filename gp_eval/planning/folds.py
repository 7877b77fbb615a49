"""Which references play the target, and which remain as its references."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from gp_eval._random import random_order
from gp_eval.data import References
from gp_eval.errors import DataError
from gp_eval.experiments.splits import Split, extrapolation

__all__ = [
    "FEWEST_REFERENCES",
    "Fold",
    "PlanRegime",
    "curve_sizes",
    "extrapolation_folds",
    "fewer_references",
    "interpolation_folds",
]

PlanRegime = Literal["interpolation", "extrapolation"]

FEWEST_REFERENCES = 4
"""Below this, what is left after leaving one out says nothing about a table."""

_SHARE_LEFT_OUT = 0.1
_STRONGEST = 1 / 6
_MOST_TARGETS = 16
_AT_ONCE = 8
_MOST_BYTES = 5e8
_CURVE = (0.25, 0.5)


@dataclass(frozen=True)
class Fold:
    """One simulation: some references are targets, others remain.

    Attributes:
        regime: How the targets were split off.
        targets: Ids of the ``T`` pseudo-targets.
        pool: Ids of the references that remain.
        seed: Seed of the order of random selection.
        size: How many of the pool are used, drawn by the seed; ``None`` for all.
    """

    regime: PlanRegime
    targets: tuple[str, ...]
    pool: tuple[str, ...]
    seed: int
    size: int | None = None

    @property
    def n_references(self) -> int:
        """References of the simulation, ``K`` there."""
        return len(self.pool) if self.size is None else self.size

    def references(self, table: References) -> References:
        """The references of the simulation."""
        names: Sequence[str] = self.pool
        if self.size is not None:
            order = random_order(len(self.pool), self.seed)
            names = [self.pool[i] for i in sorted(order[: self.size].tolist())]
        return table.subset(models=names)

    def split(self, table: References) -> Split:
        """The same as the harness sees it."""
        return Split(table, self.targets, self.pool)


def check_table(references: References) -> list[str]:
    """Models that can play the target: those with any score other than 0.

    A score of 0 throughout is a broken run rather than a model.

    Raises:
        DataError: For missing cells or too few references.
    """
    if references.n_missing:
        raise DataError(
            f"references: planning needs complete scores, {references.n_missing} cells "
            "are missing; use missing='drop-items' or 'drop-models'"
        )
    alive = references.scores.ne(0.0).any(0).tolist()
    names = [
        name
        for name, any_score in zip(references.models, alive, strict=True)
        if any_score
    ]
    if len(names) < FEWEST_REFERENCES:
        raise DataError(
            "references: planning leaves references out to see what happens, and "
            f"needs at least {FEWEST_REFERENCES} with any score other than 0, got "
            f"{len(names)}"
        )
    return names


def interpolation_folds(
    references: References, *, n_targets: int, n_max: int, seed: int
) -> list[Fold]:
    """Random references as targets, few at a time, so that most remain.

    A tenth is left out at once (at most 8, and no more than fit into memory), so that
    the forecast is for a table about as large as the user's. Every reference is a
    target once before any is a second time, then in another order of the items.

    Args:
        references: The user's table.
        n_targets: Runs wanted; whole folds, so there may be a few more.
        n_max: Items evaluated in a run.
        seed: Fixes the folds.
    """
    names = check_table(references)
    size = max(1, min(_AT_ONCE, round(_SHARE_LEFT_OUT * len(names))))
    size = min(size, _in_memory(references, n_max))
    folds: list[Fold] = []
    runs = 0
    while runs < n_targets:
        order = random_order(len(names), seed + len(folds)).tolist()
        for start in range(0, len(names), size):
            targets = tuple(names[i] for i in order[start : start + size])
            folds.append(_fold("interpolation", targets, references, seed + len(folds)))
            runs += len(targets)
            if runs >= n_targets:
                break
    return folds


def extrapolation_folds(
    references: References, *, gap: float, n_max: int, repeats: int, seed: int
) -> list[Fold]:
    """The strongest references as targets; the next ``gap`` of all are left out.

    A sixth of the references, at most 16, as :func:`~gp_eval.experiments.extrapolation`
    splits them. Repeats differ in the order of the items alone.
    """
    names = check_table(references)
    size = max(1, min(_MOST_TARGETS, round(_STRONGEST * len(names))))
    split = extrapolation(references, n_targets=size, gap=gap)
    if len(split.pool) < 2:
        raise DataError(
            f"gap: {gap:g} of {len(names)} references leaves {len(split.pool)} below "
            "the strongest; expected at least 2"
        )
    step = min(_AT_ONCE, _in_memory(references, n_max))
    return [
        Fold("extrapolation", split.targets[at : at + step], split.pool, seed + repeat)
        for repeat in range(repeats)
        for at in range(0, size, step)
    ]


def curve_sizes(pool: int) -> list[int]:
    """Numbers of references, below ``pool``, at which the curve over them is measured.

    Empty if the pool is too small for three different ones.
    """
    sizes = sorted({max(2, round(share * pool)) for share in _CURVE} - {pool})
    return sizes if len(sizes) == len(_CURVE) and sizes[-1] < pool else []


def fewer_references(fold: Fold, size: int) -> Fold:
    """The same targets with a random part of their references."""
    return replace(fold, size=size)


def _fold(
    regime: PlanRegime, targets: tuple[str, ...], references: References, seed: int
) -> Fold:
    left_out = set(targets)
    pool = tuple(name for name in references.models if name not in left_out)
    return Fold(regime, targets, pool, seed)


def _in_memory(references: References, n_max: int) -> int:
    """Targets at once: a GP run holds a row of ``N`` numbers for each item."""
    return max(1, math.floor(_MOST_BYTES / (8 * n_max * len(references.items))))
