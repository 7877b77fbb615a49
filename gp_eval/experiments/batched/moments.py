"""Means and variances of growing samples, for many targets at once."""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ["running_moments"]


def running_moments(scores: Tensor, single: Tensor) -> tuple[Tensor, Tensor]:
    """Sample mean and variance of the first ``n`` scores, for every ``n``.

    Args:
        scores: Scores in the order of evaluation, ``R x n_max``.
        single: Variance at ``n = 1``, where the sample has none.

    Returns:
        Two tensors ``R x n_max``.
    """
    n = torch.arange(1, scores.shape[-1] + 1, dtype=scores.dtype, device=scores.device)
    # Relative to the first score: equal scores have a variance of exactly 0.
    first = scores[..., :1]
    offset = scores - first
    total = offset.cumsum(-1)
    squares = (offset.square().cumsum(-1) - total.square() / n).clamp_min(0.0)
    variance = squares / (n - 1.0).clamp_min(1.0)
    variance[..., 0] = single
    return first + total / n, variance
