"""Literal, slow formulas of the linear model of coregionalization."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from gpytorch.kernels import Kernel
from torch import Tensor

from gp_eval.kernels import LMCKernel, ReferenceMaternKernel, ReferenceScoreKernel


def correlation(kind: str, a: Tensor, b: Tensor, beta: float) -> float:
    """Eq. (1) (``"se"``) or Section 3.2 (``"matern"``) of two score vectors."""
    squared = sum((float(x) - float(y)) ** 2 for x, y in zip(a, b, strict=True))
    if kind == "se":
        return math.exp(-beta / a.shape[0] * squared)
    scaled = math.sqrt(3.0) * beta * math.sqrt(squared)
    return (1.0 + scaled) * math.exp(-scaled)


def lmc_by_loops(
    rows: Tensor,
    columns: Tensor,
    weights: Tensor,
    latents: Sequence[tuple[str, float, float]],
) -> Tensor:
    """Covariance of rows ``[phi, count, target]``, entry by entry.

    Args:
        rows: ``n x (K + 2)``.
        columns: ``m x (K + 2)``.
        weights: ``L x T``.
        latents: Kind, ``alpha`` and ``beta`` of each latent.
    """
    table = torch.zeros(rows.shape[0], columns.shape[0], dtype=torch.float64)
    for i, a in enumerate(rows):
        for j, b in enumerate(columns):
            s, t = int(a[-1]), int(b[-1])
            for w, (kind, alpha, beta) in zip(weights, latents, strict=True):
                shape = alpha * correlation(kind, a[:-2], b[:-2], beta)
                table[i, j] += float(w[s]) * float(w[t]) * shape
    return table


def parameters_of(kernel: LMCKernel) -> list[tuple[str, float, float]]:
    """Kind, ``alpha`` and ``beta`` of each latent of ours."""
    found = []
    for latent in kernel.latents:
        assert isinstance(latent, (ReferenceScoreKernel, ReferenceMaternKernel))
        kind = "se" if isinstance(latent, ReferenceScoreKernel) else "matern"
        found.append((kind, float(latent.alpha.detach()), float(latent.beta.detach())))
    return found


def varied(kernel: LMCKernel, seed: int = 5) -> LMCKernel:
    """The kernel in float64 with weights of order 1 and an alpha, beta each."""
    generator = torch.Generator().manual_seed(seed)
    kernel.double()
    with torch.no_grad():
        kernel.task_weights.copy_(
            torch.randn(kernel.task_weights.shape, generator=generator)
        )
    for place, latent in enumerate(kernel.latents):
        if isinstance(latent, (ReferenceScoreKernel, ReferenceMaternKernel)):
            latent.alpha, latent.beta = 0.4 + 0.3 * place, 2.1 / (1 + place)
    return kernel


def random_rows(n_targets: int, size: int = 9, k: int = 4, seed: int = 0) -> Tensor:
    """Rows ``[phi, count, target]``; score vectors repeat within and across targets."""
    generator = torch.Generator().manual_seed(seed)
    phi = torch.rand(max(2, size // 2), k, generator=generator, dtype=torch.float64)
    place = torch.randint(0, phi.shape[0], (size,), generator=generator)
    count = torch.randint(1, 7, (size, 1), generator=generator).double()
    target = torch.randint(0, n_targets, (size, 1), generator=generator).double()
    return torch.cat([phi[place], count, target], dim=-1)


def custom_latents() -> list[Kernel]:
    """Latents of GPyTorch: stationary, low rank, sum, product, with its own columns."""
    from gpytorch import kernels

    return [
        kernels.ScaleKernel(kernels.RBFKernel(ard_num_dims=4)),
        kernels.LinearKernel(),
        kernels.PeriodicKernel() * kernels.RBFKernel(),
        kernels.ScaleKernel(kernels.RBFKernel() + kernels.LinearKernel()),
        kernels.MaternKernel(nu=2.5),
    ]
