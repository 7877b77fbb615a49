from __future__ import annotations

import math
from itertools import pairwise

import pytest
import torch
from torch import Tensor

from gp_eval.models.irt import BetaResponse, TwoParameterLogistic
from gp_eval.models.irt.em import fit_2pl_by_em
from gp_eval.models.irt.family import ability_grid
from gp_eval.models.irt.marginal import ability_posterior, fit_by_lbfgs


def binary(n_items: int, n_references: int, seed: int = 0) -> Tensor:
    """Scores of a true 2-PL."""
    generator = torch.Generator().manual_seed(seed)
    theta, a, b = (
        torch.randn(n, generator=generator, dtype=torch.float64)
        for n in (n_references, n_items, n_items)
    )
    p = torch.sigmoid(torch.outer(1 + 0.3 * a, theta) - b.unsqueeze(-1))
    return (torch.rand(p.shape, generator=generator, dtype=torch.float64) < p).double()


def test_marginal_is_the_integral_over_abilities() -> None:
    scores = binary(4, 3)
    a = torch.tensor([1.0, 0.5, -0.4, 2.0], dtype=torch.float64)
    b = torch.tensor([0.3, -1.0, 0.2, 0.6], dtype=torch.float64)
    # Brute force: one reference, one item and one ability at a time, on a finer grid.
    width = 0.01
    expected = 0.0
    ability = 0.0
    for k in range(3):
        mass = moment = 0.0
        for step in range(-800, 801):
            t = step * width
            density = math.exp(-0.5 * t * t) / math.sqrt(2 * math.pi)
            for i in range(4):
                p = 1 / (1 + math.exp(-(float(a[i]) * t - float(b[i]))))
                density *= p if scores[i, k] == 1.0 else 1 - p
            mass += density * width
            moment += t * density * width
        expected += math.log(mass)
        ability += moment / mass
    expected -= float(0.5 * (a - 1).square().sum() + 0.125 * b.square().sum())
    family, grid = TwoParameterLogistic(), ability_grid(161, 6.0)
    posterior, value = ability_posterior(family, scores.unsqueeze(0), a, b, grid)
    # The grid ends at 6 standard deviations: 2e-9 of the mass of the prior is beyond.
    assert float(value.detach()) == pytest.approx(expected, rel=1e-8)
    assert float((posterior @ grid).sum()) == pytest.approx(ability, rel=1e-7)
    torch.testing.assert_close(posterior.sum(-1), torch.ones(3).double())


def test_em_ascends_to_a_stationary_point() -> None:
    scores = binary(30, 40)
    fit = fit_2pl_by_em(scores, tolerance=1e-14, max_iterations=2000)
    gains = [after - before for before, after in pairwise(fit.history)]
    # Rounding of a sum of about 1000.
    assert min(gains) > -1e-9
    assert len(gains) > 5
    a, b = (x.clone().requires_grad_() for x in (fit.discrimination, fit.difficulty))
    grid = ability_grid(61, 5.0)
    value = ability_posterior(TwoParameterLogistic(), scores[None], a, b, grid)[1]
    assert float(value.detach()) == pytest.approx(fit.history[-1], rel=1e-12)
    for slope in torch.autograd.grad(value, (a, b)):
        assert float(slope.abs().max()) < 1e-3


def test_em_and_lbfgs_find_the_same_mode() -> None:
    scores = binary(12, 60)
    em = fit_2pl_by_em(scores, points=61, limit=5.0, tolerance=1e-13)
    other = fit_by_lbfgs(TwoParameterLogistic(), scores, points=61, limit=5.0)
    # Two optimizers that stop by their own rules on a flat top.
    assert em.history[-1] == pytest.approx(other.history[-1], abs=1e-4)
    torch.testing.assert_close(
        em.discrimination, other.discrimination, rtol=0, atol=2e-2
    )
    torch.testing.assert_close(em.difficulty, other.difficulty, rtol=0, atol=2e-2)


def test_em_recovers_the_items_of_its_own_model() -> None:
    scores = binary(20, 4000)
    fit = fit_2pl_by_em(scores)
    generator = torch.Generator().manual_seed(0)
    theta, a, b = (
        torch.randn(n, generator=generator, dtype=torch.float64) for n in (4000, 20, 20)
    )
    # Standard errors with 4000 references are about 0.06.
    assert float((fit.discrimination - 1 - 0.3 * a).abs().max()) < 0.2
    assert float((fit.difficulty - b).abs().max()) < 0.2
    assert float(torch.corrcoef(torch.stack([fit.ability, theta]))[0, 1]) > 0.85


def test_lbfgs_stops_where_the_beta_marginal_is_flat() -> None:
    generator = torch.Generator().manual_seed(1)
    ability = torch.randn(25, generator=generator, dtype=torch.float64)
    noise = torch.randn(8, 25, generator=generator, dtype=torch.float64)
    scores = torch.sigmoid(ability + 0.5 * noise)
    family = BetaResponse()
    fit = fit_by_lbfgs(family, scores)
    a, b = (x.clone().requires_grad_() for x in (fit.discrimination, fit.difficulty))
    statistics = family.statistics(scores)
    value = ability_posterior(family, statistics, a, b, ability_grid(161, 6.0))[1]
    assert float(value.detach()) == pytest.approx(fit.history[-1], rel=1e-12)
    start = ability_posterior(
        family, statistics, torch.ones(8).double(), b * 0, ability_grid(161, 6.0)
    )[1]
    assert float(value.detach() - start.detach()) > 1.0
    for slope in torch.autograd.grad(value, (a, b)):
        assert float(slope.abs().max()) < 0.05


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_items_that_all_references_share_stay_finite(value: float) -> None:
    for scores in (
        torch.full((5, 7), value).double(),
        torch.tensor([[value], [1 - value], [value]]).double(),
    ):
        em = fit_2pl_by_em(scores)
        beta = fit_by_lbfgs(BetaResponse(), scores)
        for fit in (em, beta):
            for x in (fit.discrimination, fit.difficulty, fit.ability):
                assert bool(x.isfinite().all())
        # The prior alone holds them: all right (or wrong) is easy (or hard).
        assert float(em.difficulty[0]) * (1 if value else -1) < 0.0
