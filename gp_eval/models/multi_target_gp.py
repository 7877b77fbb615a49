"""The model of several targets as an exact GP of GPyTorch and a model of BoTorch."""

from __future__ import annotations

import torch
from botorch.models.gpytorch import GPyTorchModel
from gpytorch.distributions import MultivariateNormal
from gpytorch.kernels import Kernel
from gpytorch.likelihoods import Likelihood
from gpytorch.means import Mean
from gpytorch.models import ExactGP
from torch import Tensor

from gp_eval.data import Buckets
from gp_eval.kernels import LMCKernel, default_latents
from gp_eval.likelihoods import BucketGaussianLikelihood
from gp_eval.means import ReferenceMean

__all__ = ["MultiTargetGP", "multi_target_inputs"]


def multi_target_inputs(buckets: Buckets, n_targets: int) -> Tensor:
    """Rows ``[phi, count, target]`` of all pairs, ``T x B x (K + 2)``.

    The row of item ``i`` and target ``t`` is ``[t, buckets.item_bucket[i]]``.
    """
    rows = buckets.inputs.expand(n_targets, -1, -1)
    target = torch.arange(n_targets).to(rows).view(-1, 1, 1)
    return torch.cat([rows, target.expand(-1, rows.shape[1], 1)], dim=-1)


class MultiTargetGP(ExactGP, GPyTorchModel):
    r"""GP over the abilities of ``T`` targets, Section 3.2 of the BayesAME paper.

    Long format: one row for each evaluated pair of item and target, so that every
    target has a coreset of its own. GPyTorch's masking of missing outputs is not an
    alternative: its posterior covariance is that of a complete grid.

    The idiomatic, differentiable form; the engine is
    :class:`~gp_eval.models.SequentialMultiTargetModel`. Evaluate it inside
    :func:`gp_eval.settings.exact_inference`.

    Args:
        train_X: An ``n x (K + 2)`` tensor of rows ``[phi, count, target]``, see
            :func:`multi_target_inputs`.
        train_Y: An ``n x 1`` tensor of scores.
        n_targets: ``T``.
        covar_module: Any kernel over such rows; default
            :class:`~gp_eval.kernels.LMCKernel` with ``L = T`` latents.
        mean_module: Any mean over ``phi``; default
            :class:`~gp_eval.means.ReferenceMean`.
        likelihood: Default :class:`~gp_eval.likelihoods.BucketGaussianLikelihood` with
            ``count_dim=-2``.

    Example:
        >>> rows = multi_target_inputs(buckets, n_targets=2)
        >>> X = rows[targets, buckets.item_bucket[items]]
        >>> model = MultiTargetGP(X, scores.unsqueeze(-1), n_targets=2)
    """

    _num_outputs = 1

    def __init__(
        self,
        train_X: Tensor,
        train_Y: Tensor,
        *,
        n_targets: int,
        covar_module: Kernel | None = None,
        mean_module: Mean | None = None,
        likelihood: Likelihood | None = None,
    ) -> None:
        if train_X.ndim != 2 or train_Y.shape != (train_X.shape[0], 1):
            raise ValueError(
                "train_X, train_Y: expected shapes n x (K + 2) and n x 1, got "
                f"{tuple(train_X.shape)} and {tuple(train_Y.shape)}"
            )
        target = train_X[:, -1]
        if not bool(((target >= 0) & (target < n_targets)).all()):
            raise ValueError(
                f"train_X: expected targets 0..{n_targets - 1} in the last column, got "
                f"{float(target.min()):g} to {float(target.max()):g}"
            )
        if likelihood is None:
            likelihood = BucketGaussianLikelihood(count_dim=-2).to(train_X)
            # Again, in the precision of the data: 0.1 in float32 is not 0.1.
            likelihood.noise = 0.1
        _check_count_dim(likelihood, train_X.shape[1])
        super().__init__(train_X, train_Y.squeeze(-1), likelihood)
        self.mean_module = mean_module or ReferenceMean()
        self.covar_module = covar_module or LMCKernel(
            default_latents(n_targets), n_targets
        )
        self.to(train_X)

    def forward(self, x: Tensor) -> MultivariateNormal:
        """Prior of the abilities at rows ``... x n x (K + 2)``."""
        return MultivariateNormal(self.mean_module(x[..., :-2]), self.covar_module(x))


def _check_count_dim(likelihood: Likelihood, width: int) -> None:
    """The default of ``BucketGaussianLikelihood`` would read targets as counts."""
    if not isinstance(likelihood, BucketGaussianLikelihood):
        return
    count_dim = likelihood.noise_covar.count_dim
    if count_dim % width != width - 2:
        raise ValueError(
            "likelihood: expected count_dim=-2, the column before the target, got "
            f"{count_dim}"
        )
