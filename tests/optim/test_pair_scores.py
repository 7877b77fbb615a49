from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from gp_eval.optim import PairScores

COUNTS = torch.tensor([1.0, 4.0, 2.0, 3.0], dtype=torch.float64)  # B = 4
PAIRS = torch.tensor([5, 1, 9, 1, 5, 1, 11, 3, 9, 5])  # T = 3; several of a pair


def scores(n: int = 10, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.rand(n, generator=generator, dtype=torch.float64)


def prior_mean() -> Tensor:
    return scores(12, seed=1)


def made(pairs: Tensor = PAIRS) -> PairScores:
    return PairScores.from_scores(pairs, scores(len(pairs)), prior_mean(), COUNTS)


def test_collects_scores_by_pair() -> None:
    data, s, mean = made(), scores(), prior_mean()
    assert data.target.tolist() == [0, 0, 1, 2, 2]
    assert data.bucket.tolist() == [1, 3, 1, 1, 3]
    expected = [
        (s[1] + s[3] + s[5]) / 3 - mean[1],
        s[7] - mean[3],
        (s[0] + s[4] + s[9]) / 3 - mean[5],
        (s[2] + s[8]) / 2 - mean[9],
        s[6] - mean[11],
    ]
    torch.testing.assert_close(data.residual, torch.stack(expected))
    assert data.noise_scale.tolist() == pytest.approx([4 / 3, 3, 4 / 3, 4 / 2, 3])
    assert data.repeats.item() == 2 + 2 + 1


def literal_spread(noise: float, pairs: Tensor = PAIRS) -> float:
    """The sum over pairs of the docstring, term by term."""
    total, s = 0.0, scores(len(pairs))
    for pair in set(pairs.tolist()):
        own = [float(v) for v, p in zip(s, pairs.tolist(), strict=True) if p == pair]
        n, size = len(own), float(COUNTS[pair % 4])
        square = sum((v - sum(own) / n) ** 2 for v in own)
        total += (n - 1) / 2 * math.log(noise * size) + 0.5 * math.log(n)
        total += square / (2 * noise * size)
    return total


@pytest.mark.parametrize("noise", [1e-4, 1e-2, 0.1, 1.0, 5.0])
def test_further_terms_are_those_of_the_formula(noise: float) -> None:
    at = torch.tensor(noise, dtype=torch.float64)
    assert float(made().spread_terms(at)) == pytest.approx(
        literal_spread(noise), rel=1e-10
    )


@pytest.mark.parametrize("noise", [1e-3, 1e-2, 0.1, 1.0])
def test_by_bucket_with_them_is_the_likelihood_by_item(noise: float) -> None:
    """For any covariance of the abilities: here a random one."""
    root = torch.randn(12, 12, generator=torch.Generator().manual_seed(2)).double()
    abilities = root @ root.T / 12
    s, data = scores(), made()

    def literal(gram: Tensor, residual: Tensor) -> float:
        solved = torch.linalg.inv(gram) @ residual
        return float(0.5 * residual @ solved + 0.5 * torch.logdet(gram))

    items = abilities[PAIRS][:, PAIRS] + torch.diag(noise * COUNTS[PAIRS % 4])
    by_item = literal(items, s - prior_mean()[PAIRS])
    seen = data.target * 4 + data.bucket
    means = abilities[seen][:, seen] + torch.diag(noise * data.noise_scale)
    by_bucket = literal(means, data.residual)
    extra = float(data.spread_terms(torch.tensor(noise, dtype=torch.float64)))
    assert abs(extra) > 0.1
    assert by_bucket + extra == pytest.approx(by_item, rel=1e-10)


@pytest.mark.parametrize("noise", [1e-3, 0.1, 2.0])
def test_slope_is_the_derivative(noise: float) -> None:
    at = torch.tensor(noise, dtype=torch.float64, requires_grad=True)
    data = made()
    (expected,) = torch.autograd.grad(data.spread_terms(at), at)
    torch.testing.assert_close(data.spread_slope(at.detach()), expected)


def test_one_score_a_pair_adds_nothing() -> None:
    data = made(torch.tensor([3, 0, 7, 11]))
    for noise in (1e-3, 1.0):
        at = torch.tensor(noise, dtype=torch.float64)
        assert float(data.spread_terms(at)) == float(data.spread_slope(at)) == 0.0


def test_the_order_of_scores_does_not_matter() -> None:
    order = torch.randperm(10, generator=torch.Generator().manual_seed(3))
    again = PairScores.from_scores(PAIRS[order], scores()[order], prior_mean(), COUNTS)
    for name, value in vars(made()).items():
        torch.testing.assert_close(getattr(again, name), value, rtol=1e-12, atol=1e-14)


def test_no_scores_at_all() -> None:
    data = made(torch.empty(0, dtype=torch.long))
    assert data.residual.shape == data.noise_scale.shape == data.target.shape == (0,)
    assert float(data.spread_terms(torch.tensor(0.1, dtype=torch.float64))) == 0.0
