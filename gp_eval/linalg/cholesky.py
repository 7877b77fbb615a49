"""Cholesky factorisation without jitter."""

from __future__ import annotations

import torch
from torch import Tensor

from gp_eval.errors import NotPositiveDefiniteError

__all__ = ["cholesky"]


def cholesky(matrix: Tensor, *, name: str) -> Tensor:
    """Lower Cholesky factor of ``... x n x n``; nothing is added to the diagonal.

    Args:
        matrix: A symmetric ``... x n x n`` tensor.
        name: What the matrix is, for the error.

    Raises:
        NotPositiveDefiniteError: With the extreme eigenvalues, if there is no factor.
    """
    factor, info = torch.linalg.cholesky_ex(matrix)
    if bool((info > 0).any()) or not bool(factor.diagonal(0, -2, -1).isfinite().all()):
        if not bool(matrix.isfinite().all()):
            raise NotPositiveDefiniteError(f"{name}: has entries that are not finite")
        eigenvalues = torch.linalg.eigvalsh(matrix)
        low, high = float(eigenvalues.min()), float(eigenvalues.max())
        raise NotPositiveDefiniteError(
            f"{name}: no Cholesky factor in {matrix.dtype}; eigenvalues from {low:.3g} "
            f"to {high:.3g} (n = {matrix.shape[-1]}). No jitter is added: use a larger "
            "noise variance, or round the scores (tolerance=)"
        )
    return factor
