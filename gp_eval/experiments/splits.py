"""Targets and references from one pool of models (Section 5 of the BayesAME paper)."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from gp_eval._random import random_order
from gp_eval.data import References
from gp_eval.errors import DataError

__all__ = [
    "Split",
    "chronological",
    "extrapolation",
    "high_correlation",
    "interpolation",
]


@dataclass(frozen=True)
class Split:
    """Who is a target and who may be a reference.

    Attributes:
        scores: Scores of all models that take part, without missing cells.
        targets: Ids of the targets.
        pool: Ids of the models that references are drawn from.
    """

    scores: References
    targets: tuple[str, ...]
    pool: tuple[str, ...]

    def references(self, fraction: float, *, seed: int) -> References:
        """A random ``fraction`` of the pool, at least two models if there are two.

        The number is rounded to the nearest one, half to even.

        Raises:
            ValueError: For a fraction outside ``(0, 1]``.
        """
        if not 0.0 < fraction <= 1.0:
            raise ValueError(f"fraction: expected 0 < fraction <= 1, got {fraction}")
        size = min(len(self.pool), max(2, round(fraction * len(self.pool))))
        order = random_order(len(self.pool), seed)
        chosen = sorted(order[:size].tolist())
        return self.scores.subset(models=[self.pool[i] for i in chosen])

    def target_scores(self) -> torch.Tensor:
        """Scores of the targets, ``T x N``."""
        return self.scores.subset(models=self.targets).scores.T.contiguous()


def _usable(scores: References, n_targets: int) -> References:
    """Models with a mean score other than 0, as in the published data loader."""
    alive = [
        name
        for name, mean in zip(scores.models, scores.performance, strict=True)
        if float(mean) != 0.0
    ]
    if len(alive) < n_targets + 1:
        raise DataError(
            f"targets: expected fewer than the {len(alive)} models, got {n_targets}"
        )
    return scores.subset(models=alive)


def interpolation(
    scores: References, *, n_targets: int = 10, target_seed: int = 0
) -> Split:
    """Random targets; all other models are the pool.

    Args:
        scores: Complete scores of all models.
        n_targets: Number of targets.
        target_seed: Fixes the targets. Figures depend on this draw, so average over
            several.
    """
    usable = _usable(scores, n_targets)
    order = random_order(len(usable.models), target_seed).tolist()
    return _split(usable, order[:n_targets])


def extrapolation(
    scores: References, *, n_targets: int = 10, gap: float = 0.2
) -> Split:
    """The best models are targets, the next ``gap`` of all models is left out.

    Args:
        scores: Complete scores of all models.
        n_targets: Number of targets.
        gap: Share of all models between targets and pool.

    Raises:
        ValueError: For a gap outside ``[0, 1)``: with a negative one, targets would be
            among the references.
    """
    if not 0.0 <= gap < 1.0:
        raise ValueError(f"gap: expected 0 <= gap < 1, got {gap}")
    usable = _usable(scores, n_targets)
    order = torch.argsort(usable.performance, descending=True, stable=True).tolist()
    dropped = round(gap * len(order))
    rest = order[n_targets + dropped :]
    if not rest:
        raise DataError(f"gap: {gap} of {len(order)} models leaves no references")
    names = usable.models
    return Split(
        usable,
        tuple(names[i] for i in order[:n_targets]),
        tuple(names[i] for i in sorted(rest)),
    )


def high_correlation(scores: References, *, n_targets: int = 10) -> Split:
    """Targets that score alike; all other models are the pool (Section 5.2).

    The paper takes "the 10 most correlated models overall". Here a set grows from every
    model by the one of highest mean correlation with it, and the set of the highest
    mean pairwise correlation is taken: the most correlated *pair* may be one model
    listed twice, which leads elsewhere. Its low-correlation counterpart is a random
    set: :func:`interpolation`.

    Args:
        scores: Complete scores of all models.
        n_targets: Number of targets, at least 2.
    """
    if n_targets < 2:
        raise DataError(f"n_targets: correlation needs at least 2, got {n_targets}")
    usable = _usable(scores, n_targets)
    centred = usable.scores - usable.scores.mean(0)
    norm = centred.norm(dim=0)
    unit = centred / torch.where(norm > 0, norm, 1.0)
    return _split(usable, _most_correlated(unit.T @ unit, n_targets))


def _most_correlated(correlation: torch.Tensor, size: int) -> list[int]:
    """The best of the sets that grow from each model, of ``M x M`` correlations."""
    every = torch.arange(correlation.shape[0])
    chosen = every.unsqueeze(-1)
    # Sum of correlations of every model (columns) with the set of every start (rows).
    sums = correlation.clone()
    within = torch.zeros_like(sums[:, 0])
    for _ in range(size - 1):
        gains = sums.scatter(1, chosen, -torch.inf)
        new = gains.argmax(1)
        within += gains[every, new]
        sums += correlation[new]
        chosen = torch.cat([chosen, new.unsqueeze(-1)], dim=1)
    return chosen[within.argmax()].tolist()


def chronological(scores: References, *, n_targets: int = 10) -> Split:
    """The newest models are targets, all older ones the pool.

    Args:
        scores: Complete scores, models from old to new.
        n_targets: Number of targets.
    """
    usable = _usable(scores, n_targets)
    size = len(usable.models)
    return _split(usable, list(range(size - n_targets, size)))


def _split(usable: References, targets: list[int]) -> Split:
    names = usable.models
    rest = [i for i in range(len(names)) if i not in set(targets)]
    return Split(
        usable, tuple(names[i] for i in targets), tuple(names[i] for i in rest)
    )
