"""How far a plan's predictor misses references that it was not fitted on."""

from __future__ import annotations

import torch
from torch import Tensor

from gp_eval._random import random_order
from gp_eval.data import References
from gp_eval.disco.options import DiscoOptions
from gp_eval.disco.plan import DiscoPlan

__all__ = ["out_of_fold_errors"]


def out_of_fold_errors(
    references: References, plan: DiscoPlan, *, folds: int = 5
) -> Tensor:
    """Prediction minus truth of every reference, shape ``K``, in score units.

    The predictor is fitted anew without the models of a fold; the items stay as they
    were chosen, by all references. The figures are therefore a little too good, and
    they are of models like the references: newer or better ones are missed by more.

    Args:
        references: Those that the plan was made from.
        plan: The plan.
        folds: Number of folds, drawn by the plan's seed; at most ``K``.

    Raises:
        ValueError: For fewer than 2 folds, or less than 3 references.
    """
    size = len(references.models)
    if folds < 2 or size < 3:
        raise ValueError(
            f"folds: expected at least 2 of at least 3 references, got {folds} of "
            f"{size}"
        )
    choice = "random" if plan.options.predictor == "mean" else "given"
    options = DiscoOptions(**{**plan.options.model_dump(), "choice": choice})
    errors = torch.empty(size, dtype=torch.float64)
    fold = random_order(size, plan.options.seed) % min(folds, size)
    for held_out in fold.unique().tolist():
        outside = torch.nonzero(fold == held_out).flatten()
        inside = torch.nonzero(fold != held_out).flatten()
        train, test = (
            references.subset(models=[references.models[k] for k in part.tolist()])
            for part in (inside, outside)
        )
        items = plan.items if choice == "given" else None
        refitted = DiscoPlan.fit(train, options, items=items)
        errors[outside] = refitted.predict(test).mean - test.performance
    return errors
