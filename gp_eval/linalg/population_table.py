"""The prior covariance of a population kernel, rows on demand."""

from __future__ import annotations

import torch
from torch import Tensor

from gp_eval.kernels.population import PopulationKernel

__all__ = ["PopulationTable"]

_STORED = 2048
"""Up to so many buckets what does not depend on hyperparameters is stored."""


class PopulationTable:
    """A :class:`~gp_eval.kernels.PopulationKernel` on the bucket table.

    Up to 2,048 buckets the components and their sum are stored, five tables of
    ``B^2`` numbers, and a change of hyperparameters costs ``O(B^2)``; beyond that it
    costs ``O(BK)``, and so does a row.

    Args:
        kernel: The kernel whose hyperparameters are used.
        phi: Score vectors, ``B x K``.
    """

    def __init__(self, kernel: PopulationKernel, phi: Tensor) -> None:
        self.kernel, self.phi = kernel, phi
        statistics = kernel.statistics
        # Distances by expansion lose the digits that a common level takes up.
        self._centred = phi - phi.mean(0)
        self.standardised = statistics.standardised(phi)
        self.level = statistics.level(phi)
        self._stored: tuple[Tensor, ...] | None = None
        self._table: Tensor | None = None
        if phi.shape[0] <= _STORED:
            everything = slice(None)
            self._stored = self._components(everything, everything)
        self.refresh()

    def refresh(self) -> None:
        """Take over the kernel's present hyperparameters."""
        with torch.no_grad():
            self.scale = self.kernel.scale(self.phi)
            self.sensitivity = self.kernel.sensitivity(self.phi)
            self.variances: list[float] = self.kernel.log_variances.exp().tolist()
            self.features = self.kernel.scaled_features(self.phi)
        if self._stored is not None:
            everything = slice(None)
            self._table = self._combine(self._stored, everything, everything)

    def components(self, rows: Tensor, columns: Tensor | slice) -> tuple[Tensor, ...]:
        """Population, two squared exponentials, and difficulty, of these pairs.

        In working units, without variances.
        """
        if self._stored is None:
            return self._components(rows, columns)
        if isinstance(columns, slice):
            return tuple(table[:, columns][rows] for table in self._stored)
        return tuple(table[rows.unsqueeze(-1), columns] for table in self._stored)

    def working(self, buckets: Tensor, ratio: Tensor) -> Tensor:
        """Components of the covariance of these buckets' standardised scores.

        Args:
            buckets: Buckets, shape ``n``.
            ratio: Derivative of their working means over their scales, shape ``n``.

        Returns:
            ``4 x n x n``, without variances.
        """
        *components, difficulty = self.components(buckets, buckets)
        outer = ratio.unsqueeze(-1) * ratio
        return torch.stack([*components, difficulty * outer])

    def _components(
        self, rows: Tensor | slice, columns: Tensor | slice
    ) -> tuple[Tensor, ...]:
        kernel = self.kernel
        left, right = self._centred[rows], self._centred[columns]
        # By expansion: what rounding does to small distances no exponential sees here.
        distance = left.square().sum(-1).unsqueeze(-1) + right.square().sum(-1)
        distance = distance.addmm_(left, right.T, alpha=-2.0).clamp_min_(0.0)
        with torch.no_grad():
            return (
                self.standardised[rows] @ self.standardised[columns].T,
                *kernel.similarities(distance),
                kernel.difficulty(
                    self.level[rows].unsqueeze(-1), self.level[columns].unsqueeze(-2)
                ),
            )

    def effects(self, rows: Tensor | slice, columns: Tensor | slice) -> Tensor:
        """Prior covariance of linear predictors by the effects alone."""
        return self.features[rows] @ self.features[columns].T

    def row(self, bucket: int) -> Tensor:
        """Row ``Sigma[bucket]``, shape ``B``."""
        if self._table is not None:
            return self._table[bucket]
        rows = torch.tensor([bucket], device=self.phi.device)
        return self.block(rows, slice(None)).squeeze(0)

    def block(self, rows: Tensor, columns: Tensor | slice) -> Tensor:
        """Block ``Sigma[rows][:, columns]``."""
        if self._table is None:
            return self._combine(self._components(rows, columns), rows, columns)
        if isinstance(columns, slice):
            return self._table[:, columns][rows]
        return self._table[rows.unsqueeze(-1), columns]

    def _combine(
        self,
        components: tuple[Tensor, ...],
        rows: Tensor | slice,
        columns: Tensor | slice,
    ) -> Tensor:
        product, wide, narrow, curve = components
        a, s_wide, s_narrow, g = self.variances
        working = (a * product).add_(wide, alpha=s_wide).add_(narrow, alpha=s_narrow)
        working *= self.scale[rows].unsqueeze(-1)
        working *= self.scale[columns]
        mean_curve = self.effects(rows, columns).add_(curve, alpha=g)
        mean_curve *= self.sensitivity[rows].unsqueeze(-1)
        mean_curve *= self.sensitivity[columns]
        return working.add_(mean_curve)

    def diagonal(self) -> Tensor:
        """Prior variances, shape ``B``."""
        a, s_wide, s_narrow, g = self.variances
        own = a * self.standardised.square().sum(-1) + s_wide + s_narrow
        curve = g + self.features.square().sum(-1)
        return self.scale.square() * own + self.sensitivity.square() * curve

    def matvec(self, vector: Tensor) -> Tensor:
        """Product ``Sigma @ vector``, shape ``B``, or ``B x m``, in blocks of rows."""
        if self._table is not None:
            return self._table @ vector
        everything = torch.arange(self.phi.shape[0], device=self.phi.device)
        return torch.cat(
            [self.block(rows, slice(None)) @ vector for rows in everything.split(512)]
        )
