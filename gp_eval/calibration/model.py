"""Any model of one target with intervals that hold on the references themselves."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import cast

import torch
from botorch.acquisition.acquisition import AcquisitionFunction
from torch import Tensor

from gp_eval.acquisition import BatchSelection
from gp_eval.calibration.inflation import Inflation
from gp_eval.calibration.recalibration import Recalibration
from gp_eval.data import References
from gp_eval.models.coreset import Coreset
from gp_eval.models.protocol import (
    Hyperparameters,
    LeaveOneOut,
    Performance,
    PerformanceModel,
    SupportsItemBelief,
    SupportsScoreCheck,
)

__all__ = ["Calibrated", "CalibratedItems"]


class Calibrated:
    r"""Another model's choice and estimate, with calibrated intervals.

    The variance is :math:`f(n / N)^2 \max(v_n, w_n)`: :math:`v_n` the wrapped model's,
    :math:`w_n = \sum_{i \notin C} w_i^2 v_i` what the unobserved items' own variances
    imply (:func:`~gp_eval.calibration.own_variances`), and
    :math:`f \ge 1` learned on references that are run as targets
    (:func:`~gp_eval.calibration.fit_inflation`). It never makes an interval
    narrower. A belief of Student's t counts by its 95 % interval. At ``n = N`` the
    estimate is the benchmark score and the variance 0, whatever the wrapped model says.

    The inflation is learned when a belief is first asked for.

    :func:`~gp_eval.calibration.calibrated` makes one from a registered model.

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
        model: PerformanceModel,
        references: References,
        *,
        learn: Callable[[], Inflation],
    ) -> None:
        self.model = model
        self._coreset = Coreset(references)
        self._recalibration = Recalibration(references, learn=learn)
        self._unseen = torch.ones_like(self._coreset.weights)

    # The protocol of the harness

    def condition(self, items: Tensor, scores: Tensor) -> None:
        """Take in ``m`` more items and their scores.

        Raises:
            ValueError: For an item out of range or evaluated before, or a score that is
                not finite; nothing is changed then.
        """
        fresh = self._coreset.check(items, scores)
        self.model.condition(items, scores)
        for item, score in fresh:
            self._coreset.add(item, score)
            self._unseen[item] = 0.0

    def performance(self) -> Performance:
        """The wrapped model's estimate, with the calibrated variance."""
        belief = self.model.performance()
        if self._coreset.complete:
            truth = self._coreset.observed.to(belief.mean)
            return Performance(truth, torch.zeros_like(truth))
        weights = self._coreset.weights * self._unseen
        return Performance(belief.mean, self._calibrate(belief, weights))

    def acquisition(self) -> AcquisitionFunction | None:
        """The wrapped model's."""
        return self.model.acquisition()

    @property
    def item_groups(self) -> Tensor | None:
        """Items that the wrapped model cannot tell apart; ``None``: of equal scores."""
        groups = getattr(self.model, "item_groups", None)
        return None if groups is None else torch.as_tensor(groups)

    @property
    def batch_selection(self) -> BatchSelection | None:
        """The wrapped model's."""
        return getattr(self.model, "batch_selection", None)

    def check_score(self, score: float) -> None:
        """Raise ``ValueError`` for a score that the wrapped model cannot take."""
        if isinstance(self.model, SupportsScoreCheck):
            self.model.check_score(score)

    # Calibration

    @property
    def inflation(self) -> Inflation:
        """The learned factors; learned now if they are not known yet."""
        return self._recalibration.inflation

    def _calibrate(self, belief: Performance, left: Tensor) -> Tensor:
        """Variances of the beliefs about sums with weights ``... x N`` left unseen."""
        share = left.new_tensor(self._coreset.n / self._coreset.n_items)
        return self._recalibration.variance(belief, left, share)

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


class CalibratedItems(Calibrated):
    """The same of a model with a joint belief about items, for reports."""

    def weighted_sums(self, weights: Tensor) -> Performance:
        """Belief about sums of scores with weights ``m x N``, shape ``m``.

        Variances are calibrated as that of the benchmark score; where all items of
        weight are evaluated, they are 0.
        """
        belief = cast(SupportsItemBelief, self.model).weighted_sums(weights)
        left = weights.to(self._unseen) * self._unseen
        variance = self._calibrate(belief, left)
        known = (left == 0.0).all(-1).to(variance.device)
        return Performance(belief.mean, variance.masked_fill(known, 0.0))

    def leave_one_out(self) -> LeaveOneOut:
        """The wrapped model's predictions of single scores, as they are."""
        return cast(SupportsItemBelief, self.model).leave_one_out()
