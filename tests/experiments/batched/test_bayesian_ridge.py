from __future__ import annotations

import pytest
import torch
from sklearn.linear_model import BayesianRidge
from torch import Tensor

from gp_eval.experiments.batched.bayesian_ridge import fit_bayesian_ridge


def data(m: int, p: int, kind: str) -> tuple[Tensor, Tensor]:
    """Features ``m x p`` and four responses: noise, signal, equal, exactly linear."""
    generator = torch.Generator().manual_seed(m * 100 + p)
    x = torch.rand(m, p, generator=generator, dtype=torch.float64)
    if kind == "binary":
        x = (x < 0.4).double()
        x[:, p // 2] = 1.0
    if kind == "repeated":
        x = x[:, torch.arange(p) // 2][torch.arange(m) // 2]
    slope = torch.randn(p, generator=generator, dtype=torch.float64)
    noise = torch.randn(m, generator=generator, dtype=torch.float64)
    y = torch.stack([noise, x @ slope + 0.3 * noise, 0.0 * noise + 0.7, x @ slope], -1)
    return x, y


@pytest.mark.parametrize(
    ("m", "p"), [(1, 4), (2, 5), (6, 6), (7, 6), (5, 30), (30, 5), (40, 39), (60, 1)]
)
@pytest.mark.parametrize("kind", ["uniform", "binary", "repeated"])
def test_equals_scikit_learn(m: int, p: int, kind: str) -> None:
    """All responses at once against one fit each, to rounding that iteration grows."""
    x, y = data(m, p, kind)
    centred = x - x.mean(0)
    fit = fit_bayesian_ridge(centred, y - y.mean(0))
    vectors = torch.cat([x[:2].T, torch.ones(p, 1, dtype=torch.float64)], -1)
    spread = fit.quadratic_form(vectors)
    for r in range(4):
        known = BayesianRidge().fit(x.numpy(), y[:, r].numpy())
        close = {"rtol": 1e-8, "atol": 1e-9}
        coefficients = torch.from_numpy(known.coef_)
        if kind == "uniform":
            found = fit.coefficients[:, r]
            torch.testing.assert_close(found, coefficients, rtol=1e-8, atol=1e-11)
        # In directions that no sample has, scikit-learn's own rounding is 1e-8.
        fitted, expected = centred @ fit.coefficients[:, r], centred @ coefficients
        torch.testing.assert_close(fitted, expected, **close)
        sigma = torch.from_numpy(known.sigma_)
        expected = (vectors.T @ sigma @ vectors).diagonal()
        torch.testing.assert_close(spread[:, r], expected, **close)
        assert float(fit.alpha[r]) == pytest.approx(float(known.alpha_), rel=1e-8)
        assert float(fit.lambda_[r]) == pytest.approx(float(known.lambda_), rel=1e-8)


def test_the_data_reach_different_numbers_of_iterations() -> None:
    """Otherwise the test above says nothing about stopping one by one."""
    x, y = data(30, 5, "uniform")
    steps = [BayesianRidge().fit(x.numpy(), y[:, r].numpy()).n_iter_ for r in range(4)]
    assert len(set(steps)) >= 3


def test_responses_do_not_influence_each_other() -> None:
    x, y = data(30, 5, "uniform")
    x, y = x - x.mean(0), y - y.mean(0)
    together = fit_bayesian_ridge(x, y)
    for r in range(4):
        alone = fit_bayesian_ridge(x, y[:, [r]])
        torch.testing.assert_close(
            alone.coefficients[:, 0], together.coefficients[:, r], rtol=1e-10, atol=0
        )
