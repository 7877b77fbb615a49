"""Small tables and simulated runs for the tests of plans."""

from __future__ import annotations

import torch
from torch import Tensor

from gp_eval.data import References
from gp_eval.experiments.curves import Curves
from gp_eval.planning.folds import Fold
from gp_eval.planning.tasks import Done, Task


def population(n_items: int = 40, n_models: int = 12, seed: int = 0) -> References:
    """Right and wrong answers of models that differ in skill, items in difficulty."""
    generator = torch.Generator().manual_seed(seed)
    skill = torch.linspace(-1.0, 1.5, n_models, dtype=torch.float64)
    ease = torch.randn(n_items, 1, generator=generator, dtype=torch.float64)
    chance = torch.sigmoid(skill + 1.5 * ease)
    draw = torch.rand(n_items, n_models, generator=generator, dtype=torch.float64)
    order = torch.randperm(n_models, generator=generator)
    return References(
        (draw < chance).double()[:, order],
        [f"q{i}" for i in range(n_items)],
        [f"m{k}" for k in range(n_models)],
    )


def done(
    mean: Tensor,
    variance: Tensor,
    truth: Tensor,
    *,
    targets: tuple[str, ...],
    n_items: int,
    pool: int = 9,
    size: int | None = None,
    model: str = "rs-mean",
) -> Done:
    """A finished task with the given curves."""
    names = tuple(f"r{k}" for k in range(pool))
    fold = Fold("interpolation", targets, names, seed=0, size=size)
    task = Task(model, fold, mean.shape[1])
    return Done(task, Curves(mean, variance), truth, n_items, seconds=0.1)
