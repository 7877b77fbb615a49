"""What of an item's score no other item can tell: the floor of every interval."""

from __future__ import annotations

import torch
from torch import Tensor

from gp_eval.data import References
from gp_eval.models.baselines.sampling import require_complete

__all__ = ["own_variances"]

SMOOTHING = 2.0
"""References' worth of weight of the mean over items."""


def own_variances(references: References, *, smoothing: float = SMOOTHING) -> Tensor:
    r"""Own variance of each item's score, shape ``N``, in squared score units.

    With :math:`k^*` the reference whose scores are nearest to those of ``k`` without
    being the same, half of what two models that are as alike as can be had disagree by,
    :math:`d_i = \frac1K \sum_k \frac12 (s_{ik} - s_{ik^*})^2`, smoothed towards its
    mean over items, so that no item is certain because all references agree on it:
    :math:`v_i = (K d_i + c \bar d) / (K + c)`, ``c = smoothing``.

    The variance over all references, which contains what they share, is no floor: on
    real tables its sum over the unobserved items exceeds the error of good models up
    to twice from ``n = N / 2`` on.

    Args:
        references: Complete reference scores of at least two different models.
        smoothing: ``c``, at least 0.

    Raises:
        ValueError: For references that are all the same, or a single one.
        DataError: For missing cells.
    """
    require_complete("calibrated", references)
    scores = references.scores
    n_references = scores.shape[1]
    distance = torch.cdist(
        scores.T, scores.T, compute_mode="donot_use_mm_for_euclid_dist"
    )
    distance[distance == 0.0] = torch.inf  # itself, and models that are there twice
    if bool(distance.isinf().all()):
        raise ValueError(
            "references: expected at least 2 different ones, got "
            f"{n_references} of the same scores: an item's own variance shows where "
            "two models differ"
        )
    nearest = distance.argmin(-1)
    half = (scores - scores[:, nearest]).square().mean(-1) / 2.0
    return (n_references * half + smoothing * half.mean()) / (n_references + smoothing)
