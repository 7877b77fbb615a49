r"""Local search inside sequential Monte Carlo, for batches of any size."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from gp_eval.acquisition.batch.objective import BatchObjective
from gp_eval.acquisition.batch.swap import replacement_values, swapped_inverse

__all__ = ["SearchSettings", "improve_by_swaps", "search_batches"]

_GAIN = 1e-12
"""Relative gain below which a swap is rounding, as in the rule for ties."""
_SWEEPS = 100
"""More than enough; with little noise rounding could go round in circles."""


@dataclass(frozen=True)
class SearchSettings:
    """How long to search.

    Attributes:
        population: Number of batches kept at a time.
        rounds: Largest number of rounds of local search and resampling.
        patience: Rounds without a better batch after which it ends.
    """

    population: int = 32
    rounds: int = 30
    patience: int = 6

    def __post_init__(self) -> None:
        """Check the values."""
        for name in ("population", "rounds", "patience"):
            if (value := getattr(self, name)) < 1:
                raise ValueError(f"{name}: expected at least 1, got {value!r}")


def search_batches(
    objective: BatchObjective,
    starts: Tensor,
    *,
    settings: SearchSettings,
    rng: np.random.Generator,
) -> list[Tensor]:
    r"""Improve a population of batches, resample it by fitness, and so on.

    A round takes every batch to a local optimum by swaps. Then the population is
    drawn anew in proportion to :math:`\exp((\beta - \max \beta) / s)`, with ``s`` the
    standard deviation of :math:`\beta` over the population: :math:`\beta` itself
    differs so little between local optima that weights proportional to it would be
    equal. Drawn batches get some random items, without which local search would leave
    them where they are; the best one stays as it is.

    Args:
        objective: The candidates, ``M`` of them.
        starts: First batches, ``p x q``.
        settings: How long to search.
        rng: Where the randomness comes from.

    Returns:
        The best batch (``q`` candidates) of the starts and after every round: its
        value never falls.
    """
    batches, values = starts, objective.values(starts)
    best = [batches[values.argmax()]]
    highest, waited = float(values.max()), 0
    for _ in range(settings.rounds):
        batches = improve_by_swaps(objective, batches, rng=rng)
        # From fresh factors: rank-2 updates are of one round only.
        values = objective.values(batches)
        leader, reached = batches[values.argmax()], float(values.max())
        better = reached > highest * (1.0 + _GAIN)
        best.append(leader if better else best[-1])
        highest, waited = max(highest, reached), 0 if better else waited + 1
        if waited == settings.patience:
            break
        drawn = _by_fitness(values, settings.population - 1, rng)
        moved = _with_random_items(batches[drawn], len(objective), rng)
        batches = torch.cat([best[-1].unsqueeze(0), moved])
    return best


def improve_by_swaps(
    objective: BatchObjective, batches: Tensor, *, rng: np.random.Generator
) -> Tensor:
    """Take every batch to where no swap of one item helps.

    Positions are visited in random order; each time the item there gives way to the
    best of all candidates, and the inverse follows by a rank-2 update.

    Args:
        objective: The candidates.
        batches: Batches ``p x q`` of different candidates.
        rng: Gives the order of positions.

    Returns:
        Batches ``p x q``, each at least as good as before.
    """
    batches = batches.clone()
    rows, inverse = objective.rows(batches), objective.inverses(batches)
    q, calm = batches.shape[1], 0
    for _ in range(_SWEEPS):
        for m in rng.permutation(q).tolist():
            changed = _swap(objective, batches, rows, inverse, m)
            calm = 0 if changed else calm + 1
            if calm == q:
                return batches
    return batches


def _swap(
    objective: BatchObjective, batches: Tensor, rows: Tensor, inverse: Tensor, m: int
) -> bool:
    """Replace the ``m``-th items by the best candidates, in place; whether any was."""
    c, variance = objective.covariance, objective.variance
    values = replacement_values(inverse, rows, batches, c, variance, m)
    present = values.gather(1, batches[:, m, None]).squeeze(1)
    highest, candidate = values.max(1)
    moved = (highest > present * (1.0 + _GAIN)).nonzero().squeeze(1)
    if not moved.shape[0]:
        return False
    new, old = candidate[moved], batches[moved]
    fresh, before = objective.rows(new), rows[moved]
    matrix = before.gather(2, old.unsqueeze(1).expand(-1, old.shape[1], -1))
    column = fresh.gather(1, old)
    column[:, m] = variance[new]
    inverse[moved] = swapped_inverse(inverse[moved], matrix, column, m)
    rows[moved, m] = fresh
    batches[moved, m] = new
    return True


def _by_fitness(values: Tensor, size: int, rng: np.random.Generator) -> Tensor:
    """Systematic resampling: ``size`` members of the population."""
    spread = float(values.std(correction=0))
    scale = spread if spread > 0.0 else 1.0
    weights = ((values - values.max()) / scale).exp()
    steps = (torch.arange(size, dtype=values.dtype) + rng.random()) / size
    reached = (weights / weights.sum()).cumsum(0)
    return torch.searchsorted(reached, steps).clamp_max(values.shape[0] - 1)


def _with_random_items(
    batches: Tensor, n_candidates: int, rng: np.random.Generator
) -> Tensor:
    """Each batch with one to all but one of its items replaced by random ones."""
    rows = [_replace(batch, n_candidates, rng) for batch in batches.tolist()]
    return torch.tensor(rows, dtype=torch.long).reshape(batches.shape)


def _replace(
    batch: Sequence[int], n_candidates: int, rng: np.random.Generator
) -> list[int]:
    changed = list(batch)
    number = int(rng.integers(1, max(2, len(batch))))
    for place in rng.choice(len(batch), number, replace=False).tolist():
        item = int(rng.integers(n_candidates))
        if item not in changed:
            changed[place] = item
    return changed
