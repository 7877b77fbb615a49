"""Made-up benchmarks whose models follow an item response model."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from gp_eval.data import References

KINDS = ("binary", "continuous", "unbounded")


def named(scores: Tensor, *, weights: Tensor | None = None) -> References:
    """References with the names ``q0 ...`` and ``m0 ...``."""
    n_items, n_models = scores.shape
    return References(
        scores,
        [f"q{i}" for i in range(n_items)],
        [f"m{k}" for k in range(n_models)],
        groups=["even" if i % 2 == 0 else "odd" for i in range(n_items)],
        item_weights=weights,
    )


def answers(
    abilities: Sequence[float], n_items: int, *, seed: int = 0, kind: str = "binary"
) -> Tensor:
    """Scores ``N x len(abilities)`` under the two-parameter logistic model.

    Drawn as 0/1, or the probability of a right answer with noise on the logit, or that
    logit itself.
    """
    generator = torch.Generator().manual_seed(seed)
    options = {"generator": generator, "dtype": torch.float64}
    difficulty = 1.3 * torch.randn(n_items, 1, **options)
    slope = (0.3 * torch.randn(n_items, 1, **options)).exp()
    logits = slope * (torch.tensor(abilities, dtype=torch.float64) - difficulty)
    if kind == "binary":
        return (torch.rand(logits.shape, **options) < logits.sigmoid()).double()
    logits = logits + 0.3 * torch.randn(logits.shape, **options)
    return logits.sigmoid() if kind == "continuous" else logits


def spread(n_models: int, low: float = -1.0, high: float = 1.0) -> list[float]:
    """Abilities at even distances, the same for every seed."""
    return torch.linspace(low, high, n_models, dtype=torch.float64).tolist()


def benchmark(
    n_items: int = 30, n_models: int = 8, *, kind: str = "binary", seed: int = 0
) -> tuple[References, Tensor]:
    """References, and the scores of a target that is none of them."""
    table = answers([*spread(n_models), 0.4], n_items, seed=seed, kind=kind)
    return named(table[:, :-1]), table[:, -1]
