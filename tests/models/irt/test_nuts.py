from __future__ import annotations

import random
import sys

import numpy as np
import pytest
import torch
from torch import Tensor

from gp_eval.errors import MissingDependencyError
from gp_eval.models.irt import TwoParameterLogistic
from gp_eval.models.irt.nuts import r_hat, sample_by_nuts


def test_agrees_with_a_brute_force_posterior() -> None:
    """Two items and four references; abilities are drawn too and integrated out."""
    scores = torch.tensor([[1.0, 1.0, 0.0, 1.0], [0.0, 1.0, 0.0, 0.0]]).double()
    family, sizes = TwoParameterLogistic(), [4, 2, 2]

    def density(z: Tensor) -> tuple[Tensor, Tensor]:
        joint = family.joint(scores.unsqueeze(0), *z.split(sizes))
        parts = (joint.ability, joint.discrimination, joint.difficulty)
        return joint.value, torch.cat(parts)

    start = torch.tensor([0.0] * 4 + [1.0] * 2 + [0.0] * 2, dtype=torch.float64)
    draws = sample_by_nuts(density, start, samples=300, seed=3)
    assert draws.shape == (2, 300, 8)
    assert float(r_hat(draws).max()) < 1.1
    mean, sd = draws.reshape(-1, 8).mean(0)[4:], draws.reshape(-1, 8).std(0)[4:]
    expected_mean, expected_sd = brute_force(scores.numpy())
    # 600 draws with an effective size of 200 or more: 0.25 sd is 3.5 standard errors.
    error = (mean.numpy() - expected_mean) / expected_sd
    assert np.abs(error).max() < 0.25
    np.testing.assert_allclose(sd.numpy(), expected_sd, rtol=0.2)


def brute_force(scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Posterior mean and sd of (a1, a2, b1, b2) on a grid of 41^2 points an item."""
    theta = np.linspace(-6, 6, 121)
    prior = np.exp(-(theta**2) / 2)
    prior /= prior.sum()
    a, b = (
        x.ravel() for x in np.meshgrid(np.linspace(-3, 5, 41), np.linspace(-8, 8, 41))
    )
    p = 1 / (1 + np.exp(-(a[:, None] * theta - b[:, None])))
    joint = np.ones((a.size, a.size))
    for first, second in scores.T:
        left = p if first else 1 - p
        right = p if second else 1 - p
        joint *= (left * prior) @ right.T
    items = np.exp(-((a - 1) ** 2) / 2 - b**2 / 8)
    joint *= np.outer(items, items)
    joint /= joint.sum()
    marginals = [joint.sum(1), joint.sum(0)]
    mean = [m @ x for x in (a, b) for m in marginals]
    square = [m @ x**2 for x in (a, b) for m in marginals]
    return np.array(mean), np.sqrt(np.array(square) - np.array(mean) ** 2)


def gaussian(z: Tensor) -> tuple[Tensor, Tensor]:
    return -0.5 * z.square().sum(), -z


def short(seed: int) -> Tensor:
    start = torch.zeros(2, dtype=torch.float64)
    return sample_by_nuts(gaussian, start, warmup=10, samples=10, seed=seed)


def test_seed_fixes_the_draws_and_nothing_global_moves(
    capfd: pytest.CaptureFixture[str],
) -> None:
    torch.manual_seed(0)
    random.seed(0)
    before = torch.get_rng_state(), random.getstate()
    # The legacy generator is what there is to be left alone.
    legacy = np.random.get_state()[1]  # noqa: NPY002
    first = short(1)
    assert first.dtype == torch.float64
    assert torch.equal(torch.get_rng_state(), before[0])
    assert random.getstate() == before[1]
    assert np.array_equal(np.random.get_state()[1], legacy)  # noqa: NPY002
    torch.manual_seed(99)
    assert torch.equal(short(1), first)
    assert not torch.equal(short(2), first)
    assert not torch.equal(first[0], first[1])
    captured = capfd.readouterr()
    assert captured.out == captured.err == ""


def test_r_hat_is_the_split_formula() -> None:
    draws = torch.randn(3, 20, 2, generator=torch.Generator().manual_seed(0)).double()
    draws[0] += 0.7
    x = draws.numpy()
    halves = np.concatenate([x[:, :10], x[:, 10:]])
    within = halves.var(1, ddof=1).mean(0)
    between = 10 * halves.mean(1).var(0, ddof=1)
    expected = np.sqrt((0.9 * within + between / 10) / within)
    np.testing.assert_allclose(r_hat(draws), expected, rtol=1e-12)
    still = torch.ones(2, 10)
    assert float(r_hat(still)) == 1.0
    still[1] = 2.0
    assert float(r_hat(still)) == float("inf")
    with pytest.raises(ValueError, match="expected at least 4 a chain, got 3"):
        r_hat(torch.zeros(2, 3))


def test_says_what_is_missing_without_pyro(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyro.infer", None)
    with pytest.raises(MissingDependencyError, match="needs pyro-ppl"):
        short(0)
