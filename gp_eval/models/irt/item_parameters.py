"""Item parameters of a reference set: fitted once, shared by all its targets."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from gp_eval.data import References
from gp_eval.errors import DataError
from gp_eval.models.irt.em import fit_2pl_by_em
from gp_eval.models.irt.family import ItemFamily
from gp_eval.models.irt.marginal import MapFit, fit_by_lbfgs
from gp_eval.models.irt.nuts import r_hat, sample_by_nuts
from gp_eval.models.irt.two_parameter import TwoParameterLogistic

__all__ = ["Inference", "ItemParameters", "fit_items"]

Inference = Literal["map", "mcmc"]

_CHAINS, _SAMPLES = 2, 200


@dataclass(frozen=True)
class ItemParameters:
    """``D`` equally weighted draws of the parameters of ``N`` items.

    Attributes:
        family: The item response family.
        item_ids: Ids of the items.
        discrimination: Draws of ``a``, ``D x N``; ``D = 1`` for the mode.
        difficulty: Draws of ``b`` (2-PL) or of the logit of ``delta`` (Beta).
        r_hat_max: Greatest R-hat of the references' logits over all their answers;
            ``None`` for the mode. The logits are what predictions depend on: the
            parameters themselves are weakly identified up to shift and scale, and
            their own R-hat is higher.
    """

    family: ItemFamily
    item_ids: tuple[str, ...]
    discrimination: Tensor
    difficulty: Tensor
    r_hat_max: float | None


def fit_items(
    references: References,
    family: ItemFamily,
    *,
    inference: Inference = "map",
    draws: int = 50,
    seed: int = 0,
) -> ItemParameters:
    """Learn the items of a benchmark from its references.

    ``"map"`` is the mode with abilities integrated out, by EM for the 2-PL and
    L-BFGS otherwise. ``"mcmc"``, as in the BayesAME paper, is NUTS on abilities and
    item parameters together: 2 chains from the mode, 150 iterations of warm-up and
    200 kept, thinned to ``draws``. The same references and seed give the same object.

    Args:
        references: Complete reference scores; item weights play no part here.
        family: The item response family.
        inference: ``"map"`` or ``"mcmc"``; the latter needs pyro-ppl.
        draws: Number ``D`` of posterior draws of ``"mcmc"``.
        seed: Fixes the draws of ``"mcmc"``.

    Raises:
        DataError: For missing cells.
        ValueError: For scores that the family cannot have or an unknown inference.
        MissingDependencyError: For ``"mcmc"`` without pyro-ppl.
    """
    if inference not in ("map", "mcmc"):
        raise ValueError(
            f"{family.name}: inference: expected 'map' or 'mcmc', got {inference!r}"
        )
    if draws < 1:
        raise ValueError(f"{family.name}: draws: expected at least 1, got {draws}")
    if references.n_missing:
        raise DataError(
            f"{family.name}: {references.n_missing} missing cells; read the references "
            "with missing='drop-items', 'drop-models' or 'mean'"
        )
    scores = references.scores
    if isinstance(family, TwoParameterLogistic):
        mode = fit_2pl_by_em(scores)
    else:
        mode = fit_by_lbfgs(family, scores)
    if inference == "map":
        a, b, convergence = mode.discrimination[None], mode.difficulty[None], None
    else:
        a, b, convergence = _sample_items(family, scores, mode, draws, seed)
    return ItemParameters(family, references.items, a, b, convergence)


def _sample_items(
    family: ItemFamily, scores: Tensor, mode: MapFit, draws: int, seed: int
) -> tuple[Tensor, Tensor, float]:
    """Thinned draws ``D x N`` of both parameters, and the greatest R-hat."""
    statistics = family.statistics(scores)
    n_items, n_references = scores.shape
    sizes = [n_references, n_items, n_items]

    def density(z: Tensor) -> tuple[Tensor, Tensor]:
        joint = family.joint(statistics, *z.split(sizes))
        parts = (joint.ability, joint.discrimination, joint.difficulty)
        return joint.value, torch.cat(parts)

    start = torch.cat([mode.ability, mode.discrimination, mode.difficulty])
    samples = max(_SAMPLES, math.ceil(draws / _CHAINS))
    drawn = sample_by_nuts(density, start, chains=_CHAINS, samples=samples, seed=seed)
    ability, a, b = drawn.split(sizes, dim=-1)
    # One reference at a time: all logits of all draws together would be large.
    convergence = max(
        float(r_hat(family.logit(ability[..., k : k + 1], a, b)).max())
        for k in range(n_references)
    )
    total = _CHAINS * samples
    kept = torch.linspace(0, total - 1, draws, dtype=torch.float64).round().long()
    return a.reshape(total, -1)[kept], b.reshape(total, -1)[kept], convergence
