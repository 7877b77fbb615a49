"""From an acquisition function to the next items, with one rule for ties."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

import torch
from botorch.acquisition.acquisition import AcquisitionFunction
from torch import Tensor

__all__ = [
    "SupportsItems",
    "SupportsLookahead",
    "best_candidate",
    "pair_values",
    "select_items",
]

TIE = 1e-12


class SupportsItems(Protocol):
    """An acquisition that takes integer indices without BoTorch's input transforms.

    They take as long as the information gain of 500 items itself, so selection goes
    past them where the model has a lookahead.
    """

    def of_items(self, items: Tensor) -> Tensor:
        """Values (shape ``b``) of integer item indices ``b x q``."""


class SupportsLookahead(Protocol):
    """A model that can condition its variances on items without scores."""

    def lookahead(self) -> AbstractContextManager[Callable[[int], None]]:
        """A context that yields a function adding one item."""


def select_items(
    acquisition: AcquisitionFunction,
    available: Tensor,
    *,
    q: int,
    pending: Sequence[int] = (),
    same_as: Tensor,
    rank: Tensor,
    allowed: Callable[[Tensor, Sequence[int]], Tensor] | None = None,
) -> list[int]:
    """The next ``q`` items, one after the other (greedy), given pending ones.

    Ties within a relative ``1e-12``: binary scores give exact ties, which rounding
    would break differently on every device. The lowest item index wins; among the
    tied items of its bucket the one of lowest ``rank`` does, for items of one bucket
    are the same to the model.

    Args:
        acquisition: What to maximise over item indices, ``b x 1 x 1``.
        available: Items that may be chosen, booleans of shape ``N``; not changed.
        q: Number of items; fewer are returned if there are not so many.
        pending: Items asked before whose scores are not known yet.
        same_as: Bucket of each item, shape ``N``.
        rank: Order of the items of a bucket, shape ``N``.
        allowed: From the items left and those chosen so far to the items that may be
            chosen next, such as those that can still be paid; default all that are
            left.
    """
    # Looked up by name: isinstance of a protocol takes longer than the gain of all
    # items. A lookahead takes the place of pending points, but only an acquisition that
    # reads the model at each call sees it; that is what ``of_items`` stands for.
    of_items = getattr(acquisition, "of_items", None)
    lookahead = getattr(acquisition.model, "lookahead", None) if of_items else None
    before = acquisition.X_pending
    if before is not None:
        pending = [*before.reshape(-1).long().tolist(), *pending]

    def choose(available: Tensor) -> int | None:
        if allowed is not None:
            available = allowed(available, chosen)
        candidates = torch.nonzero(available)
        if candidates.shape[0] == 0:
            return None
        if of_items is not None and lookahead is not None:
            values = of_items(candidates)
        else:
            with torch.no_grad():
                values = acquisition(candidates.unsqueeze(-1).to(torch.float64))
        if values.device != candidates.device:
            values = values.to(candidates.device)
        return best_candidate(values, candidates.squeeze(-1), same_as, rank)

    chosen: list[int] = []
    if q == 1 and not pending:
        item = choose(available)
        return [] if item is None else [item]
    left = available.clone()
    if lookahead is not None:
        with lookahead() as add:
            for item in pending:
                add(item)
            while len(chosen) < q and (item := choose(left)) is not None:
                chosen.append(item)
                left[item] = False
                if len(chosen) < q:
                    add(item)
        return chosen
    while len(chosen) < q:
        waiting = [*pending, *chosen]
        points = torch.tensor(waiting, dtype=torch.float64, device=available.device)
        acquisition.set_X_pending(points.unsqueeze(-1) if waiting else None)
        item = choose(left)
        if item is None:
            break
        chosen.append(item)
        left[item] = False
    acquisition.set_X_pending(before)
    return chosen


def best_candidate(
    values: Tensor, candidates: Tensor, same_as: Tensor, rank: Tensor
) -> int:
    """The candidate of the highest value, by the tie rule of :func:`select_items`.

    Args:
        values: Value of each candidate, shape ``m``.
        candidates: Their indices in rising order, shape ``m``.
        same_as: Bucket of what an index stands for.
        rank: Order within a bucket, by index.

    Raises:
        ValueError: For values that are not finite.
    """
    best = float(values.max())  # NaN if any value is
    if not math.isfinite(best):
        raise ValueError(
            f"acquisition: expected finite values, got {best} as their maximum"
        )
    tied = candidates[values >= best - TIE * abs(best)]
    first = int(tied[0])
    if tied.shape[0] == 1:
        return first
    tied = tied[same_as[tied] == same_as[first]]
    return int(tied[rank[tied].argmin()])


def pair_values(
    acquisition: AcquisitionFunction, pairs: Tensor, n_items: int
) -> Tensor:
    """Values of pairs of item and target, each by itself, on the CPU.

    Args:
        acquisition: Over rows ``[item, target]``.
        pairs: Integers of shape ``b``: a pair is ``target * N + item``.
        n_items: ``N``.
    """
    of_items = getattr(acquisition, "of_items", None)
    if of_items is not None:  # past BoTorch's transforms, see select_items
        return of_items(pairs.unsqueeze(-1)).cpu()
    rows = torch.stack([pairs % n_items, pairs // n_items], dim=-1)
    with torch.no_grad():
        return acquisition(rows.unsqueeze(-2).to(torch.float64)).cpu()
