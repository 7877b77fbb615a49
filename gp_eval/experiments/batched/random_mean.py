"""RS-Mean on many targets at once."""

from __future__ import annotations

import torch
from torch import Tensor

from gp_eval.data import References
from gp_eval.experiments.batched.moments import running_moments
from gp_eval.experiments.curves import Curves
from gp_eval.models.baselines.random_mean import RandomMean
from gp_eval.models.baselines.sampling import (
    require_uniform,
    sampling_variance,
    score_variance,
)

__all__ = ["simulate_random_mean"]


def simulate_random_mean(
    references: References, scores: Tensor, order: Tensor, *, n_max: int
) -> Curves:
    """Curves of :class:`~gp_eval.models.baselines.RandomMean`, by cumulative sums.

    Args:
        references: The references of all ``R`` runs.
        scores: Scores of the targets on all items, ``R x N``.
        order: Order of evaluation, a permutation of the items.
        n_max: Number of items to evaluate, at most ``N``.
    """
    require_uniform(RandomMean.name, references)
    chosen = order[:n_max].to(scores.device)
    single = score_variance(references).to(scores)
    mean, variance = running_moments(scores[:, chosen], single)
    n = torch.arange(1, n_max + 1).to(scores)
    return Curves(mean, sampling_variance(variance, n, scores.shape[-1]))
