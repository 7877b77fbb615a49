r"""Covariance of observed pairs, and the gradient of a function of it, in passes.

With :math:`E_l` the correlations of latent ``l`` and :math:`v_l` its weights at the
``m`` observed pairs, the covariance is :math:`\sum_l \alpha_l (v_l v_l^\top) \circ
E_l`. For a function whose derivative along a symmetric :math:`\partial C` is
:math:`\frac12 \operatorname{tr}(Q \, \partial C)`, with :math:`P_l = Q \circ E_l`:

.. math::

    \partial_{v_l} = \alpha_l P_l v_l, \qquad
    \partial_{\alpha_l} = \tfrac12 v_l^\top P_l v_l, \qquad
    \partial_{\beta_l} = \tfrac12 \alpha_l v_l^\top (Q \circ \partial_\beta E_l) v_l

Everything is computed in blocks of rows that stay in the cache, of the upper triangle
alone; on a GPU in one block, where launches cost more than flops.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch
from torch import Tensor

from gp_eval.kernels import LMCKernel, ReferenceScoreKernel
from gp_eval.linalg.lmc_table import shared_distances
from gp_eval.optim.pair_scores import PairScores

__all__ = ["LMCGram"]

_BLOCK = 1 << 16
"""Numbers in a block: 512 KiB, so that the few that are in use fit into a cache."""


class LMCGram:
    """Covariance of the observed pairs under the paper's latents.

    Args:
        kernel: Latents of ours, all of the same weights of the references.
        phi: Score vectors, ``B x K``.
        scores: The ``m`` observed pairs.
        distances: Squared distances of ``phi``, ``B x B``.
    """

    def __init__(
        self,
        kernel: LMCKernel,
        phi: Tensor,
        scores: PairScores,
        *,
        distances: Tensor | None = None,
    ) -> None:
        if distances is None:
            distances = shared_distances(kernel, phi)
        if distances is None:
            raise ValueError("kernel: expected latents of ours")
        self.target, self.n_references = scores.target, phi.shape[-1]
        bucket = scores.bucket
        self.squared = distances[bucket.unsqueeze(-1), bucket]
        self._smooth = [isinstance(k, ReferenceScoreKernel) for k in kernel.latents]
        self.root = self.squared if all(self._smooth) else self.squared.sqrt()
        # One memory for all evaluations: fresh pages cost as much as the exponential.
        self._gram = torch.empty_like(self.squared)
        size = bucket.shape[0]
        # Elsewhere `likelihood_terms` reads the lower triangle and gives all of Q.
        upper = self._gram.device.type == "cpu" and self._gram.dtype == torch.float64
        self._height = max(8, _BLOCK // max(size, 1)) if upper else size
        self._buffers = [self.squared.new_empty(self._height * size) for _ in range(3)]

    def _blocks(self) -> Iterator[tuple[slice, slice, list[Tensor]]]:
        """Rows, columns from the diagonal on, and memory of that shape."""
        size = self.squared.shape[0]
        for start in range(0, size, self._height):
            stop = min(start + self._height, size)
            shape = (stop - start, size - start)
            memory = [b[: shape[0] * shape[1]].view(shape) for b in self._buffers]
            yield slice(start, stop), slice(start, size), memory

    def covariance(self, task_weights: Tensor, alpha: Tensor, beta: Tensor) -> Tensor:
        """Upper triangle of the covariance without noise, ``m x m``; overwritten next.

        Args:
            task_weights: ``L x T``.
            alpha: Shape ``L``.
            beta: Shape ``L``.
        """
        own = task_weights[:, self.target]
        scaled = own * alpha.unsqueeze(-1)
        for rows, columns, (shape, spare, _) in self._blocks():
            block = self._gram[rows, columns].zero_()
            for latent, smooth in enumerate(self._smooth):
                self._correlation(rows, columns, beta[latent], smooth, shape, spare)
                shape.mul_(own[latent, columns])
                block.addcmul_(shape, scaled[latent, rows].unsqueeze(-1))
        return self._gram

    def gradient(
        self, weights: Tensor, task_weights: Tensor, alpha: Tensor, beta: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Gradient in ``task_weights``, ``alpha`` and ``beta``, of their shapes.

        Args:
            weights: ``Q`` as :func:`~gp_eval.linalg.likelihood_terms` gives it.
            task_weights: ``L x T``.
            alpha: Shape ``L``.
            beta: Shape ``L``.
        """
        own = task_weights[:, self.target]
        product = torch.zeros_like(own)  # P_l v_l
        slope = torch.zeros_like(beta)
        for rows, columns, (shape, spare, decay) in self._blocks():
            block = weights[rows, columns]
            squared = self.squared[rows, columns]
            for latent, smooth in enumerate(self._smooth):
                left, right = own[latent, rows], own[latent, columns]
                self._correlation(
                    rows, columns, beta[latent], smooth, shape, spare, decay
                )
                shape.mul_(block)
                product[latent, rows].addmv_(shape, right)
                product[latent, columns].addmv_(shape.T, left)
                if smooth:
                    tilted = shape.mul_(squared)
                else:
                    tilted = decay.mul_(squared).mul_(block)
                slope[latent] += left @ (tilted @ right)
        product *= 0.5  # both triangles of a symmetric matrix were added
        # A product, for `index_add_` sums in any order on a GPU: a seed fixes all.
        members = torch.nn.functional.one_hot(self.target, task_weights.shape[1])
        by_target = (product * alpha.unsqueeze(-1)) @ members.to(product)
        kinds = torch.tensor(self._smooth, device=beta.device)
        factor = torch.where(kinds, -1.0 / self.n_references, -3.0 * beta)
        return by_target, 0.5 * (own * product).sum(-1), 0.5 * alpha * factor * slope

    def _correlation(
        self,
        rows: slice,
        columns: slice,
        beta: Tensor,
        smooth: bool,
        out: Tensor,
        spare: Tensor,
        decay: Tensor | None = None,
    ) -> None:
        """Correlations of a block in ``out``; of a Matern ``exp`` in ``decay``."""
        if smooth:
            torch.mul(self.squared[rows, columns], -beta / self.n_references, out=out)
            out.exp_()
            return
        exponential = spare if decay is None else decay
        torch.mul(self.root[rows, columns], -math.sqrt(3.0) * beta, out=out)
        torch.exp(out, out=exponential)
        torch.sub(1.0, out, out=out)
        out.mul_(exponential)
