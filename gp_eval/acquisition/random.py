"""Random selection as an acquisition function."""

from __future__ import annotations

from typing import Any

import torch
from botorch.acquisition.acquisition import AcquisitionFunction
from botorch.acquisition.input_constructors import acqf_input_constructor
from botorch.models.model import Model
from botorch.utils.transforms import t_batch_mode_transform
from torch import Tensor

from gp_eval._random import random_order

__all__ = ["RandomSelection"]


class RandomSelection(AcquisitionFunction):
    """Selects items in the order of one random permutation.

    The maximiser over the unevaluated items is uniform among them, and the same seed
    gives the same order, wherever a run was interrupted.

    Args:
        model: The model of the run; it is not read.
        n_items: Number of items ``N``.
        seed: Seed of the permutation.
    """

    rank: Tensor

    def __init__(self, model: Model, *, n_items: int, seed: int = 0) -> None:
        super().__init__(model=model)
        order = random_order(n_items, seed)
        self.register_buffer("order", order)
        self.register_buffer("rank", torch.argsort(order))

    @t_batch_mode_transform()  # type: ignore[arg-type]
    def forward(self, X: Tensor) -> Tensor:
        """Minus the summed rank of ``b x q x 1`` item indices, shape ``b``."""
        return -self.rank[X.squeeze(-1).long()].sum(dim=-1).to(X)


@acqf_input_constructor(RandomSelection)
def _construct_inputs(model: Model, n_items: int, seed: int = 0) -> dict[str, Any]:
    """Inputs of :class:`RandomSelection` for BoTorch's factories."""
    return {"model": model, "n_items": n_items, "seed": seed}
