"""Simulation of a model that is told about all targets at once."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from gp_eval.data import References
from gp_eval.experiments.curves import Curves
from gp_eval.models.protocol import MultiTargetModel, Performance
from gp_eval.multi_target_loop import MultiTargetLoop
from gp_eval.stopping import StoppingRule

__all__ = ["simulate_multi_target"]


def simulate_multi_target(
    build: Callable[[References, int], MultiTargetModel],
    references: References,
    scores: Tensor,
    order: Tensor,
    *,
    n_max: int,
) -> Curves:
    """Curves of ``T`` targets that are evaluated jointly.

    All targets are read after every round of ``T`` evaluations, so that ``n`` is the
    number of evaluations a target, on average where targets are drawn. Before the last
    of the initial items the model is not trained, and the curves are NaN.

    Args:
        build: Makes a fresh model of so many targets.
        references: References of all targets.
        scores: Scores of the targets, ``T x N``.
        order: Order of random selection, shape ``N``.
        n_max: Number of items to evaluate on each target.
    """
    n_targets = scores.shape[0]
    never = StoppingRule(width=torch.finfo(torch.float64).tiny)
    model = build(references, n_targets)
    loop = MultiTargetLoop(model, references, stop=never, order=order)
    rows, beliefs = scores.tolist(), []
    for _ in range(n_max):
        for _ in range(n_targets):
            target, item = loop.ask()[0]
            loop.tell(target, item, rows[target][item])
        beliefs.append(loop.performance())
    mean = torch.stack([belief.mean for belief in beliefs], dim=1).cpu()
    variance = torch.stack([belief.variance for belief in beliefs], dim=1).cpu()
    untrained = slice(0, max(model.initial_items - 1, 0))
    mean[:, untrained] = variance[:, untrained] = torch.nan
    return Curves(mean, variance, _degrees(beliefs))


def _degrees(beliefs: list[Performance]) -> Tensor | None:
    """Degrees of freedom ``T x n_max``, infinite for normal beliefs among others."""
    if all(belief.dof is None for belief in beliefs):
        return None
    columns = [
        torch.full_like(belief.mean, torch.inf)
        if belief.dof is None
        else belief.dof.expand_as(belief.mean)
        for belief in beliefs
    ]
    return torch.stack(columns, dim=1).cpu()
