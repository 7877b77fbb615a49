"""The best batch of items: Eq. (13) of the BayesAME paper."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import numpy as np
import torch
from botorch.acquisition.acquisition import AcquisitionFunction
from torch import Tensor

from gp_eval.acquisition.batch.objective import BatchObjective
from gp_eval.acquisition.batch.pairs import best_pair
from gp_eval.acquisition.batch.search import SearchSettings, search_batches
from gp_eval.acquisition.batch.starts import (
    STARTS,
    Start,
    item_features,
    starting_batches,
)
from gp_eval.acquisition.information_gain import qPerformanceInformationGain
from gp_eval.acquisition.select import TIE, select_items
from gp_eval.acquisition.variance_reduction import qVarianceReduction

__all__ = ["BatchMethod", "BatchResult", "optimize_batch"]

BatchMethod = Literal["auto", "exact", "search", "greedy"]


@dataclass(frozen=True)
class BatchResult:
    """A batch and how it was found.

    Attributes:
        items: Item indices, the one that is worth most by itself first, then the one
            that adds most to it, and so on.
        value: Value of the acquisition for the batch, given what is pending.
        method: ``"exact"``, ``"search"`` or ``"greedy"``.
        trace: Best value of the starts and after every round of the search, never
            falling; of the other methods, the value alone.
    """

    items: list[int]
    value: float
    method: BatchMethod
    trace: list[float] = field(repr=False)


def optimize_batch(
    acquisition: AcquisitionFunction,
    q: int,
    available: Tensor,
    *,
    method: BatchMethod = "auto",
    seed: int = 0,
    pending: Sequence[int] = (),
    same_as: Tensor | None = None,
    rank: Tensor | None = None,
    starts: Sequence[Start] | None = None,
    features: Tensor | None = None,
    settings: SearchSettings | None = None,
) -> BatchResult:
    r"""The batch ``A`` of ``q`` items of the highest value, Eq. (13).

    Both acquisitions that it takes order batches by Eq. (12), so that this is a search
    for a set of indices, whatever the scores. Ties go to the greedy batch.

    Args:
        acquisition: :class:`~gp_eval.acquisition.qPerformanceInformationGain` of one
            target, or :class:`~gp_eval.acquisition.qVarianceReduction`.
        q: Size of the batch. Where no more items are left, all of them are returned.
        available: Items that may be chosen, booleans of shape ``N``; not changed.
        method: ``"exact"`` looks at all items or pairs, for ``q`` of 1 or 2;
            ``"search"`` improves ``starts`` by swaps inside sequential Monte Carlo, in
            time linear in the number of items; ``"greedy"`` takes one item after the
            other. ``"auto"`` is exact where it can be and searches otherwise. No method
            returns less than greedy.
        seed: Fixes the search, a whole number of at least 0.
        pending: Items asked before whose scores are not known yet; what the batch adds
            to them is what counts.
        same_as: Bucket of each item, shape ``N``, see
            :func:`~gp_eval.acquisition.select_items`; default all different.
        rank: Order of the items of a bucket, shape ``N``; default that of the items.
        starts: First batches of the search beside greedy; default all of ``"lars"``,
            ``"dpp"`` and, for models of reference scores, ``"kmeans"``.
        features: What ``"kmeans"`` clusters items by, ``N x d``; default the reference
            scores that the model was built from.
        settings: How long to search; default :class:`SearchSettings`.

    Raises:
        ValueError: For an acquisition of another kind, an unknown method or start, a
            ``q`` that is too small or not for this method, or no available item.

    Example:
        >>> gain = qPerformanceInformationGain(model)
        >>> optimize_batch(gain, 8, torch.ones(N, dtype=torch.bool)).items
    """
    _check(acquisition, q, available, method, starts)
    candidates = torch.nonzero(available.cpu()).squeeze(-1)
    order = torch.arange(available.shape[0])
    same_as, rank = (order if x is None else x.cpu() for x in (same_as, rank))
    with _given(acquisition, pending):
        greedy = select_items(
            acquisition, available.cpu(), q=q, same_as=same_as, rank=rank
        )
        if method == "greedy" or len(greedy) in (1, candidates.shape[0]):
            # One item, or all there are: nothing is better.
            value = _values(acquisition, [greedy])[0]
            name: BatchMethod = "greedy" if method == "greedy" else "exact"
            return BatchResult(greedy, value, name, [value])
        objective = BatchObjective(acquisition.model, candidates)
        if q == 2 and method != "search":
            method, found = "exact", [best_pair(objective)]
        else:
            method = "search"
            found = _search(
                objective,
                torch.searchsorted(candidates, torch.tensor(greedy)),
                starts=starts,
                features=features,
                settings=settings or SearchSettings(),
                rng=np.random.default_rng(seed),
            )
        items = _by_rank(objective, _best_first(objective, found[-1]), same_as, rank)
        tried = [*candidates[torch.stack(found)].tolist(), greedy, items]
        *trace, least, value = _values(acquisition, tried)
    if not value > least * (1.0 + TIE):
        items, value = greedy, least
    trace = [*np.maximum.accumulate(trace).clip(max=value).tolist()[:-1], value]
    return BatchResult(items, value, method, trace)


def _search(
    objective: BatchObjective,
    greedy: Tensor,
    *,
    starts: Sequence[Start] | None,
    features: Tensor | None,
    settings: SearchSettings,
    rng: np.random.Generator,
) -> list[Tensor]:
    """The best batch of the starts and after every round."""
    wanted = starts is not None and "kmeans" in starts
    first = starting_batches(
        objective,
        greedy,
        starts=STARTS if starts is None else starts,
        features=item_features(objective, features, wanted=wanted),
        size=settings.population,
        rng=rng,
    )
    return search_batches(objective, first, settings=settings, rng=rng)


def _check(
    acquisition: AcquisitionFunction,
    q: int,
    available: Tensor,
    method: str,
    starts: Sequence[str] | None,
) -> None:
    kinds = (qPerformanceInformationGain, qVarianceReduction)
    if (
        not isinstance(acquisition, kinds)
        or getattr(acquisition.model, "n_inputs", 1) > 1
    ):
        raise ValueError(
            "acquisition: expected qPerformanceInformationGain or qVarianceReduction "
            f"of one target, got {type(acquisition).__name__}; select_items is greedy "
            "for any other"
        )
    if method not in get_args(BatchMethod):
        raise ValueError(
            f"method: expected one of {get_args(BatchMethod)}, got {method!r}"
        )
    if wrong := [start for start in starts or () if start not in STARTS]:
        raise ValueError(f"starts: expected some of {STARTS}, got {wrong}")
    if q < 1 or (method == "exact" and q > 2):
        most = " and at most 2 for 'exact'" if method == "exact" else ""
        raise ValueError(f"q: expected at least 1{most}, got {q!r}")
    if not bool(available.any()):
        raise ValueError("available: expected at least one item, got none")


@contextmanager
def _given(acquisition: Any, pending: Sequence[int]) -> Iterator[None]:
    """Condition the model's variances on pending items, the acquisition's as well."""
    before = acquisition.X_pending
    if before is not None:
        pending = [*before.reshape(-1).long().tolist(), *pending]
    if not pending:
        yield
        return
    lookahead = getattr(acquisition.model, "lookahead", None)
    if lookahead is None:
        raise ValueError(
            f"pending: expected none for {type(acquisition.model).__name__}, which has "
            f"no lookahead, got {len(pending)}"
        )
    acquisition.set_X_pending(None)
    try:
        with lookahead() as add:
            for item in pending:
                add(item)
            yield
    finally:
        acquisition.set_X_pending(before)


def _values(acquisition: Any, batches: list[list[int]]) -> list[float]:
    with torch.no_grad():
        values: list[float] = acquisition.of_items(torch.tensor(batches)).tolist()
    return values


def _best_first(objective: BatchObjective, batch: Tensor) -> list[int]:
    """The batch in greedy order; ties go to the lowest candidate."""
    left, chosen = sorted(batch.tolist()), list[int]()
    while left:
        values = objective.values(torch.tensor([[*chosen, item] for item in left]))
        place = int((values >= values.max() * (1.0 - TIE)).nonzero()[0])
        chosen.append(left.pop(place))
    return chosen


def _by_rank(
    objective: BatchObjective, batch: list[int], same_as: Tensor, rank: Tensor
) -> list[int]:
    """Items of the batch; of those that are one to the model, the first by rank."""
    bucket, place, c = (
        same_as[objective.items],
        rank[objective.items],
        objective.covariance,
    )
    free = torch.ones(len(objective), dtype=torch.bool)
    chosen = []
    for candidate in batch:
        alike = free & (bucket == bucket[candidate]) & (c == c[candidate])
        twins = alike.nonzero().squeeze(-1)
        chosen.append(int(twins[place[twins].argmin()]))
        free[chosen[-1]] = False
    return objective.items[chosen].tolist()
