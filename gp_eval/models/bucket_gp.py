"""The bucketed ability model as an exact GP of GPyTorch and a model of BoTorch."""

from __future__ import annotations

from botorch.models.gpytorch import GPyTorchModel
from gpytorch.distributions import MultivariateNormal
from gpytorch.kernels import Kernel
from gpytorch.likelihoods import Likelihood
from gpytorch.means import Mean
from gpytorch.models import ExactGP
from torch import Tensor

from gp_eval.kernels import ReferenceScoreKernel
from gp_eval.likelihoods import BucketGaussianLikelihood
from gp_eval.means import ReferenceMean

__all__ = ["BucketGP"]


class BucketGP(ExactGP, GPyTorchModel):
    r"""GP over bucket abilities :math:`\theta`, Section 3.1 of the BayesAME paper.

    This is the idiomatic, differentiable form of the model, for fitting with
    ``fit_gpytorch_mll``, for custom kernels and as the yardstick of the tests: its
    posterior is Eq. (7). The sequential engine,
    :class:`~gp_eval.models.SequentialBucketModel`, gives the same numbers and appends
    an item in :math:`O(nB)`. Evaluate it inside
    :func:`gp_eval.settings.exact_inference`.

    Args:
        train_X: An ``n x (K + 1)`` tensor of rows ``[phi, count]``, one per evaluated
            item: rows of ``Buckets.inputs[buckets.item_bucket]``.
        train_Y: An ``n x 1`` tensor of scores.
        covar_module: Any kernel over ``phi`` (the count column is cut off before);
            default :class:`~gp_eval.kernels.ReferenceScoreKernel`.
        mean_module: Any mean over ``phi``; default
            :class:`~gp_eval.means.ReferenceMean`.
        likelihood: Default :class:`~gp_eval.likelihoods.BucketGaussianLikelihood`.

    Example:
        >>> buckets = Buckets.from_references(references)
        >>> X = buckets.inputs[buckets.item_bucket[evaluated]]
        >>> model = BucketGP(X, scores.unsqueeze(-1))
        >>> with exact_inference():
        ...     abilities = model.posterior(buckets.inputs)
    """

    _num_outputs = 1

    def __init__(
        self,
        train_X: Tensor,
        train_Y: Tensor,
        *,
        covar_module: Kernel | None = None,
        mean_module: Mean | None = None,
        likelihood: Likelihood | None = None,
    ) -> None:
        if train_X.ndim != 2 or train_Y.shape != (train_X.shape[0], 1):
            raise ValueError(
                "train_X, train_Y: expected shapes n x (K + 1) and n x 1, got "
                f"{tuple(train_X.shape)} and {tuple(train_Y.shape)}"
            )
        if likelihood is None:
            likelihood = BucketGaussianLikelihood().to(train_X)
            # Again, in the precision of the data: 0.1 in float32 is not 0.1.
            likelihood.noise = 0.1
        super().__init__(train_X, train_Y.squeeze(-1), likelihood)
        self.mean_module = mean_module or ReferenceMean()
        self.covar_module = covar_module or ReferenceScoreKernel()
        self.to(train_X)

    def forward(self, x: Tensor) -> MultivariateNormal:
        """Prior of the abilities at rows ``... x n x (K + 1)``."""
        phi = x[..., :-1]
        return MultivariateNormal(self.mean_module(phi), self.covar_module(phi))
