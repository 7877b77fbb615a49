"""The one way from a seed to a random order."""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ["random_order"]


def random_order(size: int, seed: int) -> Tensor:
    """The permutation of ``size`` things that belongs to a seed."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randperm(size, generator=generator)
