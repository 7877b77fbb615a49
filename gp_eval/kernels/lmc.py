r"""The linear model of coregionalization over rows of score vector and target."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from gpytorch.constraints import GreaterThan
from gpytorch.kernels import AdditiveKernel, IndexKernel, Kernel, ProductKernel
from torch import Tensor

from gp_eval.kernels._dense import dense
from gp_eval.kernels.matern import ReferenceMaternKernel
from gp_eval.kernels.reference import ReferenceScoreKernel

__all__ = ["LMCKernel", "RankOneIndexKernel", "default_latents", "hadamard_lmc"]


class RankOneIndexKernel(IndexKernel):
    r"""Covariance :math:`w w^\top` of ``T`` targets: GPyTorch's without its diagonal.

    ``IndexKernel`` adds ``softplus(raw_var)``, which would give every target an ability
    of its own in every latent; here it is frozen at exactly 0.

    Args:
        num_tasks: ``T``.
        active_dims: The input column with the index of the target.
        generator: Draws the initial weights from :math:`\mathcal{N}(0, 0.01)`; default
            one of seed 0.
    """

    def __init__(
        self,
        num_tasks: int,
        *,
        active_dims: tuple[int, ...] | None = None,
        generator: torch.Generator | None = None,
    ) -> None:
        with torch.random.fork_rng(devices=[]):  # the base class draws globally
            super().__init__(num_tasks, rank=1, active_dims=active_dims)
        self.raw_var.requires_grad_(False).fill_(-math.inf)
        with torch.no_grad():
            self.covar_factor.copy_(_initial_weights(1, num_tasks, generator).T)

    @property
    def weights(self) -> Tensor:
        """The weights ``w``, shape ``T``."""
        return self.covar_factor.squeeze(-1)


class LMCKernel(Kernel):
    r"""Linear model of coregionalization, Section 3.2 of the BayesAME paper.

    .. math::

        k\big((\phi, t), (\phi', t')\big) = \sum_{l=1}^L w_l^t w_l^{t'}
            k_l(\phi, \phi')

    over rows ``[phi, count, target]``, so that each target has a coreset of its own;
    on the full grid it is :math:`\sum_l w_l w_l^\top \otimes \Sigma_l`. Latents and
    weights share a scale, and the sign of each :math:`w_l` is free: compare
    covariances, never weights.

    Args:
        latents: ``L`` kernels over ``phi``; any GPyTorch kernels.
        num_tasks: ``T``.
        generator: Draws the initial weights from :math:`\mathcal{N}(0, 0.01)`; default
            one of seed 0.

    Attributes:
        task_weights (Tensor): The weights, ``L x T``.

    Example:
        >>> kernel = LMCKernel(default_latents(2), num_tasks=2).double()
        >>> rows = torch.tensor([[0.1, 0.7, 1, 0], [0.1, 0.7, 1, 1]]).double()
        >>> kernel(rows).to_dense().shape
        torch.Size([2, 2])
    """

    def __init__(
        self,
        latents: Sequence[Kernel],
        num_tasks: int,
        *,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        if not latents or num_tasks < 1:
            raise ValueError(
                "latents, num_tasks: expected at least one of each, got "
                f"{len(latents)} and {num_tasks}"
            )
        if len({id(kernel) for kernel in latents}) < len(latents):
            raise ValueError("latents: the same kernel object is given twice")
        self.base_kernels = torch.nn.ModuleList(latents)
        weights = _initial_weights(len(latents), num_tasks, generator)
        self.register_parameter("task_weights", torch.nn.Parameter(weights))

    @property
    def latents(self) -> tuple[Kernel, ...]:
        """The ``L`` kernels over ``phi``."""
        return tuple(self.base_kernels)

    @property
    def num_tasks(self) -> int:
        """Number of targets ``T``."""
        return self.task_weights.shape[-1]

    def forward(
        self,
        x1: Tensor,
        x2: Tensor,
        diag: bool = False,
        last_dim_is_batch: bool = False,
        **params: Any,
    ) -> Tensor:
        """Covariance of rows ``... x n x (K + 2)`` with ``... x m x (K + 2)``."""
        if last_dim_is_batch:
            raise RuntimeError(
                "LMCKernel does not accept the last_dim_is_batch argument."
            )
        phi1, phi2 = x1[..., :-2], x2[..., :-2]
        target1, target2 = x1[..., -1].long(), x2[..., -1].long()
        total = torch.zeros((), dtype=x1.dtype, device=x1.device)
        for weights, latent in zip(self.task_weights, self.latents, strict=True):
            left, right = weights[target1], weights[target2]
            covariance = dense(latent, phi1, phi2, diag=diag)
            if diag:
                total = total + left * right * covariance
            else:
                outer = left.unsqueeze(-1) * right.unsqueeze(-2)
                total = total + outer * covariance
        return total


def _initial_weights(
    n_latents: int, num_tasks: int, generator: torch.Generator | None
) -> Tensor:
    """Draws from N(0, 0.01) in default precision, ``L x T``."""
    generator = generator or torch.Generator().manual_seed(0)
    draws = torch.randn(n_latents, num_tasks, generator=generator, dtype=torch.float64)
    return (0.1 * draws).to(torch.get_default_dtype())


def default_latents(n_latents: int, *, weights: Tensor | None = None) -> list[Kernel]:
    """Latents of Section 3.2: one half squared exponential, the other Matern-3/2.

    An odd one is squared exponential. ``alpha`` and ``beta`` start at 1 and are kept at
    ``1e-4`` or above, the bound of Appendix A.4 for several targets.

    Args:
        n_latents: ``L``.
        weights: Weights of the references, ``K``, the same in all latents; default the
            identity.
    """
    kinds = [ReferenceScoreKernel] * ((n_latents + 1) // 2)
    families = [*kinds, *[ReferenceMaternKernel] * (n_latents // 2)]
    return [
        family(
            weights=weights,
            alpha_constraint=GreaterThan(1e-4, transform=None),
            beta_constraint=GreaterThan(1e-4, transform=None),
        )
        for family in families
    ]


def hadamard_lmc(
    latents: Sequence[Kernel],
    num_tasks: int,
    n_references: int,
    *,
    generator: torch.Generator | None = None,
) -> AdditiveKernel:
    r"""The same model as a sum of products of GPyTorch's own kernels.

    :class:`LMCKernel` is one module, faster and with all weights in one parameter; this
    form is for people who build on ``IndexKernel``. ``active_dims`` of the latents are
    set here, so they must have none.

    Args:
        latents: ``L`` kernels over ``phi``.
        num_tasks: ``T``.
        n_references: ``K``, which tells the columns of ``[phi, count, target]`` apart.
        generator: Draws the initial weights; default one of seed 0.
    """
    generator = generator or torch.Generator().manual_seed(0)
    terms = []
    for latent in latents:
        if latent.active_dims is not None:
            raise ValueError(f"latents: expected no active_dims, got {latent}")
        latent.active_dims = torch.arange(n_references)
        index = RankOneIndexKernel(
            num_tasks, active_dims=(n_references + 1,), generator=generator
        )
        # Not `latent * index`: that takes a product apart, and its columns are lost.
        terms.append(ProductKernel(latent, index))
    return AdditiveKernel(*terms)
