"""Any model of several targets with intervals that hold on the references."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

import torch
from botorch.acquisition.acquisition import AcquisitionFunction
from torch import Tensor

from gp_eval.calibration.inflation import Inflation
from gp_eval.calibration.recalibration import Recalibration
from gp_eval.data import References
from gp_eval.models.coreset import Coreset
from gp_eval.models.protocol import (
    Hyperparameters,
    LeaveOneOut,
    MultiTargetModel,
    Performance,
    SupportsBegin,
    SupportsItemBelief,
    SupportsScoreCheck,
    as_items,
)

__all__ = ["CalibratedTargetItems", "CalibratedTargets"]


class CalibratedTargets:
    r"""Choice and estimates of a model of ``T`` targets, with calibrated intervals.

    As :class:`~gp_eval.calibration.Calibrated`, with the ``n / N`` of each target for
    the factor; pseudo-targets are run jointly. Correlations of targets stay those of
    the wrapped model, but for what the floor adds to a variance of 0.

    :func:`~gp_eval.calibration.calibrated_targets` makes one from a registered model.

    Args:
        model: The wrapped model, before any item.
        references: Complete reference scores of at least two models, of which it was
            built.
        learn: Finds the inflation.

    Raises:
        ValueError: For a single reference.
        DataError: For missing cells.
    """

    def __init__(
        self,
        model: MultiTargetModel,
        references: References,
        *,
        learn: Callable[[], Inflation],
    ) -> None:
        self.model, self.n_targets = model, model.n_targets
        self._recalibration = Recalibration(references, learn=learn)
        self._coresets = [Coreset(references) for _ in range(self.n_targets)]
        self._unseen = references.item_weights.new_ones(
            self.n_targets, len(references.items)
        )

    # The protocol of the harness

    @property
    def initial_items(self) -> int:
        """Random items that all targets are evaluated on first."""
        return self.model.initial_items

    @initial_items.setter
    def initial_items(self, number: int) -> None:
        self.model.initial_items = number

    def condition(self, items: Tensor, scores: Tensor) -> None:
        """Take in rows ``m x 2`` of item and target and their scores, in that order.

        Raises:
            ValueError: For a row out of range or evaluated before, or a score that is
                not finite; nothing is changed then.
        """
        fresh = self._checked(items, torch.as_tensor(scores).reshape(-1))
        self.model.condition(items, scores)
        for target, item, score in fresh:
            self._coresets[target].add(item, score)
            self._unseen[target, item] = 0.0

    def _checked(self, items: Tensor, scores: Tensor) -> list[tuple[int, int, float]]:
        """Targets, items and scores that may be taken in; nothing is changed."""
        if items.ndim != 2 or items.shape[1] != 2 or items.shape[0] != scores.shape[0]:
            raise ValueError(
                "items, scores: expected rows [item, target] and as many scores, got "
                f"{tuple(items.shape)} and {tuple(scores.shape)}"
            )
        wanted = as_items(items[:, 1], self.n_targets, name="targets")
        found = []
        for target in dict.fromkeys(wanted):
            own = [row for row, t in enumerate(wanted) if t == target]
            pairs = self._coresets[target].check(items[own, 0], scores[own])
            found += [(target, item, score) for item, score in pairs]
        return found

    def check_score(self, score: float) -> None:
        """Raise ``ValueError`` for a score that the wrapped model cannot take."""
        if isinstance(self.model, SupportsScoreCheck):
            self.model.check_score(score)

    def performance(self) -> Performance:
        """The wrapped model's estimates, with calibrated variances and covariance."""
        belief = self.model.performance()
        left = self._coresets[0].weights * self._unseen
        variance = self._recalibration.variance(belief, left, self._shares())
        mean = belief.mean.clone()
        for target, coreset in enumerate(self._coresets):
            if coreset.complete:
                mean[target], variance[target] = coreset.observed, 0.0
        return Performance(mean, variance, _rescaled(belief, variance))

    def _shares(self) -> Tensor:
        """Of the items of each target that are evaluated, shape ``T``."""
        numbers = self._unseen.new_tensor([coreset.n for coreset in self._coresets])
        return numbers / self._unseen.shape[1]

    def acquisition(self) -> AcquisitionFunction | None:
        """The wrapped model's."""
        return self.model.acquisition()

    @property
    def item_groups(self) -> Tensor | None:
        """Items that the wrapped model cannot tell apart; ``None``: of equal scores."""
        groups = getattr(self.model, "item_groups", None)
        return None if groups is None else torch.as_tensor(groups)

    def begin(self) -> None:
        """There are no more initial items to wait for."""
        if isinstance(self.model, SupportsBegin):
            self.model.begin()

    @property
    def progress(self) -> Any:
        """Told ``(step, steps)`` while the wrapped model trains."""
        return getattr(self.model, "progress", None)

    @progress.setter
    def progress(self, told: Any) -> None:
        if hasattr(self.model, "progress"):
            self.model.progress = told

    # Calibration

    @property
    def inflation(self) -> Inflation:
        """The learned factors; learned now if they are not known yet."""
        return self._recalibration.inflation

    @property
    def updates(self) -> dict[int, Hyperparameters]:
        """The wrapped model's updates, with the inflation at ``n = 0``."""
        return self._recalibration.updates(self.model)

    def replay_updates(self, updates: Mapping[int, Hyperparameters]) -> None:
        """Use these at the given ``n`` instead of learning.

        Raises:
            ValueError: For an inflation that cannot be one.
        """
        self._recalibration.replay_updates(self.model, updates)


class CalibratedTargetItems(CalibratedTargets):
    """The same of a model with a joint belief about items, for reports."""

    def weighted_sums(self, weights: Tensor) -> Performance:
        """Belief about sums of scores with weights ``m x N``, shape ``T x m``.

        Variances are calibrated as those of the benchmark scores; where all items of
        weight are evaluated, they are 0. The covariance is ``T x m x T x m``.
        """
        belief = cast(SupportsItemBelief, self.model).weighted_sums(weights)
        left = weights.to(self._unseen) * self._unseen.unsqueeze(-2)
        shares = self._shares().unsqueeze(-1).expand(left.shape[:-1])
        variance = self._recalibration.variance(belief, left, shares)
        known = (left == 0.0).all(-1).to(variance.device)
        variance = variance.masked_fill(known, 0.0)
        return Performance(belief.mean, variance, _rescaled(belief, variance))

    def leave_one_out(self) -> LeaveOneOut:
        """The wrapped model's predictions of single scores, as they are."""
        return cast(SupportsItemBelief, self.model).leave_one_out()


def _rescaled(belief: Performance, variance: Tensor) -> Tensor | None:
    """The belief's covariance with these variances and the same correlations.

    A variance of 0 has no correlation: what it is now is independent of the others.
    """
    if belief.covariance is None:
        return None
    before = belief.covariance.reshape(variance.numel(), variance.numel())
    own = before.diagonal()
    scale = torch.where(own > 0.0, variance.flatten() / own, 0.0).sqrt()
    after = scale.unsqueeze(-1) * before * scale
    after.diagonal().copy_(variance.flatten())
    return after.reshape(belief.covariance.shape)
