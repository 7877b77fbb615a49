"""Space covering: the next anchor is the item that the anchors cover worst."""

from __future__ import annotations

from typing import Any, Protocol, cast

import torch
from botorch.acquisition.acquisition import AcquisitionFunction
from botorch.acquisition.input_constructors import acqf_input_constructor
from botorch.models.model import Model
from botorch.utils.transforms import t_batch_mode_transform
from torch import Tensor

__all__ = ["SpaceCovering", "SupportsCoverage"]


class SupportsCoverage(Protocol):
    """Items and anchors in a space with correlations for nearness."""

    centrality: Tensor
    similarity: Tensor
    anchors: list[int]

    def correlations(self, item: int) -> Tensor:
        """Correlation of one item with all items, shape ``N``."""


class SpaceCovering(AcquisitionFunction):
    r"""Distance of an item from the nearest anchor, for farthest-first covering.

    .. math:: \alpha(i) = 1 - \max_{a \in C} \operatorname{corr}(\phi_i, \phi_a)

    Its maximiser is the greedy choice of the k-center problem (Gonzalez 1985). Without
    anchors it is the mean correlation of the item with all items, whose maximiser is
    the 1-medoid: the item that alone covers the space best. It depends on which items
    were evaluated and not on their scores, nor on their order.

    The coverage is read at each call, so one acquisition serves a whole run.

    Args:
        model: The coverage, such as
            :class:`~gp_eval.models.baselines.coverage.AnchorCoverage`. It takes the
            place of BoTorch's model, for there is no posterior.
        X_pending: A ``m x 1`` tensor of items that are being evaluated; they count as
            anchors.
    """

    def __init__(
        self, model: SupportsCoverage, X_pending: Tensor | None = None
    ) -> None:
        super().__init__(model=cast(Model, model))
        self.set_X_pending(X_pending)

    @t_batch_mode_transform(expected_q=1)  # type: ignore[arg-type]
    def forward(self, X: Tensor) -> Tensor:
        """Distances of item indices ``b x 1 x 1``, shape ``b``."""
        return self.of_items(X.squeeze(-1).long())

    def of_items(self, items: Tensor) -> Tensor:
        """Distances of integer item indices ``b x 1``, shape ``b``."""
        items = items.squeeze(-1)
        coverage: Any = self.model
        similarity = coverage.similarity
        pending: list[int] = []
        if self.X_pending is not None:
            pending = self.X_pending.reshape(-1).long().tolist()
        for item in pending:
            similarity = torch.maximum(similarity, coverage.correlations(item))
        if not coverage.anchors and not pending:
            centrality: Tensor = coverage.centrality[items]
            return centrality
        distance: Tensor = 1.0 - similarity[items]
        return distance


@acqf_input_constructor(SpaceCovering)
def _construct_inputs(
    model: SupportsCoverage, X_pending: Tensor | None = None
) -> dict[str, Any]:
    """Inputs of :class:`SpaceCovering` for BoTorch's factories."""
    return {"model": model, "X_pending": X_pending}
