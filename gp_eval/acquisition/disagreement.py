"""DISCO's choice as an acquisition function: the item models disagree on most."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from botorch.acquisition.acquisition import AcquisitionFunction
from botorch.acquisition.input_constructors import acqf_input_constructor
from botorch.models.model import Model
from botorch.utils.transforms import t_batch_mode_transform
from torch import Tensor

from gp_eval.disco.choose import disagreement_order

__all__ = ["DisagreementSelection"]


class DisagreementSelection(AcquisitionFunction):
    """Selects items in the order of fixed scores, such as DISCO's PDS or JSD.

    The order is that of :func:`~gp_eval.disco.disagreement_order`, with its rule for
    ties and its strata. It depends on the references alone: not on the target's scores
    nor on what was evaluated, so that greedy and joint maximisers are the first ``q``.

    Args:
        model: The model of the run; it is not read.
        scores: Scores of the items, shape ``N``; the highest is chosen first.
        groups: Group of each item, for a stratified choice.
    """

    rank: Tensor

    def __init__(
        self, model: Model, *, scores: Tensor, groups: Sequence[str] | None = None
    ) -> None:
        super().__init__(model=model)
        self.set_X_pending(None)
        order = disagreement_order(scores, groups=groups)
        self.register_buffer("order", order)
        self.register_buffer("rank", torch.argsort(order))

    @t_batch_mode_transform()  # type: ignore[arg-type]
    def forward(self, X: Tensor) -> Tensor:
        """Minus the summed rank of ``b x q x 1`` item indices, shape ``b``."""
        return -self.rank[X.squeeze(-1).long()].sum(dim=-1).to(X)


@acqf_input_constructor(DisagreementSelection)
def _construct_inputs(
    model: Model, scores: Tensor, groups: Sequence[str] | None = None
) -> dict[str, Any]:
    """Inputs of :class:`DisagreementSelection` for BoTorch's factories."""
    return {"model": model, "scores": scores, "groups": groups}
