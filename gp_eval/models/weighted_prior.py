"""The prior in which some references count more than others."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from gpytorch.kernels import Kernel
from gpytorch.means import Mean
from torch import Tensor

from gp_eval.data import References
from gp_eval.kernels import ReferenceScoreKernel
from gp_eval.means import ReferenceMean

__all__ = ["references_that_count", "weighted_prior"]


def weighted_prior(
    references: References,
    weights: Sequence[float] | None,
    covar_module: Kernel | None,
    mean_module: Mean | None,
) -> tuple[References, Kernel | None, Mean | None]:
    r"""The metadata-weighted prior, Appendix B.2 of the BayesAME paper.

    Weights are relative: the mean takes them with sum 1, as printed, the kernel with
    sum ``K``. The paper has sum 1 in both, under which uniform weights are not its
    Eq. (1) but rescale ``beta`` by ``1 / K``; here equal weights *are* Eq. (1), and
    ``beta`` keeps its meaning and its start. A reference of weight 0 is removed
    altogether: it neither counts in ``K`` nor splits buckets.

    Args:
        references: All ``K`` references.
        weights: One per reference, >= 0; ``None`` changes nothing.
        covar_module: The user's kernel, if any.
        mean_module: The user's mean, if any.

    Returns:
        References, kernel and mean to use in place of the given ones.

    Raises:
        ValueError: For weights that are not ``K`` finite numbers >= 0, that are all 0,
            or that come with a kernel or mean of the user's own.
    """
    if weights is None:
        return references, covar_module, mean_module
    if covar_module is not None or mean_module is not None:
        raise ValueError(
            "weights: they make a kernel and a mean; give them to covar_module and "
            "mean_module in place of weights="
        )
    references, values = references_that_count(references, weights)
    kernel = ReferenceScoreKernel(weights=values)
    return references, kernel, ReferenceMean(weights=values / values.sum())


def references_that_count(
    references: References, weights: Sequence[float]
) -> tuple[References, Tensor]:
    """The references of positive weight, and their weights with sum ``K``.

    Raises:
        ValueError: For weights that are not ``K`` finite numbers >= 0, or all 0.
    """
    values = torch.tensor([float(w) for w in weights], dtype=torch.float64)
    n_references = len(references.models)
    if values.shape[0] != n_references:
        raise ValueError(
            f"weights: expected one per reference ({n_references}), "
            f"got {values.shape[0]}"
        )
    if not bool((values.isfinite() & (values >= 0.0)).all() and values.any()):
        raise ValueError(
            f"weights: expected finite values >= 0, not all 0, got {values.tolist()}"
        )
    values = values / values.max()  # a sum of very large or small ones has no inverse
    kept = torch.nonzero(values).flatten().tolist()
    if len(kept) < n_references:
        names = [references.models[k] for k in kept]
        references = references.subset(models=names, missing="keep")
        values = values[kept]
    return references, values * (len(kept) / values.sum())
