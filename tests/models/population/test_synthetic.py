"""What the model is for, on made-up benchmarks whose truth is known.

Seeds are fixed and margins generous: these tests tell a method that works from one
that does not, not a good setting from a better one.
"""

from __future__ import annotations

from functools import cache

import pytest
import torch
from item_response import answers, named, spread

from gp_eval.experiments.curves import Curves
from gp_eval.experiments.simulators import make_simulator
from gp_eval.intervals import half_width

N_ITEMS, N_MAX, SEEDS = 120, 60, 8
ABOVE = [2.0, 2.5, 3.0]
AMONG = [-1.1, -0.7, -0.3, 0.1, 0.5, 0.9]


def table(abilities: list[float], seed: int, *, shuffled: bool = False) -> tuple:
    """References and targets ``R x N`` of one benchmark."""
    scores = answers([*spread(20), *abilities], N_ITEMS, seed=100 + seed)
    references, targets = scores[:, :20], scores[:, 20:].T
    if shuffled:  # every reference on an order of items of its own
        generator = torch.Generator().manual_seed(seed)
        orders = torch.rand(references.shape, generator=generator).argsort(0)
        references = references.gather(0, orders)
    return named(references), targets


@cache
def curves(model: str, kind: str, seed: int) -> tuple[Curves, torch.Tensor]:
    abilities = ABOVE if kind == "above" else AMONG
    references, targets = table(abilities, seed, shuffled=kind == "shuffled")
    order = torch.randperm(N_ITEMS, generator=torch.Generator().manual_seed(seed))
    simulate = make_simulator(model)
    return simulate(references, targets, order, n_max=N_MAX), targets.mean(1)


def errors(model: str, kind: str) -> torch.Tensor:
    """Errors of all runs, ``R x N_MAX``."""
    parts = [curves(model, kind, seed) for seed in range(SEEDS)]
    return torch.cat([found.mean - truth.unsqueeze(-1) for found, truth in parts])


def rmse(model: str, kind: str, *, begin: int = 10) -> float:
    return float(errors(model, kind)[:, begin:].square().mean().sqrt())


def test_targets_above_all_references_are_estimated_better_than_by_bayesame() -> None:
    ours, theirs = rmse("population", "above"), rmse("bayesame", "above")
    assert ours < 0.8 * theirs
    assert ours < rmse("rs-mean", "above")
    # After half of the items there is no pull back to the references left.
    bias = errors("population", "above")[:, -1]
    assert abs(float(bias.mean())) < 0.02
    assert float(bias.abs().max()) < 0.1


def test_targets_among_the_references_are_estimated_better_than_at_random() -> None:
    assert rmse("population", "among") < 0.95 * rmse("rs-mean", "among")
    assert rmse("population", "among") < 1.1 * rmse("bayesame", "among")


def test_shuffled_references_do_little_harm() -> None:
    assert rmse("population", "shuffled") < 1.25 * rmse("rs-mean", "shuffled")


@pytest.mark.parametrize("kind", ["above", "among", "shuffled"])
def test_intervals_hold_the_truth_nearly_always(kind: str) -> None:
    inside = []
    for seed in range(SEEDS):
        found, truth = curves("population", kind, seed)
        half = half_width(found.variance, None)
        inside.append((found.mean - truth.unsqueeze(-1)).abs() <= half)
    assert float(torch.cat(inside)[:, 4:].double().mean()) > 0.88
