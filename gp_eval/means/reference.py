r"""The prior mean of the BayesAME paper as a GPyTorch mean."""

from __future__ import annotations

from typing import Any

import torch
from gpytorch.means import Mean
from torch import Tensor

__all__ = ["ReferenceMean"]


class ReferenceMean(Mean):
    r"""Mean score of the references, :math:`\mu(\phi) = \phi^\top w`.

    By default :math:`w_k = 1 / K`, Eq. (1) of the BayesAME paper; with ``weights`` the
    metadata-weighted prior of Appendix B.2.

    Args:
        weights: A ``K``-dim tensor of reference weights with sum 1.
    """

    weights: Tensor

    def __init__(self, *, weights: Tensor | None = None) -> None:
        super().__init__()
        # An empty tensor stands for Eq. (1), so that state dicts always hold the key.
        empty = torch.empty(0)
        self.register_buffer("weights", empty if weights is None else weights)

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *args: Any) -> None:
        saved = state_dict.get(f"{prefix}weights")
        if saved is not None and saved.shape != self.weights.shape:
            self.weights = torch.empty_like(saved, device=self.weights.device)
        super()._load_from_state_dict(state_dict, prefix, *args)

    def forward(self, x: Tensor) -> Tensor:
        """Prior mean ``... x n`` of ``... x n x K`` score vectors."""
        return x @ self.weights if self.weights.numel() else x.mean(dim=-1)
