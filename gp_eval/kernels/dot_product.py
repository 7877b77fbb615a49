"""The linear kernel as a dense matrix, which sums of kernels can be factorised with."""

from __future__ import annotations

from typing import Any

from gpytorch.kernels import Kernel
from torch import Tensor

__all__ = ["DotProductKernel"]


class DotProductKernel(Kernel):
    r""":math:`k(x, x') = x^\top x'`; a ``ScaleKernel`` around it gives the variance.

    GPyTorch's ``LinearKernel`` is lazy, and adding it to another kernel factorises that
    one alone, which fails without jitter where features repeat.
    """

    has_lengthscale = False

    def forward(
        self,
        x1: Tensor,
        x2: Tensor,
        diag: bool = False,
        last_dim_is_batch: bool = False,
        **params: Any,
    ) -> Tensor:
        """Inner products of ``... x n x F`` with ``... x m x F`` features."""
        if last_dim_is_batch:
            raise RuntimeError(
                "DotProductKernel does not accept the last_dim_is_batch argument."
            )
        return (x1 * x2).sum(-1) if diag else x1 @ x2.mT
