from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from gpytorch.mlls import ExactMarginalLogLikelihood
from scipy.stats import norm
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import (
    ConstantKernel,
    DotProduct,
    Matern,
    WhiteKernel,
)

from gp_eval.disco.signature_gp import (
    FittedSignatureGP,
    SignatureGP,
    SignatureHyperparameters,
)
from gp_eval.errors import DataError, NotPositiveDefiniteError
from gp_eval.settings import exact_inference

HYPERPARAMETERS = SignatureHyperparameters(
    outputscale=0.7, lengthscale=1.9, linear=0.3, noise=0.05
)


def data(
    n: int = 25, f: int = 4, later: int = 12, *, noise: float = 0.02, seed: int = 0
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Features and benchmark scores of references, and of later models."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(n + later, f, generator=generator, dtype=torch.float64)
    y = 0.5 + 0.1 * x[:, 0] + 0.05 * torch.sin(2.0 * x[:, 1])
    y = y + noise * torch.randn(n + later, generator=generator, dtype=torch.float64)
    return x[:n], y[:n], x[n:], y[n:]


def sklearns(kernel: SignatureHyperparameters) -> GaussianProcessRegressor:
    h = kernel
    return GaussianProcessRegressor(
        ConstantKernel(h.outputscale) * Matern(h.lengthscale, nu=2.5)
        + ConstantKernel(h.linear) * DotProduct(0.0, "fixed")
        + WhiteKernel(h.noise),
        alpha=0.0,
        optimizer=None,
        normalize_y=True,
    )


@pytest.mark.parametrize("n", [2, 25, 120])
def test_prediction_is_scikit_learns_at_the_same_hyperparameters(n: int) -> None:
    x, y, later, _ = data(n)
    ours = FittedSignatureGP(x, y, HYPERPARAMETERS).predict(later)
    theirs = sklearns(HYPERPARAMETERS).fit(x.numpy(), y.numpy())
    mean, std = theirs.predict(later.numpy(), return_std=True)
    assert ours.std is not None
    np.testing.assert_allclose(ours.mean.numpy(), mean, rtol=1e-8)
    np.testing.assert_allclose(ours.std.numpy(), std, rtol=1e-8)


def test_prediction_by_the_formula_of_a_conditional_gaussian() -> None:
    x, y, later, _ = data()
    h = HYPERPARAMETERS

    def k(a: torch.Tensor, b: torch.Tensor) -> float:
        r = math.sqrt(5.0) * float((a - b).norm()) / h.lengthscale
        matern = (1.0 + r + r * r / 3.0) * math.exp(-r)
        return h.outputscale * matern + h.linear * float(a @ b)

    gram = torch.tensor([[k(a, b) for b in x] for a in x], dtype=torch.float64)
    gram += h.noise * torch.eye(len(x), dtype=torch.float64)
    centre, spread = y.mean(), y.std(correction=0)
    found = FittedSignatureGP(x, y, h).predict(later)
    assert found.std is not None
    for t, point in enumerate(later):
        cross = torch.tensor([k(point, a) for a in x], dtype=torch.float64)
        gain = torch.linalg.solve(gram, cross)
        mean = centre + spread * gain @ ((y - centre) / spread)
        variance = k(point, point) + h.noise - gain @ cross
        assert float(found.mean[t]) == pytest.approx(float(mean), rel=1e-10)
        std = float(spread * variance.sqrt())
        assert float(found.std[t]) == pytest.approx(std, rel=1e-10)


def test_the_fit_maximises_scikit_learns_marginal_likelihood() -> None:
    x, y, _, _ = data(40)
    fitted = FittedSignatureGP(x, y)
    best = fitted.hyperparameters
    theirs = sklearns(best).fit(x.numpy(), y.numpy())
    top = theirs.log_marginal_likelihood_value_
    for name in vars(best):
        for factor in (0.8, 1.25):
            moved = SignatureHyperparameters(
                **{**vars(best), name: factor * getattr(best, name)}
            )
            near = sklearns(moved).fit(x.numpy(), y.numpy())
            assert near.log_marginal_likelihood_value_ <= top + 1e-6
    start = sklearns(HYPERPARAMETERS).fit(x.numpy(), y.numpy())
    assert top > start.log_marginal_likelihood_value_ + 1.0


def test_the_layer_is_an_exact_gp_of_gpytorch() -> None:
    x, y, _, _ = data()
    fitted = FittedSignatureGP(x, y, HYPERPARAMETERS)
    model = fitted.model
    assert isinstance(model, SignatureGP)
    model.train()
    with exact_inference():
        likelihood = ExactMarginalLogLikelihood(model.likelihood, model)
        ours = likelihood(model(x), model.train_targets) * len(y)
    theirs = sklearns(HYPERPARAMETERS).fit(x.numpy(), y.numpy())
    assert float(ours.detach()) == pytest.approx(
        theirs.log_marginal_likelihood_value_, rel=1e-9
    )


def test_far_from_all_references_the_interval_widens() -> None:
    x, y, _, _ = data()
    fitted = FittedSignatureGP(x, y)
    near, far = fitted.predict(x).std, fitted.predict(10.0 * x).std
    assert near is not None
    assert far is not None
    assert float(far.min()) > float(near.max())


def test_intervals_cover_as_often_as_they_say() -> None:
    covered, total = 0, 0
    for seed in range(20):
        x, y, later, truth = data(40, later=50, seed=seed)
        interval = FittedSignatureGP(x, y).predict(later).interval(0.9)
        assert interval is not None
        low, high = interval
        covered += int(((low <= truth) & (truth <= high)).sum())
        total += len(truth)
    # 20 fits: a standard error of about 1.5 points.
    assert 0.85 < covered / total < 0.95


def test_intervals_are_those_of_a_gaussian() -> None:
    x, y, later, _ = data()
    found = FittedSignatureGP(x, y, HYPERPARAMETERS).predict(later)
    for level in (0.5, 0.95):
        interval = found.interval(level)
        assert interval is not None
        low, high = norm.interval(level, found.mean.numpy(), found.std.numpy())
        np.testing.assert_allclose(interval[0].numpy(), low, rtol=1e-12)
        np.testing.assert_allclose(interval[1].numpy(), high, rtol=1e-12)


def test_references_that_come_twice_can_be_fitted() -> None:
    x, y, later, _ = data()
    twice = FittedSignatureGP(torch.cat([x, x]), torch.cat([y, y])).predict(later)
    assert bool(twice.mean.isfinite().all())


def test_noise_keeps_equal_signatures_from_being_certain() -> None:
    x, y, _, _ = data(noise=0.05)
    fitted = FittedSignatureGP(x, y)
    std = fitted.predict(x[:1]).std
    assert std is not None
    spread = float(y.std(correction=0))
    assert float(std) > spread * math.sqrt(fitted.hyperparameters.noise)


def test_equal_benchmark_scores_are_refused() -> None:
    x, _, _, _ = data()
    with pytest.raises(DataError, match="all references have the same benchmark score"):
        FittedSignatureGP(x, torch.full((25,), 0.5, dtype=torch.float64))


def test_shapes_of_the_layer_are_checked() -> None:
    x, y, _, _ = data()
    with pytest.raises(ValueError, match=r"K x F and K x 1, got \(25, 4\) and \(25,\)"):
        SignatureGP(x, y)
    assert issubclass(NotPositiveDefiniteError, ArithmeticError)
