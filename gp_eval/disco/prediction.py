"""What a predictor says about the full-benchmark scores of some models."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, Protocol

import numpy as np
from torch import Tensor

__all__ = ["Prediction", "Predictor"]


@dataclass(frozen=True)
class Prediction:
    """Predicted benchmark scores of ``T`` models.

    Attributes:
        mean: In score units, shape ``T``.
        std: Standard deviations, shape ``T``; ``None`` if the predictor has none.
        models: Ids of the models, if they have any.
        n_ignored: Responses to items that were not chosen, which play no part.
    """

    mean: Tensor
    std: Tensor | None = None
    models: tuple[str, ...] = ()
    n_ignored: int = 0

    def interval(self, level: float = 0.95) -> tuple[Tensor, Tensor] | None:
        """Ends of the central interval, shape ``T`` each, where there is one."""
        if self.std is None:
            return None
        half = NormalDist().inv_cdf(0.5 + level / 2.0) * self.std
        return self.mean - half, self.mean + half


class Predictor(Protocol):
    """A fitted map from features to the benchmark score."""

    def predict(self, features: Tensor) -> Prediction:
        """Prediction of features ``T x F``."""

    def state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Settings (JSON values) and arrays that rebuild it."""
