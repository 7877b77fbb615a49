"""Any kernel as a matrix of numbers."""

from __future__ import annotations

from gpytorch.kernels import AdditiveKernel, Kernel, ScaleKernel
from linear_operator import to_dense
from torch import Tensor

__all__ = ["dense"]


def dense(kernel: Kernel, x1: Tensor, x2: Tensor, *, diag: bool = False) -> Tensor:
    """Covariance of rows ``... x n x d`` with ``... x m x d`` under any kernel.

    Sums are evaluated term by term: adding a low-rank term (such as a linear kernel)
    to a lazy one makes linear_operator factorise the other term *without* its noise,
    which fails for items of one bucket.
    """
    plain = kernel.active_dims is None
    if plain and isinstance(kernel, AdditiveKernel):
        first, *rest = (dense(term, x1, x2, diag=diag) for term in kernel.kernels)
        return sum(rest, first)
    if (
        plain
        and isinstance(kernel, ScaleKernel)
        and isinstance(kernel.base_kernel, AdditiveKernel)
    ):
        scale = kernel.outputscale.unsqueeze(-1)
        covariance = dense(kernel.base_kernel, x1, x2, diag=diag)
        return covariance * (scale if diag else scale.unsqueeze(-1))
    return to_dense(kernel(x1, x2, diag=diag))
