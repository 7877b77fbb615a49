"""Targets inside and outside of what made-up references span."""

from __future__ import annotations

import torch
from torch import Tensor

from gp_eval.data import References


def graded(
    abilities: list[float], n_items: int = 200, *, seed: int = 0, binary: bool = True
) -> Tensor:
    """Scores ``n_items x len(abilities)`` of models on items of mixed difficulty."""
    generator = torch.Generator().manual_seed(seed)
    difficulty = 1.5 * torch.randn(n_items, 1, generator=generator, dtype=torch.float64)
    ability = torch.tensor(abilities, dtype=torch.float64)
    chance = torch.sigmoid(ability - difficulty)
    if not binary:
        noise = torch.randn(chance.shape, generator=generator, dtype=torch.float64)
        return chance + 0.05 * noise
    draw = torch.rand(chance.shape, generator=generator, dtype=torch.float64)
    return (draw < chance).double()


def with_target(
    ability: float,
    *,
    n_items: int = 200,
    n_references: int = 40,
    seed: int = 0,
    binary: bool = True,
) -> tuple[References, Tensor]:
    """References of abilities from -1.5 to 0.5, and the scores of one target."""
    spread = torch.linspace(-1.5, 0.5, n_references).tolist()
    scores = graded([ability, *spread], n_items, seed=seed, binary=binary)
    items = [f"q{i}" for i in range(n_items)]
    models = [f"m{k}" for k in range(n_references)]
    return References(scores[:, 1:], items, models), scores[:, 0].contiguous()
