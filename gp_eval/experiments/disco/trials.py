"""References and held-out models for DISCO's experiments (Section 5 of its paper)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, get_args

from gp_eval._random import random_order
from gp_eval.data import References
from gp_eval.experiments.splits import (
    Split,
    chronological,
    extrapolation,
    interpolation,
)

__all__ = ["SplitName", "Trial", "trials"]

SplitName = Literal["uniform", "chronological", "performance-gap"]

_BOOTSTRAP = 0.9  # 346 of 385 references and more runs, Table 8 of the DISCO paper


@dataclass(frozen=True)
class Trial:
    """One split: a plan is fitted on the references and never sees the targets.

    Attributes:
        regime: How the targets were split off.
        number: Which of the splits it is.
        references: The ``K`` references.
        targets: The ``T`` held-out models, read like references.
    """

    regime: SplitName
    number: int
    references: References
    targets: References

    def with_sources(self, size: int) -> Trial:
        """The same targets, and ``size`` of the references at random.

        Raises:
            ValueError: For fewer than 2 or more than there are.
        """
        names = self.references.models
        if not 2 <= size <= len(names):
            raise ValueError(f"sources: expected 2..{len(names)} models, got {size}")
        kept = sorted(random_order(len(names), self.number)[:size].tolist())
        smaller = self.references.subset(models=[names[i] for i in kept])
        return Trial(self.regime, self.number, smaller, self.targets)


def trials(
    scores: References,
    *,
    regime: SplitName = "uniform",
    n_splits: int = 20,
    n_targets: int | None = None,
    gap: float = 0.2,
    fraction: float | None = None,
) -> Iterator[Trial]:
    """Several splits of one regime.

    ``"uniform"``: random targets, drawn anew for each split. ``"chronological"``: the
    newest models are the targets. ``"performance-gap"``: the best models are, and the
    next ``gap`` of all models are left out. The targets of the latter two are fixed,
    so that splits differ in a random ``fraction`` of the references.

    Args:
        scores: Complete scores of all models, from old to new where it matters.
        regime: One of the three.
        n_splits: Number of splits.
        n_targets: Number of targets; default a tenth of the models, at least 5.
        gap: Share of all models between targets and references.
        fraction: Share of the other models that are references. Default: 1 for
            ``"uniform"``, else 0.9.

    Raises:
        ValueError: For an unknown regime, no split, or splits that would be equal.
        DataError: For more targets than models.
    """
    if regime not in get_args(SplitName):
        raise ValueError(
            f"regime: expected one of {list(get_args(SplitName))}, got {regime!r}"
        )
    if n_splits < 1:
        raise ValueError(f"splits: expected at least 1, got {n_splits}")
    if fraction is None:
        fraction = 1.0 if regime == "uniform" or n_splits == 1 else _BOOTSTRAP
    if regime != "uniform" and fraction == 1.0 and n_splits > 1:
        raise ValueError(
            f"fraction: {n_splits} {regime} splits of all references would be equal; "
            "expected fraction < 1 or 1 split"
        )
    size = max(5, round(0.1 * len(scores.models))) if n_targets is None else n_targets
    for number in range(n_splits):
        split = _split(scores, regime, size, gap, number)
        yield Trial(
            regime,
            number,
            split.references(fraction, seed=number),
            split.scores.subset(models=split.targets),
        )


def _split(
    scores: References, regime: SplitName, n_targets: int, gap: float, number: int
) -> Split:
    if regime == "uniform":
        return interpolation(scores, n_targets=n_targets, target_seed=number)
    if regime == "chronological":
        return chronological(scores, n_targets=n_targets)
    return extrapolation(scores, n_targets=n_targets, gap=gap)
