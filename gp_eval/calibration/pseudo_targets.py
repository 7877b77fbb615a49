"""References that are left out and run as targets whose truth is known."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from gp_eval._random import random_order
from gp_eval.calibration.own_variance import own_variances
from gp_eval.data import References
from gp_eval.errors import GpEvalError
from gp_eval.experiments.simulators import make_simulator
from gp_eval.intervals import half_width
from gp_eval.models.registry import make_model

__all__ = ["Fold", "folds", "squared_errors"]

_SHARE = 5
"""At most one reference in so many is left out at a time."""
_EXACT = 1e-12


@dataclass(frozen=True)
class Fold:
    """References that are left out together.

    Attributes:
        targets: Their indices.
        rest: Indices of the references that are left, in their order.
    """

    targets: tuple[int, ...]
    rest: tuple[int, ...]


def folds(
    references: References, n_targets: int, *, seed: int, at_once: int | None = None
) -> list[Fold]:
    """Who is left out: the strongest references, and random ones.

    Half of the targets are the strongest references, at most a fifth of all, and the
    next fifth is dropped (extrapolation). The others are random and come in folds of
    at most a fifth (interpolation), so that as much is known about them as about a
    target. Where three references would not be left, there is no extrapolation.

    Args:
        references: All ``K``.
        n_targets: At most so many targets.
        seed: Fixes the random ones.
        at_once: Targets of a fold at most, for a model of so many.
    """
    n_references = len(references.models)
    size = max(1, n_references // _SHARE)
    step = min(size, at_once or size)
    strongest = torch.argsort(references.performance, descending=True, stable=True)
    first = min(n_targets // 2, size)
    weaker = strongest[first + round(n_references / _SHARE) :].tolist()
    found: list[Fold] = []
    if first and len(weaker) >= 3:
        rest = tuple(sorted(weaker))
        best = strongest[:first].tolist()
        found = [
            Fold(tuple(best[at : at + step]), rest) for at in range(0, first, step)
        ]
    n_random = min(n_targets - sum(len(f.targets) for f in found), n_references)
    drawn = random_order(n_references, seed).tolist()[:n_random]
    for start in range(0, n_random, step):
        out = tuple(drawn[start : min(start + step, n_random)])
        rest = tuple(k for k in range(n_references) if k not in out)
        found.append(Fold(out, rest))
    return found


def squared_errors(
    references: References,
    model: str,
    options: Mapping[str, Any],
    *,
    n_targets: int,
    max_items: int,
    seed: int,
    at_once: int | None = None,
) -> Tensor:
    r"""Squared standardised errors :math:`z^2` of a model on pseudo-targets.

    The error of the estimate against the truth over the standard deviation that has
    the belief's 95 % interval, or the floor, whichever is larger. The floor is
    that of :func:`~gp_eval.calibration.own_variance.own_variances` with ``n`` random
    items observed, :math:`(1 - n / N) \sum_i w_i^2 v_i`: without it a belief that
    collapsed on one pseudo-target would decide on its own.

    Args:
        references: All ``K``.
        model: Registered name. One of several targets runs each fold jointly.
        options: Its options; ``weights``, one for each reference, go with them.
        n_targets: Number of pseudo-targets.
        max_items: Items that each is run for; never all ``N``, where nothing is left
            to be wrong about.
        seed: Fixes who is left out, and random items.
        at_once: Targets of a fold at most.

    Returns:
        Shape ``T x n_max``; NaN where a model of several targets is not trained yet.

    Raises:
        ValueError: Where the model refuses what is left of the references.
    """
    n_items = len(references.items)
    n_max = min(max_items, n_items - 1)
    if n_max < 1:
        return references.scores.new_zeros(0, 0)
    found = folds(references, n_targets, seed=seed, at_once=at_once)
    rows = [
        _of_fold(references, fold, model, options, n_max=n_max, seed=seed + number)
        for number, fold in enumerate(found, start=1)
    ]
    return torch.cat(rows)


def _of_fold(
    references: References,
    fold: Fold,
    model: str,
    options: Mapping[str, Any],
    *,
    n_max: int,
    seed: int,
) -> Tensor:
    """Squared standardised errors of one fold's targets."""
    names, n_items = references.models, len(references.items)
    left = references.subset(models=[names[k] for k in fold.rest])
    scores = references.scores[:, list(fold.targets)].T.contiguous()
    run = make_simulator(model, dict(_subset(options, fold)), factory=_maker(model))
    try:
        curves = run(left, scores, random_order(n_items, seed), n_max=n_max)
    except (GpEvalError, ValueError) as error:
        raise ValueError(
            f"calibrated: {model!r} cannot run on the {len(left.models)} of "
            f"{len(references.models)} references that are left beside "
            f"pseudo-targets: {error}"
        ) from error
    truth = scores @ references.item_weights
    missed = curves.mean.cpu() - truth.unsqueeze(-1)
    # Rounding is no error: a certain belief that is right to the last bits is right.
    missed[missed.abs() <= _EXACT * truth.abs().amax()] = 0.0
    one = half_width(torch.ones((), dtype=missed.dtype))
    believed = (curves.half_width().cpu() / one).square()
    n = torch.arange(1, n_max + 1, dtype=missed.dtype)
    own = references.item_weights.square().dot(_own(left, references))
    return missed.square() / believed.maximum(own * (1.0 - n / n_items))


def _own(left: References, references: References) -> Tensor:
    """Own variances by the references that are left, by all if those are the same."""
    different = bool((left.scores != left.scores[:, :1]).any())
    return own_variances(left if different else references)


def _subset(options: Mapping[str, Any], fold: Fold) -> Iterator[tuple[str, Any]]:
    """The options, with weights of the references that are left."""
    for name, value in options.items():
        if name == "weights" and value is not None:
            yield name, [value[k] for k in fold.rest]
        else:
            yield name, value


def _maker(model: str) -> Any:
    """Builds models that share nothing: one trains the kernel it is given."""

    def make(references: References, **options: Any) -> Any:
        return make_model(model, references, **copy.deepcopy(options))

    return make
