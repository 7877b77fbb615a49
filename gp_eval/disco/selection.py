"""The items of a benchmark in the order in which DISCO chooses them."""

from __future__ import annotations

import torch
from torch import Tensor

from gp_eval._random import random_order
from gp_eval.data import References
from gp_eval.disco.choose import disagreement_order, guiding_models
from gp_eval.disco.options import DiscoOptions
from gp_eval.disco.probabilities import fit_temperatures
from gp_eval.disco.selection_scores import (
    Disagreement,
    disagreement_of_probabilities,
    disagreement_of_scores,
)
from gp_eval.errors import DataError

__all__ = ["item_order", "reference_disagreement", "require_labels", "resolve"]


def resolve(source: str, references: References, *, name: str) -> str:
    """``"probabilities"`` or ``"scores"``, whatever ``"auto"`` stands for."""
    has_them = references.probabilities is not None
    if source == "probabilities" and not has_them:
        raise DataError(f"{name}: the references have no probabilities; use 'scores'")
    if source == "auto":
        return "probabilities" if has_them else "scores"
    return source


def require_labels(references: References) -> Tensor:
    """Labels of the items, or an error that says what they are for."""
    if references.labels is None:
        raise DataError("temperature: needs the labels of the items in the references")
    return references.labels


def reference_disagreement(
    references: References, options: DiscoOptions
) -> Disagreement:
    """Both disagreement scores of every item, by the options' guiding models."""
    models = guiding_models(len(references.models), options.guiding, seed=options.seed)
    source = resolve(options.choose_from, references, name="choose_from")
    probabilities = references.probabilities
    if source == "scores" or probabilities is None:
        return disagreement_of_scores(references.scores, models=models)
    temperatures = None
    if options.temperature:
        temperatures = fit_temperatures(probabilities, require_labels(references))
    return disagreement_of_probabilities(
        probabilities, models=models, temperatures=temperatures
    )


def item_order(references: References, options: DiscoOptions) -> Tensor:
    """All items in the order of choice, shape ``N``: the first ``k`` are the plan's.

    Raises:
        ValueError: For PDS of scores 0 and 1, too many guiding models, or a choice that
            has no order of its own.
        DataError: For scores outside of [0, 1], or where probabilities, labels or
            groups that the options need are missing.
    """
    if options.choice == "random":
        return random_order(len(references.items), options.seed)
    if options.choice == "given":
        raise ValueError("choice: 'given' needs items=")
    if options.stratify and references.groups is None:
        raise DataError("stratify: the references have no groups")
    scores = reference_disagreement(references, options).of(options.choice)
    order = disagreement_order(
        scores, groups=references.groups if options.stratify else None
    )
    return torch.as_tensor(order)
