"""The evaluated items of a target, and which of them its model did not expect."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gp_eval.data import Groups, References
from gp_eval.models.protocol import LeaveOneOut, SupportsItemBelief
from gp_eval.report.content import EvaluatedItem

__all__ = ["ItemBelief", "largest"]

_LISTED = 10
"""Surprises shown."""

_NOT_AVAILABLE = "Not available for this model: it has no joint belief about items."
_SURPRISES = (
    "(score - prediction) / standard deviation. The prediction comes from the "
    "references and all other evaluated items (leave-one-out), with the last "
    "fitted hyperparameters; it is not the one made before the score was known."
)


@dataclass(frozen=True)
class ItemBelief:
    """What a model says about the evaluated items of all its targets.

    Use :meth:`read`, not the constructor.
    """

    references: References
    of_item: Sequence[str]
    left_out: list[dict[int, tuple[float, float]]] | None

    @classmethod
    def read(
        cls,
        model: object,
        references: References,
        n_targets: int,
        *,
        groups: Groups | None,
    ) -> ItemBelief:
        """Ask a model; one that cannot say leaves ``left_out`` empty."""
        left_out = None
        if isinstance(model, SupportsItemBelief):
            left_out = _by_target(model.leave_one_out(), n_targets)
        none = ("",) * len(references.items)
        of_item = (references.groups or none) if groups is None else groups.of_item
        return cls(references, of_item, left_out)

    def evaluated(
        self, target: int, scores: Mapping[str, float]
    ) -> tuple[list[EvaluatedItem], str]:
        """The evaluated items, and what surprise means or why there is none."""
        predictions = {} if self.left_out is None else self.left_out[target]
        index = {item: i for i, item in enumerate(self.references.items)}
        means = self.references.scores.nanmean(-1).tolist()
        entries = []
        for item, score in scores.items():
            i = index[item]
            predicted, std = predictions.get(i, (None, None))
            entries.append(
                EvaluatedItem(
                    item=item,
                    group=self.of_item[i] or None,
                    score=score,
                    references_mean=means[i],
                    predicted=predicted,
                    predicted_std=std,
                    surprise=None
                    if predicted is None or std is None
                    else (score - predicted) / std,
                )
            )
        return entries, _NOT_AVAILABLE if self.left_out is None else _SURPRISES


def largest(
    items: list[EvaluatedItem], limit: int = _LISTED
) -> tuple[list[EvaluatedItem], float | None]:
    """The items of largest absolute surprise, and the root mean square of all."""
    known = [(abs(i.surprise), i) for i in items if i.surprise is not None]
    if not known:
        return [], None
    ordered = sorted(known, key=lambda pair: -pair[0])  # equals stay in order
    mean_square = math.fsum(size * size for size, _ in known) / len(known)
    return [item for _, item in ordered[:limit]], math.sqrt(mean_square)


def _by_target(
    left_out: LeaveOneOut, n_targets: int
) -> list[dict[int, tuple[float, float]]]:
    """Mean and standard deviation by item, one dictionary a target."""
    by_target: list[dict[int, tuple[float, float]]] = [{} for _ in range(n_targets)]
    pairs = left_out.items.ndim == 2
    rows = (
        left_out.items.tolist() if pairs else [[i, 0] for i in left_out.items.tolist()]
    )
    means, stds = left_out.mean.tolist(), left_out.variance.sqrt().tolist()
    for row, mean, std in zip(rows, means, stds, strict=True):
        by_target[row[1]][row[0]] = (mean, std)
    return by_target
