"""What makes a belief wider: a learned inflation and a floor, kept in the journal."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import Tensor

from gp_eval.calibration.inflation import Inflation, without_inflation
from gp_eval.calibration.own_variance import own_variances
from gp_eval.data import References
from gp_eval.intervals import half_width
from gp_eval.models.protocol import Hyperparameters, Performance, SupportsRefit

__all__ = ["Recalibration"]


class Recalibration:
    """Variances by :class:`~gp_eval.calibration.Calibrated`, for its two wrappers.

    The inflation is learned when it is first needed. It is the update at ``n = 0``,
    which a session writes down, so that a replay does not learn again.

    Args:
        references: Complete reference scores of at least two models.
        learn: Finds the inflation.

    Raises:
        ValueError: For a single reference.
        DataError: For missing cells.
    """

    def __init__(
        self, references: References, *, learn: Callable[[], Inflation]
    ) -> None:
        self._own = own_variances(references)
        self._learn = learn
        self._inflation: Inflation | None = None

    @property
    def inflation(self) -> Inflation:
        """The learned factors; learned now if they are not known yet."""
        if self._inflation is None:
            self._inflation = self._learn()
        return self._inflation

    def variance(self, belief: Performance, left: Tensor, shares: Tensor) -> Tensor:
        """Calibrated variances of beliefs about weighted sums of scores.

        Args:
            belief: As the wrapped model has it, of shape ``...``.
            left: Weights of the items, 0 for those that are evaluated, ``... x N``.
            shares: ``n / N`` of whom the belief is about; broadcasts to ``...``.
        """
        one = half_width(torch.ones_like(belief.variance))
        believed = half_width(belief.variance.clamp_min(0.0), belief.dof) / one
        floor = (left.square() @ self._own).to(believed)
        factors = [self.inflation.at(share) for share in shares.flatten().tolist()]
        factor = believed.new_tensor(factors).view(shares.shape)
        return factor**2 * believed.square().maximum(floor)

    def updates(self, model: object) -> dict[int, Hyperparameters]:
        """The wrapped model's updates, with the inflation at ``n = 0``."""
        known: dict[int, Hyperparameters] = {}
        if self._inflation is not None:
            known[0] = self._inflation.record()
        if isinstance(model, SupportsRefit):
            for n, values in model.updates.items():
                known[n] = {**known.get(n, {}), **values}
        return known

    def replay_updates(
        self, model: object, updates: Mapping[int, Hyperparameters]
    ) -> None:
        """Use these at the given ``n`` instead of learning.

        Raises:
            ValueError: For an inflation that cannot be one.
        """
        inflation = Inflation.from_record(updates.get(0, {}))
        if inflation is not None:
            self._inflation = inflation
        if isinstance(model, SupportsRefit):
            own = {n: without_inflation(values) for n, values in updates.items()}
            model.replay_updates({n: values for n, values in own.items() if values})
