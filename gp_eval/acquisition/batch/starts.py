"""Where the search for a batch begins: the warm starts of Appendix B.1."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, get_args

import numpy as np
import torch
from torch import Tensor

from gp_eval.acquisition.batch.dpp import sample_k_dpp
from gp_eval.acquisition.batch.lars import lars_batch
from gp_eval.acquisition.batch.objective import BatchObjective
from gp_eval.acquisition.batch.strata import stratified_batches

__all__ = ["STARTS", "Start", "item_features", "starting_batches"]

Start = Literal["lars", "dpp", "kmeans"]
STARTS: tuple[Start, ...] = get_args(Start)
"""All warm starts; greedy comes with them in any case."""

_GROUND = 256


def starting_batches(
    objective: BatchObjective,
    greedy: Tensor,
    *,
    starts: Sequence[Start],
    features: Tensor | None,
    size: int,
    rng: np.random.Generator,
) -> Tensor:
    """The greedy batch, that of LARS, and random ones from k-DPP and clusters.

    An eigendecomposition of all candidates would be cubic in their number: the k-DPP
    is over a uniformly drawn subset of 256 where there are more.

    Args:
        objective: The candidates, ``M`` of them.
        greedy: The greedy batch, ``q`` candidates.
        starts: What to use beside it.
        features: What clusters are made from, ``M x d``; ``None`` to go without them.
        size: Number of batches; random starts share what LARS and greedy leave.
        rng: Where the randomness comes from.

    Returns:
        Batches ``p x q``, greedy first; ``p`` is ``size``, or less without any random
        start.
    """
    q = greedy.shape[0]
    batches = [greedy.unsqueeze(0)]
    if "lars" in starts:
        batches.append(lars_batch(objective, q).unsqueeze(0))
    drawn = ["dpp"] if "dpp" in starts else []
    if "kmeans" in starts and features is not None:
        drawn.append("kmeans")
    left = max(size - len(batches), len(drawn))
    for place, start in enumerate(drawn):
        share = (left + place) // len(drawn)
        if start == "kmeans" and features is not None:
            batches.append(stratified_batches(features, q, size=share, rng=rng))
        else:
            batches.append(_dpp_batches(objective, q, size=share, rng=rng))
    return torch.cat(batches)


def _dpp_batches(
    objective: BatchObjective, q: int, *, size: int, rng: np.random.Generator
) -> Tensor:
    ground = torch.arange(len(objective))
    if ground.shape[0] > max(_GROUND, q):
        picked = rng.choice(ground.shape[0], max(_GROUND, q), replace=False)
        ground = torch.from_numpy(np.sort(picked))
    return ground[sample_k_dpp(objective.block(ground), q, size=size, rng=rng)]


def item_features(
    objective: BatchObjective, features: Tensor | None, *, wanted: bool
) -> Tensor | None:
    """Features of the candidates, ``M x d``: those given, or the reference scores.

    Raises:
        ValueError: If they are wanted and there are none.
    """
    if features is not None:
        return features[objective.items].cpu()
    buckets = getattr(objective.model, "buckets", None)
    if buckets is not None:
        of_items: Tensor = buckets.phi[buckets.item_bucket[objective.items]]
        return of_items.cpu()
    if wanted:
        raise ValueError(
            "features: expected N x d features of the items for start 'kmeans', got "
            f"None; {type(objective.model).__name__} has no reference scores to use"
        )
    return None
