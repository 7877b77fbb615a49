"""Learning an inflation once for a table of references."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from weakref import WeakKeyDictionary

from torch import Tensor

from gp_eval.calibration.inflation import Inflation, fit_inflation
from gp_eval.calibration.pseudo_targets import squared_errors
from gp_eval.data import References

__all__ = ["learn_inflation"]

# Targets of one reference set share what was learned; it goes with the references.
_LEARNED: WeakKeyDictionary[References, dict[str, Inflation]] = WeakKeyDictionary()


def learn_inflation(
    references: References,
    model: str,
    options: Mapping[str, Any],
    *,
    pseudo_targets: int,
    max_items: int,
    seed: int,
    at_once: int | None = None,
) -> Inflation:
    """The inflation of a model on these references.

    Learned once in a process for the same ``References`` object and settings, unless
    an option is no JSON value, such as a kernel.

    Args:
        references: Complete reference scores of at least two models.
        model: Registered name.
        options: Its options.
        pseudo_targets: See :func:`~gp_eval.calibration.pseudo_targets.folds`.
        max_items: Items that each is run for.
        seed: Fixes who is left out, and random items.
        at_once: Pseudo-targets that are run together at most, for a model of several.

    Raises:
        ValueError: If the model says nothing up to ``max_items``.
    """

    def learn() -> Inflation:
        errors = squared_errors(
            references,
            model,
            options,
            n_targets=pseudo_targets,
            max_items=max_items,
            seed=seed,
            at_once=at_once,
        )
        return _fit(errors, len(references.items))

    settings = [model, dict(options), pseudo_targets, max_items, seed, at_once]
    try:
        key = json.dumps(settings, sort_keys=True)
    except TypeError:
        return learn()
    known = _LEARNED.setdefault(references, {})
    if key not in known:
        known[key] = learn()
    return known[key]


def _fit(squared: Tensor, n_items: int) -> Inflation:
    """The inflation from the first item on after which there are beliefs."""
    untrained = squared.isnan().all(0).long()
    first = int(untrained.cumprod(0).sum())
    if first and first == untrained.shape[0]:
        raise ValueError(
            "calibrated: max_items: expected more than the initial items of the "
            f"model, got {first}, after which it is not trained yet"
        )
    return fit_inflation(squared[:, first:], n_items=n_items, n_first=first + 1)
