"""Groups and single items of a target, as far as its model has a belief about them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from gp_eval.data import References
from gp_eval.models.protocol import LeaveOneOut, Performance, SupportsItemBelief
from gp_eval.report.content import EvaluatedItem, GroupScore

__all__ = ["ItemBelief", "group_weights", "largest"]

_LISTED = 10
"""Surprises shown."""

_NOT_AVAILABLE = "Not available for this model: it has no joint belief about items."
_GROUPS = (
    "Posterior mean of each group's mean score: the scores of its evaluated items "
    "and the model's prediction of the others. Each 95 % interval holds for its group "
    "alone."
)
_NO_SUM = (
    " They do not add up to the estimate, which is not the posterior mean here (of "
    "BayesAME on items that repeat it is the control variate of Eq. (4))."
)
_SURPRISES = (
    "(score - prediction) / standard deviation. The prediction comes from the "
    "references and all other evaluated items (leave-one-out), with the last "
    "fitted hyperparameters; it is not the one made before the score was known."
)


def group_weights(references: References) -> tuple[list[str], Tensor]:
    """Groups of positive weight, and the weights of their mean scores.

    The score of a group is :math:`\\sum_{i \\in g} w_i s_i / \\sum_{i \\in g} w_i`.

    Returns:
        Names in the order of their first items, and weights ``G x N``.
    """
    names = list(dict.fromkeys(references.groups or []))
    place = {name: g for g, name in enumerate(names)}
    of_item = torch.tensor([place[name] for name in references.groups or []])
    table = torch.zeros(len(names), len(references.items), dtype=torch.float64)
    if names:
        items = torch.arange(of_item.shape[0])
        table[of_item, items] = references.item_weights
    total = table.sum(-1, keepdim=True)
    kept = [g for g in range(len(names)) if float(total[g]) > 0.0]
    return [names[g] for g in kept], table[kept] / total[kept]


@dataclass(frozen=True)
class ItemBelief:
    """What a model says about groups and items of all its targets.

    Use :meth:`read`, not the constructor.
    """

    references: References
    n_targets: int
    names: list[str]
    weights: Tensor
    groups: Performance | None
    left_out: list[dict[int, tuple[float, float]]] | None

    @classmethod
    def read(cls, model: object, references: References, n_targets: int) -> ItemBelief:
        """Ask a model; one that cannot say leaves ``groups`` and ``left_out`` empty."""
        names, weights = group_weights(references)
        groups, left_out = None, None
        if isinstance(model, SupportsItemBelief):
            groups = model.weighted_sums(weights) if names else None
            left_out = _by_target(model.leave_one_out(), n_targets)
        return cls(references, n_targets, names, weights, groups, left_out)

    def group_scores(
        self, target: int, scores: Mapping[str, float], *, estimate: float
    ) -> tuple[list[GroupScore], str]:
        """Scores by group, and what they are or why there are none.

        Args:
            target: Which of the targets.
            scores: Its told scores by item.
            estimate: The reported estimate, for a note where groups do not add up to
                it.
        """
        if self.references.groups is None:
            return [], "The references name no groups of items."
        if self.groups is None:
            return [], _NOT_AVAILABLE
        shape = (self.n_targets, len(self.names))
        means = self.groups.mean.cpu().view(shape)[target].tolist()
        low, high = (
            end.cpu().view(shape)[target].tolist() for end in self.groups.interval()
        )
        references = (self.weights @ self.references.scores.nanmean(-1)).tolist()
        size = Counter(self.references.groups)
        named = zip(self.references.items, self.references.groups, strict=True)
        told = Counter(group for item, group in named if item in scores)
        return [
            GroupScore(
                group=name,
                n=told[name],
                N=size[name],
                estimate=means[g],
                low=low[g],
                high=high[g],
                references_mean=references[g],
            )
            for g, name in enumerate(self.names)
        ], _GROUPS + ("" if self._adds_up(means, estimate) else _NO_SUM)

    def _adds_up(self, means: Sequence[float], estimate: float) -> bool:
        shares = (self.weights > 0.0).double() @ self.references.item_weights
        total = math.fsum(
            s * mean for s, mean in zip(shares.tolist(), means, strict=True)
        )
        return math.isclose(total, estimate, rel_tol=1e-6, abs_tol=1e-9)

    def evaluated(
        self, target: int, scores: Mapping[str, float]
    ) -> tuple[list[EvaluatedItem], str]:
        """The evaluated items, and what surprise means or why there is none."""
        predictions = {} if self.left_out is None else self.left_out[target]
        index = {item: i for i, item in enumerate(self.references.items)}
        means = self.references.scores.nanmean(-1).tolist()
        groups = self.references.groups
        entries = []
        for item, score in scores.items():
            i = index[item]
            predicted, std = predictions.get(i, (None, None))
            entries.append(
                EvaluatedItem(
                    item=item,
                    group=None if groups is None else groups[i],
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
