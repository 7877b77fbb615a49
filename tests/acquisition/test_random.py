from __future__ import annotations

from collections import Counter

import torch
from botorch.acquisition.input_constructors import get_acqf_input_constructor
from botorch.models.deterministic import GenericDeterministicModel
from botorch.optim.optimize import optimize_acqf_discrete

from gp_eval.acquisition import RandomSelection

MODEL = GenericDeterministicModel(lambda X: X)
CHOICES = torch.arange(6, dtype=torch.float64).unsqueeze(-1)


def first(seed: int) -> int:
    acquisition = RandomSelection(MODEL, n_items=6, seed=seed)
    return int(optimize_acqf_discrete(acquisition, q=1, choices=CHOICES)[0])


def test_the_maximiser_is_uniform_over_seeds() -> None:
    counts = Counter(first(seed) for seed in range(600))
    assert set(counts) == set(range(6))
    assert max(counts.values()) < 150  # expected 100, standard deviation 9


def test_a_seed_fixes_the_whole_order() -> None:
    acquisition = RandomSelection(MODEL, n_items=6, seed=3)
    order, left = [], list(range(6))
    while left:
        choices = torch.tensor(left, dtype=torch.float64).unsqueeze(-1)
        item = int(optimize_acqf_discrete(acquisition, q=1, choices=choices)[0])
        order.append(item)
        left.remove(item)
    assert order == acquisition.order.tolist()


def test_the_global_generator_is_left_alone() -> None:
    state = torch.get_rng_state()
    RandomSelection(MODEL, n_items=6, seed=3)
    assert torch.equal(torch.get_rng_state(), state)


def test_input_constructor_is_registered() -> None:
    construct = get_acqf_input_constructor(RandomSelection)
    made = RandomSelection(**construct(model=MODEL, n_items=6, seed=3))
    assert made.order.shape == (6,)
