r"""Prior covariance of the abilities of several targets."""

from __future__ import annotations

from copy import copy as shallow_copy

import torch
from gpytorch.kernels import Kernel
from torch import Tensor

from gp_eval.kernels import LMCKernel, ReferenceKernel
from gp_eval.linalg.kernel_table import (
    KernelTable,
    is_reference_kernel,
    make_kernel_table,
    squared_distances,
)

__all__ = ["LMCTable", "shared_distances", "shares_distances"]


def shared_distances(kernel: LMCKernel, phi: Tensor) -> Tensor | None:
    """Squared distances ``B x B`` under the weights of the first latent of ours."""
    first = _first_of_ours(kernel)
    return None if first is None else squared_distances(first, phi)


def shares_distances(kernel: LMCKernel, latent: Kernel) -> bool:
    """Whether a latent is of ours and has the weights of the first that is."""
    first = _first_of_ours(kernel)
    return (
        first is not None
        and isinstance(latent, ReferenceKernel)
        and is_reference_kernel(latent)
        and torch.equal(latent.weights, first.weights)
    )


def _first_of_ours(kernel: LMCKernel) -> ReferenceKernel | None:
    for latent in kernel.latents:
        if isinstance(latent, ReferenceKernel) and is_reference_kernel(latent):
            return latent
    return None


class LMCTable:
    r""":math:`\sum_l w_l w_l^\top \otimes \Sigma_l` over pairs of target and bucket.

    A :class:`~gp_eval.linalg.KernelTable` of ``T B`` abilities, target by target: pair
    ``t * B + b``. The ``T B x T B`` matrix is never stored, and latents with the same
    weights of the references share one table of distances.

    Args:
        kernel: The linear model of coregionalization.
        phi: Score vectors, ``B x K``.

    Attributes:
        shared (Tensor): Squared distances ``B x B``, if a latent needs them.
    """

    def __init__(self, kernel: LMCKernel, phi: Tensor) -> None:
        if type(kernel).forward is not LMCKernel.forward:
            raise ValueError(
                "kernel: expected LMCKernel itself; put what is special into a latent, "
                f"or use MultiTargetGP. Got {type(kernel).__name__}"
            )
        self.kernel = kernel
        self.n_buckets, self.n_targets = phi.shape[0], kernel.num_tasks
        self.shared = shared_distances(kernel, phi)
        self.tables: list[KernelTable] = [
            make_kernel_table(
                latent,
                phi,
                distances=self.shared if shares_distances(kernel, latent) else None,
            )
            for latent in kernel.latents
        ]
        self.refresh()

    def refresh(self) -> None:
        """Take over the kernel's present hyperparameters."""
        # New objects: a shallow copy of this table keeps the old ones as they are.
        self.tables = [shallow_copy(table) for table in self.tables]
        for table in self.tables:
            table.refresh()
        self._weights = self.kernel.task_weights.detach().clone()

    def _split(self, pairs: Tensor) -> tuple[Tensor, Tensor]:
        return pairs // self.n_buckets, pairs % self.n_buckets

    def row(self, bucket: int) -> Tensor:
        """Row of the pair, shape ``T B``."""
        target, bucket = divmod(bucket, self.n_buckets)
        rows = torch.stack([table.row(bucket) for table in self.tables])
        scaled = self._weights * self._weights[:, target].unsqueeze(-1)
        return (scaled.T @ rows).view(-1)

    def block(self, rows: Tensor, columns: Tensor | slice) -> Tensor:
        """Block of pairs by pairs."""
        if isinstance(columns, slice):
            size = self.n_buckets * self.n_targets
            columns = torch.arange(*columns.indices(size), device=rows.device)
        row_target, row_bucket = self._split(rows)
        column_target, column_bucket = self._split(columns)
        total = self._weights.new_zeros(rows.shape[0], columns.shape[0])
        for weights, table in zip(self._weights, self.tables, strict=True):
            covariance = table.block(row_bucket, column_bucket)
            total.addcmul_(
                covariance * weights[column_target], weights[row_target].unsqueeze(-1)
            )
        return total

    def diagonal(self) -> Tensor:
        """Prior variances, shape ``T B``."""
        variances = torch.stack([table.diagonal() for table in self.tables])
        return (self._weights.square().T @ variances).view(-1)

    def matvec(self, vector: Tensor) -> Tensor:
        """Product with ``T B`` numbers, or with columns ``T B x m``."""
        by_target = vector.view(self.n_targets, self.n_buckets, -1)
        total = torch.zeros_like(by_target)
        for weights, table in zip(self._weights, self.tables, strict=True):
            mixed = torch.tensordot(weights, by_target, dims=1)
            total += weights.view(-1, 1, 1) * table.matvec(mixed)
        return total.view_as(vector)
