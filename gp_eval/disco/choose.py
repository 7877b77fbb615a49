"""From disagreement scores to the items that later models are run on."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from gp_eval._random import random_order

__all__ = ["DECIMALS", "disagreement_order", "guiding_models"]

DECIMALS = 12


def guiding_models(n_models: int, size: int | None, *, seed: int = 0) -> Tensor | None:
    """A random subset of ``M`` models whose disagreement guides the choice.

    The DISCO paper takes 100 of 382 on MMLU, for all of them "dilute" it. The figures
    depend on the draw: report several seeds, never the best of them.

    Args:
        n_models: Number of references ``K``.
        size: ``M``; ``None`` for all of them.
        seed: Fixes the draw.

    Returns:
        ``M`` ascending indices, or ``None`` for all models.

    Raises:
        ValueError: For fewer than 2 or more than ``K``.
    """
    if size is None:
        return None
    if not 2 <= size <= n_models:
        raise ValueError(f"guiding: expected 2..{n_models} models, got {size}")
    return random_order(n_models, seed)[:size].sort().values


def disagreement_order(
    scores: Tensor, *, groups: Sequence[str] | None = None
) -> Tensor:
    """All items from the most to the least disagreed on; the first ``k`` are chosen.

    Scores are compared after rounding to 12 decimals, and the lower index wins a tie,
    so that the order does not depend on how a sum was rounded.

    With groups, every group gives its first item, then every group its second, and so
    on, each round in the order of scores: of ``k`` items from ``S`` groups each group
    has ``k // S`` or one more, as long as it has so many. The published code gives the
    remainder to the first groups in the order of the file; here it goes to the items of
    the highest scores, and the choice for a smaller ``k`` is part of that for a larger.

    Args:
        scores: Scores of the items, shape ``N``; higher is chosen first.
        groups: Group of each item, for a stratified choice.

    Returns:
        A permutation of the items, shape ``N``.
    """
    order = torch.argsort(scores.round(decimals=DECIMALS), descending=True, stable=True)
    if groups is None:
        return order
    if len(groups) != len(scores):
        raise ValueError(f"groups: expected {len(scores)}, got {len(groups)}")
    taken: dict[str, int] = {}
    rounds = []
    for item in order.tolist():
        rounds.append(taken.get(groups[item], 0))
        taken[groups[item]] = rounds[-1] + 1
    return order[torch.argsort(torch.tensor(rounds), stable=True)]
