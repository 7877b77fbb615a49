from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor
from torch.distributions import Bernoulli, Beta

from gp_eval.models.irt import BetaResponse, ItemFamily, TwoParameterLogistic

FAMILIES: list[ItemFamily] = [TwoParameterLogistic(), BetaResponse(clip=0.02)]


def normal(*shape: int, seed: int) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


def distribution(family: ItemFamily, theta: float, a: float, b: float):
    """The published definitions, on their own scales."""
    t = torch.tensor([theta, a, b], dtype=torch.float64)
    if family.name == "irt-2pl":
        return Bernoulli(1 / (1 + (-(t[1] * t[0] - t[2])).exp()))
    ability, delta = 1 / (1 + (-t[0]).exp()), 1 / (1 + (-t[2]).exp())
    return Beta((ability / delta) ** t[1], ((1 - ability) / (1 - delta)) ** t[1])


def scores_of(family: ItemFamily, *shape: int) -> Tensor:
    u = torch.sigmoid(2 * normal(*shape, seed=4))
    return (u > 0.4).double() if family.name == "irt-2pl" else u


@pytest.mark.parametrize("family", FAMILIES, ids=lambda f: f.name)
def test_likelihood_and_moments_are_those_of_the_distribution(
    family: ItemFamily,
) -> None:
    theta, a, b = normal(3, seed=0), normal(4, seed=1), normal(4, seed=2)
    score = scores_of(family, 4)
    statistics = family.statistics(score)
    natural, partition = family.terms(a, b, theta)
    assert natural.shape == (len(statistics), 4, 3)
    log_p = (statistics.unsqueeze(-1) * natural).sum(0) - partition
    mean, variance = family.moments(a, b, theta)
    logit = family.logit(theta, a.unsqueeze(-1), b.unsqueeze(-1))
    for i in range(4):
        for g in range(3):
            exact = distribution(family, float(theta[g]), float(a[i]), float(b[i]))
            value = score[i]
            if family.name == "irt-beta":
                value = value.clamp(0.02, 0.98)
            torch.testing.assert_close(log_p[i, g], exact.log_prob(value))
            torch.testing.assert_close(mean[i, g], exact.mean)
            torch.testing.assert_close(variance[i, g], exact.variance)
            torch.testing.assert_close(torch.sigmoid(logit[i, g]), exact.mean)


@pytest.mark.parametrize("family", FAMILIES, ids=lambda f: f.name)
def test_joint_density_is_the_sum_and_its_gradient_that_of_autograd(
    family: ItemFamily,
) -> None:
    scores = scores_of(family, 5, 4)
    statistics = family.statistics(scores)
    parameters = [
        normal(n, seed=s).requires_grad_() for n, s in ((4, 0), (5, 1), (5, 2))
    ]
    theta, a, b = parameters
    natural, partition = family.terms(a, b, theta)
    value = (statistics * natural).sum() - partition.sum()
    value = value + family.ability_log_prior(theta).sum()
    value = value + family.item_log_prior(a, b).sum()
    by_autograd = torch.autograd.grad(value, parameters)
    with torch.no_grad():
        joint = family.joint(statistics, *parameters)
    torch.testing.assert_close(joint.value, value.detach(), rtol=1e-12, atol=0)
    by_hand = (joint.ability, joint.discrimination, joint.difficulty)
    for hand, auto in zip(by_hand, by_autograd, strict=True):
        torch.testing.assert_close(hand, auto, rtol=1e-10, atol=1e-12)


def log_uniform(x: float) -> float:
    """Log density of the logit of a uniform variable at x, less that at 0."""
    u = 1 / (1 + math.exp(-x))
    return math.log(u * (1 - u) / 0.25)


@pytest.mark.parametrize(
    ("family", "ability", "difficulty"),
    [
        # N(0, 1), N(0, 4): log density differences from 0.
        (FAMILIES[0], -0.5 * 1.7**2, -0.5 * 0.9**2 / 4),
        # Logits of uniforms.
        (FAMILIES[1], log_uniform(1.7), log_uniform(0.9)),
    ],
    ids=["irt-2pl", "irt-beta"],
)
def test_priors_are_the_documented_ones(
    family: ItemFamily, ability: float, difficulty: float
) -> None:
    x = torch.tensor([1.7, 0.0], dtype=torch.float64)
    prior = family.ability_log_prior(x)
    assert float(prior[0] - prior[1]) == pytest.approx(ability, rel=1e-12)
    one, zero = torch.ones(1).double(), torch.zeros(1).double()
    at = family.item_log_prior(one, torch.tensor([0.9], dtype=torch.float64))
    base = family.item_log_prior(one, zero)
    assert float(at - base) == pytest.approx(difficulty, rel=1e-12)
    assert float(family.item_log_prior(zero, zero) - base) == pytest.approx(-0.5)


def test_refuse_scores_they_cannot_have() -> None:
    binary, continuous = FAMILIES
    with pytest.raises(ValueError, match="irt-2pl: expected scores 0 or 1, got 0.5"):
        binary.statistics(torch.tensor([0.0, 0.5, 1.0]))
    for wrong in (-0.1, 1.5, float("nan")):
        with pytest.raises(ValueError, match=r"irt-beta: expected scores in \[0, 1\]"):
            continuous.statistics(torch.tensor([0.0, wrong]))
    for clip in (0.0, 0.5):
        with pytest.raises(ValueError, match="irt-beta: clip: expected 0 < clip < 0.5"):
            BetaResponse(clip=clip)


def test_scores_0_and_1_are_clipped_for_the_beta_likelihood() -> None:
    statistics = BetaResponse(clip=0.25).statistics(torch.tensor([0.0, 0.5, 1.0]))
    expected = torch.tensor([[0.25, 0.5, 0.75], [0.75, 0.5, 0.25]]).log()
    torch.testing.assert_close(statistics, expected)
