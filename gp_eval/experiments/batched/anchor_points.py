"""Seq-APW on many targets at once: anchors do not depend on scores of targets."""

from __future__ import annotations

import torch
from torch import Tensor

from gp_eval.acquisition import select_items
from gp_eval.acquisition.space_covering import SpaceCovering
from gp_eval.data import References
from gp_eval.experiments.batched.moments import running_moments
from gp_eval.experiments.curves import Curves
from gp_eval.models.baselines.anchor_points import SequentialAnchorPoints
from gp_eval.models.baselines.coverage import AnchorCoverage
from gp_eval.models.baselines.sampling import (
    effective_sample_size,
    require_uniform,
    sampling_variance,
    score_variance,
)

__all__ = ["simulate_anchor_points"]


def simulate_anchor_points(
    references: References, scores: Tensor, order: Tensor, *, n_max: int
) -> Curves:
    """Curves of :class:`~gp_eval.models.baselines.SequentialAnchorPoints`.

    One sequence of anchors and clusters serves all targets.

    Args:
        references: The references of all ``R`` runs.
        scores: Scores of the targets on all items, ``R x N``.
        order: A permutation of the items; among items that are equal to all references
            the earlier one becomes an anchor first.
        n_max: Number of items to evaluate, at most ``N``.
    """
    require_uniform(SequentialAnchorPoints.name, references)
    n_items = scores.shape[-1]
    coverage = AnchorCoverage(references.scores)
    acquisition = SpaceCovering(coverage)
    same_as = torch.unique(references.scores, dim=0, return_inverse=True)[1]
    rank = torch.argsort(order.cpu())
    available = torch.ones(n_items, dtype=torch.bool)
    mean = scores.new_empty(scores.shape[0], n_max)
    effective_size = torch.empty(n_max, dtype=torch.float64)
    for n in range(n_max):
        (item,) = select_items(acquisition, available, q=1, same_as=same_as, rank=rank)
        available[item] = False
        coverage.add(item)
        sizes = coverage.cluster_sizes()
        mean[:, n] = scores @ sizes.to(scores) / n_items
        effective_size[n] = effective_sample_size(sizes)
    chosen = torch.tensor(coverage.anchors, device=scores.device)
    single = score_variance(references).to(scores)
    variance = running_moments(scores[:, chosen], single)[1]
    return Curves(mean, sampling_variance(variance, effective_size.to(scores), n_items))
