"""Made-up populations of models that answer items of a few classes."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from gp_eval.data import References


def random_probabilities(
    n_models: int, n_items: int, n_classes: int, *, seed: int = 0, scale: float = 1.5
) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    shape = (n_models, n_items, n_classes)
    logits = scale * torch.randn(shape, generator=generator, dtype=torch.float64)
    return torch.softmax(logits, -1)


def population(
    n_models: int = 40,
    n_items: int = 60,
    n_classes: int = 4,
    *,
    seed: int = 0,
    weighted: bool = False,
) -> References:
    """Models of different ability: the better, the more probable the right class."""
    generator = torch.Generator().manual_seed(seed)
    labels = torch.randint(n_classes, (n_items,), generator=generator)
    ability = torch.randn(n_models, 1, generator=generator, dtype=torch.float64)
    difficulty = torch.randn(1, n_items, generator=generator, dtype=torch.float64)
    noise = torch.randn(
        n_models, n_items, n_classes, generator=generator, dtype=torch.float64
    )
    right = torch.nn.functional.one_hot(labels, n_classes).double()
    logits = noise + right * (1.0 + 1.5 * ability - difficulty).unsqueeze(-1)
    probabilities = torch.softmax(logits, -1)
    gold = probabilities.gather(-1, labels.reshape(1, -1, 1).expand(n_models, -1, 1))
    weights = torch.rand(n_items, generator=generator, dtype=torch.float64) + 0.1
    return References(
        gold.squeeze(-1).T,
        [f"q{i}" for i in range(n_items)],
        [f"m{k}" for k in range(n_models)],
        groups=[f"g{i % 3}" for i in range(n_items)],
        probabilities=probabilities,
        labels=labels,
        item_weights=weights if weighted else None,
    )


def answers(
    n_items: int,
    n_models: int,
    *,
    seed: int = 0,
    guess: float = 0.0,
    discrimination: float = 1.0,
) -> np.ndarray:
    """Right and wrong of an item response model, ``N x K``, independent given both."""
    generator = np.random.default_rng(seed)
    ability, difficulty = (
        generator.normal(size=n_models),
        generator.normal(size=n_items),
    )
    slope = discrimination * np.exp(0.3 * generator.normal(size=n_items))
    logits = slope[:, None] * (ability - 1.2 * difficulty[:, None])
    probability = guess + (1.0 - guess) / (1.0 + np.exp(-logits))
    return (generator.random((n_items, n_models)) < probability).astype(np.float64)
