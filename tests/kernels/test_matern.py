from __future__ import annotations

import math
import pickle
import unittest

import pytest
import torch
from gpytorch.kernels import MaternKernel, ScaleKernel
from gpytorch.priors import GammaPrior
from gpytorch.test.base_kernel_test_case import BaseKernelTestCase
from lmc_oracles import correlation

from gp_eval.kernels import ReferenceMaternKernel


class TestConformance(unittest.TestCase, BaseKernelTestCase):
    """GPyTorch's own suite for kernels."""

    def create_kernel_no_ard(self, **kwargs) -> ReferenceMaternKernel:
        return ReferenceMaternKernel(**kwargs)


def scores(n: int, k: int = 6, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.rand(n, k, generator=generator, dtype=torch.float64)


def kernel(alpha: float = 0.37, beta: float = 2.3, **options) -> ReferenceMaternKernel:
    made = ReferenceMaternKernel(**options).double()
    made.alpha, made.beta = alpha, beta
    return made


def by_loops(a: torch.Tensor, b: torch.Tensor, alpha: float, beta: float):
    return torch.tensor(
        [[alpha * correlation("matern", x, y, beta) for y in b] for x in a],
        dtype=torch.float64,
    )


def oracle(alpha: float, beta: float) -> ScaleKernel:
    made = ScaleKernel(MaternKernel(nu=1.5)).double()
    made.outputscale = torch.tensor(alpha, dtype=torch.float64)
    made.base_kernel.lengthscale = torch.tensor(1 / beta, dtype=torch.float64)
    return made


@pytest.mark.parametrize(("alpha", "beta"), [(0.37, 2.3), (10.0, 1e-4), (1e-3, 50.0)])
def test_is_the_formula_of_section_3_2(alpha: float, beta: float) -> None:
    phi, other = scores(9), scores(5, seed=1)
    made = kernel(alpha, beta)
    close = {"rtol": 1e-12, "atol": 1e-16}
    torch.testing.assert_close(
        made(phi).to_dense(), by_loops(phi, phi, alpha, beta), **close
    )
    torch.testing.assert_close(
        made(phi, other).to_dense(), by_loops(phi, other, alpha, beta), **close
    )


@pytest.mark.parametrize(("alpha", "beta"), [(0.37, 2.3), (10.0, 1e-4), (1e-3, 50.0)])
def test_agrees_with_scaled_matern_of_gpytorch(alpha: float, beta: float) -> None:
    phi, other = scores(8), scores(5, seed=1)
    ours, theirs = kernel(alpha, beta), oracle(alpha, beta)
    for pair in ((phi, phi), (phi, other)):
        torch.testing.assert_close(
            ours(*pair).to_dense(), theirs(*pair).to_dense(), rtol=1e-12, atol=0
        )
    other = scores(8, seed=2)
    torch.testing.assert_close(
        ours(phi, other, diag=True), theirs(phi, other, diag=True), rtol=1e-12, atol=0
    )


def test_diagonal_of_a_cross_block() -> None:
    phi, other = scores(8), scores(8, seed=1)
    torch.testing.assert_close(
        kernel()(phi, other, diag=True),
        kernel()(phi, other).to_dense().diagonal(),
        rtol=1e-12,
        atol=0,
    )


def test_equal_rows_covary_with_alpha_exactly_even_in_a_cross_block() -> None:
    """A quadratic expansion leaves 1e-16 of squared distance, 1e-8 of distance."""
    phi = scores(30, k=40)
    other = torch.cat([phi, scores(3, k=40, seed=1)])
    block = kernel(0.37, 50.0)(phi, other).to_dense()
    assert torch.equal(block.diagonal(), torch.full((30,), 0.37, dtype=torch.float64))


def test_the_number_of_references_plays_no_part() -> None:
    """Unlike in Eq. (1): columns without a difference change nothing."""
    phi = scores(6)
    wide = torch.cat([phi, torch.ones(6, 10).double()], -1)
    torch.testing.assert_close(
        kernel()(wide).to_dense(), kernel()(phi).to_dense(), rtol=1e-12, atol=0
    )


def test_weights_scale_squared_differences() -> None:
    phi, w = scores(7), torch.tensor([0.5, 0.0, 0.2, 0.1, 0.1, 0.1]).double()
    table = kernel(weights=w)(phi).to_dense().detach()
    for a in range(7):
        for b in range(7):
            d = phi[a] - phi[b]
            scaled = math.sqrt(3.0) * 2.3 * math.sqrt(float(d @ torch.diag(w) @ d))
            expected = 0.37 * (1 + scaled) * math.exp(-scaled)
            assert float(table[a, b]) == pytest.approx(expected, rel=1e-12)


def test_gradients_by_finite_differences_with_coinciding_rows() -> None:
    phi = scores(5)[[0, 1, 2, 2, 4]]
    made = kernel()

    def total(alpha: torch.Tensor, beta: torch.Tensor) -> torch.Tensor:
        return torch.func.functional_call(
            made,
            {"raw_alpha": alpha.view(1, 1), "raw_beta": beta.view(1, 1)},
            (phi, phi),
        ).to_dense()

    point = [torch.tensor(v, dtype=torch.float64, requires_grad=True) for v in (0.4, 2)]
    assert torch.autograd.gradcheck(total, point)


@pytest.mark.parametrize("diag", [False, True])
def test_gradient_in_the_inputs_is_finite_at_coinciding_rows(diag: bool) -> None:
    phi = scores(5)[[0, 1, 2, 2, 4]].requires_grad_()
    other = scores(5)[[0, 3, 2, 1, 4]]
    covariance = kernel()(phi, other, diag=diag)
    total = (covariance if diag else covariance.to_dense()).sum()
    (slope,) = torch.autograd.grad(total, phi)
    assert bool(slope.isfinite().all())

    def value(at: torch.Tensor) -> float:
        out = kernel()(at, other, diag=diag)
        return float((out if diag else out.to_dense()).sum().detach())

    for i, k in ((0, 1), (2, 3), (3, 0), (4, 5)):
        step = torch.zeros_like(phi)
        step[i, k] = 1e-5
        at = phi.detach()
        expected = (value(at + step) - value(at - step)) / 2e-5
        # Differences at a kink of the third derivative: an error of order 1e-5.
        assert float(slope[i, k]) == pytest.approx(expected, rel=1e-4, abs=1e-4)


def test_batch_of_hyperparameters() -> None:
    made = ReferenceMaternKernel(batch_shape=torch.Size([3])).double()
    made.alpha = torch.tensor([0.1, 0.2, 0.3]).double().view(3, 1, 1)
    made.beta = torch.tensor([1.0, 2.0, 3.0]).double().view(3, 1, 1)
    phi = scores(4)
    expected = torch.stack(
        [
            by_loops(phi, phi, float(a), float(b))
            for a, b in zip(made.alpha.detach(), made.beta.detach(), strict=True)
        ]
    )
    torch.testing.assert_close(made(phi).to_dense(), expected, rtol=1e-12, atol=0)
    torch.testing.assert_close(
        made(phi, diag=True), expected.diagonal(0, -2, -1), rtol=1e-12, atol=0
    )
    torch.testing.assert_close(made[1](phi).to_dense(), expected[1], rtol=1e-12, atol=0)


@pytest.mark.parametrize("weighted", [False, True])
def test_state_dict_and_pickle_round_trips(weighted: bool) -> None:
    saved = kernel(weights=torch.rand(6).double() if weighted else None)
    loaded = ReferenceMaternKernel().double()
    loaded.load_state_dict(saved.state_dict())
    phi = scores(5)
    for again in (loaded, pickle.loads(pickle.dumps(saved))):
        assert torch.equal(again(phi).to_dense(), saved(phi).to_dense())


def test_parameters_are_the_papers_own_with_its_bounds() -> None:
    made = kernel(alpha=0.1, beta=0.3)
    assert made.alpha.item() == made.raw_alpha.item() == 0.1
    assert made.beta.item() == made.raw_beta.item() == 0.3
    assert not made.raw_alpha_constraint.enforced
    assert made.raw_beta_constraint.lower_bound.item() == pytest.approx(1e-5)


def test_priors_read_and_set_the_parameters() -> None:
    made = kernel(beta_prior=GammaPrior(3.0, 1.0))
    ((_, _, _, read, write),) = made.named_priors()
    assert read(made).item() == pytest.approx(2.3)
    write(made, torch.tensor(1.5))
    assert made.beta.item() == 1.5


def test_errors_name_the_argument() -> None:
    with pytest.raises(ValueError, match="weights: expected values >= 0"):
        ReferenceMaternKernel(weights=torch.tensor([0.5, -0.5]))
    with pytest.raises(ValueError, match=r"one per reference \(6\), got 2"):
        kernel(weights=torch.ones(2).double())(scores(3)).to_dense()
    with pytest.raises(RuntimeError, match="ReferenceMaternKernel does not accept"):
        kernel().forward(scores(3), scores(3), last_dim_is_batch=True)


def test_parameters_are_copied_from_another_kernel() -> None:
    one, other = ReferenceMaternKernel().double(), ReferenceMaternKernel().double()
    one.beta = 0.3
    other.beta = one.beta
    one.beta = 2.0
    assert other.beta.item() == 0.3
