"""The prior covariance of all buckets: a kernel evaluated on the bucket table."""

from __future__ import annotations

from typing import Protocol

import torch
from gpytorch.kernels import Kernel
from torch import Tensor

from gp_eval.kernels import (
    PopulationKernel,
    ReferenceKernel,
    ReferenceMaternKernel,
    ReferenceScoreKernel,
)
from gp_eval.kernels._dense import dense
from gp_eval.linalg.population_table import PopulationTable
from gp_eval.settings import exact_inference

__all__ = [
    "DenseKernelTable",
    "KernelTable",
    "ReferenceKernelTable",
    "dense_covariance",
    "has_closed_form",
    "is_reference_kernel",
    "make_kernel_table",
    "squared_distances",
]


class KernelTable(Protocol):
    """Prior covariance ``Sigma`` of the ``B`` bucket abilities."""

    def refresh(self) -> None:
        """Take over the kernel's present hyperparameters."""

    def row(self, bucket: int) -> Tensor:
        """Row ``Sigma[bucket]``, shape ``B``."""

    def block(self, rows: Tensor, columns: Tensor | slice) -> Tensor:
        """Block ``Sigma[rows][:, columns]``."""

    def diagonal(self) -> Tensor:
        """Prior variances, shape ``B``."""

    def matvec(self, vector: Tensor) -> Tensor:
        """Product ``Sigma @ vector``, shape ``B``, or with columns ``B x m``."""


def dense_covariance(kernel: Kernel, x: Tensor) -> Tensor:
    """Covariance of rows ``n x d`` under any kernel, ``n x n``, without jitter."""
    with exact_inference():
        return dense(kernel, x, x)


def squared_distances(kernel: ReferenceKernel, phi: Tensor) -> Tensor:
    """Weighted squared distances of score vectors ``B x K``, shape ``B x B``."""
    phi = kernel.scaled(phi)
    # The quadratic expansion would lose half the digits of small distances.
    mode = "donot_use_mm_for_euclid_dist"
    return torch.cdist(phi, phi, compute_mode=mode).square_()


def is_reference_kernel(kernel: Kernel) -> bool:
    """Whether the kernel is one of ours, of distances between all of ``phi``."""
    return (
        type(kernel) in (ReferenceScoreKernel, ReferenceMaternKernel)
        and kernel.batch_shape == torch.Size()
        and kernel.active_dims is None
    )


def has_closed_form(kernel: Kernel) -> bool:
    """Whether the likelihood's gradient is known in the paper's own parameters."""
    return (
        is_reference_kernel(kernel)
        and not any(True for _ in kernel.named_priors())
        and all(not constraint.enforced for constraint in kernel.constraints())
    )


def make_kernel_table(
    kernel: Kernel, phi: Tensor, *, distances: Tensor | None = None
) -> KernelTable:
    """The leanest table for this kernel on score vectors ``B x K``.

    Args:
        kernel: The kernel.
        phi: Score vectors.
        distances: Their squared distances ``B x B`` under the weights of this kernel,
            if another table has them already.
    """
    if isinstance(kernel, ReferenceKernel) and is_reference_kernel(kernel):
        return ReferenceKernelTable(kernel, phi, distances=distances)
    if type(kernel) is PopulationKernel and kernel.active_dims is None:
        return PopulationTable(kernel, phi)
    return DenseKernelTable(kernel, phi)


class DenseKernelTable:
    """Any GPyTorch kernel, evaluated once per change of its hyperparameters.

    Args:
        kernel: A kernel over ``phi`` without batch dimensions.
        phi: Score vectors, ``B x K``.
    """

    def __init__(self, kernel: Kernel, phi: Tensor) -> None:
        self.kernel, self.phi = kernel, phi
        self.refresh()

    def refresh(self) -> None:
        """Evaluate the kernel on all pairs of buckets."""
        with torch.no_grad():
            self._table = dense_covariance(self.kernel, self.phi)
        size = self.phi.shape[0]
        if self._table.shape != (size, size):
            raise ValueError(
                f"covar_module: expected a {size} x {size} covariance of the buckets, "
                f"got shape {tuple(self._table.shape)}"
            )

    def row(self, bucket: int) -> Tensor:
        """Row ``Sigma[bucket]``, shape ``B``."""
        return self._table[bucket]

    def block(self, rows: Tensor, columns: Tensor | slice) -> Tensor:
        """Block ``Sigma[rows][:, columns]``."""
        return self._table[rows][:, columns]

    def diagonal(self) -> Tensor:
        """Prior variances, shape ``B``."""
        return self._table.diagonal()

    def matvec(self, vector: Tensor) -> Tensor:
        """Product ``Sigma @ vector``, shape ``B``."""
        return self._table @ vector


class ReferenceKernelTable:
    """One of our kernels on demand, from one table of squared distances.

    The distances never change, so a change of hyperparameters costs nothing and the
    covariance itself is never stored.

    Args:
        kernel: The kernel whose hyperparameters are used.
        phi: Score vectors, ``B x K``.
        distances: Squared distances ``B x B`` under the kernel's weights, to share.
    """

    def __init__(
        self, kernel: ReferenceKernel, phi: Tensor, *, distances: Tensor | None = None
    ) -> None:
        self.kernel = kernel
        if distances is None:
            distances = squared_distances(kernel, phi)
        self.distances = distances
        self.n_references = phi.shape[-1]
        self._squared_exponential = isinstance(kernel, ReferenceScoreKernel)
        self.refresh()

    def refresh(self) -> None:
        """Take over ``alpha`` and ``beta``."""
        # A copy: without a transform `alpha` is the parameter's own memory.
        self._alpha = self.kernel.alpha.detach().squeeze().clone()
        self._beta = self.kernel.beta.detach().squeeze().clone()
        self._rate = -self._beta / self.n_references

    def _covariance(self, distances: Tensor) -> Tensor:
        if self._squared_exponential:  # in place: what a run spends its time on
            return (distances * self._rate).exp_().mul_(self._alpha)
        return self.kernel.from_squared_distance(
            distances, self._alpha, self._beta, self.n_references
        )

    def row(self, bucket: int) -> Tensor:
        """Row ``Sigma[bucket]``, shape ``B``."""
        return self._covariance(self.distances[bucket])

    def block(self, rows: Tensor, columns: Tensor | slice) -> Tensor:
        """Block ``Sigma[rows][:, columns]``."""
        if isinstance(columns, slice):
            return self._covariance(self.distances[:, columns][rows])
        return self._covariance(self.distances[rows.unsqueeze(-1), columns])

    def diagonal(self) -> Tensor:
        """Prior variances, shape ``B``."""
        return self._alpha.repeat(self.distances.shape[0])

    def matvec(self, vector: Tensor) -> Tensor:
        """Product ``Sigma @ vector``, shape ``B``, in blocks of rows."""
        blocks = self.distances.split(512)
        return torch.cat([self._covariance(block) @ vector for block in blocks])
