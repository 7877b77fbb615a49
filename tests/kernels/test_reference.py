from __future__ import annotations

import math
import pickle
import unittest

import pytest
import torch
from gpytorch.constraints import GreaterThan
from gpytorch.kernels import RBFKernel, ScaleKernel
from gpytorch.priors import GammaPrior
from gpytorch.test.base_kernel_test_case import BaseKernelTestCase
from oracles import covariance_by_loops

from gp_eval.kernels import ReferenceScoreKernel


class TestConformance(unittest.TestCase, BaseKernelTestCase):
    """GPyTorch's own suite for kernels."""

    def create_kernel_no_ard(self, **kwargs) -> ReferenceScoreKernel:
        return ReferenceScoreKernel(**kwargs)


def scores(n: int, k: int = 6, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.rand(n, k, generator=generator, dtype=torch.float64)


def kernel(alpha: float = 0.37, beta: float = 2.3, **options) -> ReferenceScoreKernel:
    made = ReferenceScoreKernel(**options).double()
    made.alpha, made.beta = alpha, beta
    return made


def test_is_equation_1() -> None:
    phi = scores(9)
    torch.testing.assert_close(
        kernel()(phi).to_dense(),
        covariance_by_loops(phi, 0.37, 2.3),
        rtol=1e-12,
        atol=1e-14,
    )


def test_agrees_with_scaled_rbf_of_gpytorch() -> None:
    phi, other = scores(8), scores(5, seed=1)
    rbf = ScaleKernel(RBFKernel()).double()
    rbf.outputscale = torch.tensor(0.37, dtype=torch.float64)
    rbf.base_kernel.lengthscale = torch.tensor(
        math.sqrt(6 / (2 * 2.3)), dtype=torch.float64
    )
    torch.testing.assert_close(
        kernel()(phi, other).to_dense(), rbf(phi, other).to_dense(), rtol=1e-12, atol=0
    )


def test_diagonal_of_a_cross_block() -> None:
    phi, other = scores(8), scores(8, seed=1)
    torch.testing.assert_close(
        kernel()(phi, other, diag=True),
        kernel()(phi, other).to_dense().diagonal(),
        rtol=1e-12,
        atol=0,
    )


def test_weights_are_appendix_b2() -> None:
    phi, w = scores(7), torch.tensor([0.5, 0.0, 0.2, 0.1, 0.1, 0.1]).double()
    table = kernel(weights=w)(phi).to_dense().detach()
    for a in range(7):
        for b in range(7):
            d = phi[a] - phi[b]
            expected = 0.37 * math.exp(-2.3 / 6 * float(d @ torch.diag(w) @ d))
            assert float(table[a, b]) == pytest.approx(expected, rel=1e-12)


def test_uniform_weights_rescale_beta_and_are_not_equation_1() -> None:
    phi = scores(7)
    uniform = kernel(weights=torch.full((6,), 1 / 6).double())(phi).to_dense()
    torch.testing.assert_close(
        uniform, covariance_by_loops(phi, 0.37, 2.3 / 6), rtol=1e-7, atol=0
    )
    assert not torch.allclose(uniform, kernel()(phi).to_dense())


def test_beta_keeps_its_meaning_when_references_are_repeated() -> None:
    phi = scores(6)
    torch.testing.assert_close(
        kernel()(torch.cat([phi, phi], -1)).to_dense(), kernel()(phi).to_dense()
    )


def test_parameters_are_the_papers_own_in_double_precision() -> None:
    made = kernel(alpha=0.1, beta=0.3)
    assert made.alpha.item() == made.raw_alpha.item() == 0.1
    assert made.beta.item() == made.raw_beta.item() == 0.3
    assert not made.raw_alpha_constraint.enforced
    assert made.raw_beta_constraint.lower_bound.item() == pytest.approx(1e-5)


def test_gradients_by_finite_differences() -> None:
    phi = scores(5)
    made = kernel()

    def total(alpha: torch.Tensor, beta: torch.Tensor) -> torch.Tensor:
        return torch.func.functional_call(
            made,
            {"raw_alpha": alpha.view(1, 1), "raw_beta": beta.view(1, 1)},
            (phi, phi),
        ).to_dense()

    point = [torch.tensor(v, dtype=torch.float64, requires_grad=True) for v in (0.4, 2)]
    assert torch.autograd.gradcheck(total, point)


def test_batch_of_hyperparameters() -> None:
    made = ReferenceScoreKernel(batch_shape=torch.Size([3])).double()
    made.alpha = torch.tensor([0.1, 0.2, 0.3]).double().view(3, 1, 1)
    made.beta = torch.tensor([1.0, 2.0, 3.0]).double().view(3, 1, 1)
    phi = scores(4)
    for i in range(3):
        expected = covariance_by_loops(
            phi, float(made.alpha[i].detach()), float(made.beta[i].detach())
        )
        torch.testing.assert_close(made(phi).to_dense()[i], expected)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("into_weighted", [False, True])
def test_state_dict_round_trip(weighted: bool, into_weighted: bool) -> None:
    w = torch.rand(6).double()
    saved = kernel(weights=w if weighted else None)
    loaded = ReferenceScoreKernel(
        weights=torch.ones(6).double() if into_weighted else None
    ).double()
    loaded.load_state_dict(saved.state_dict())
    phi = scores(5)
    assert torch.equal(loaded(phi).to_dense(), saved(phi).to_dense())


def test_pickle() -> None:
    phi = scores(4)
    again = pickle.loads(pickle.dumps(kernel()))
    assert torch.equal(again(phi).to_dense(), kernel()(phi).to_dense())


def test_priors_read_and_set_the_parameters() -> None:
    made = kernel(alpha_prior=GammaPrior(2.0, 2.0), beta_prior=GammaPrior(3.0, 1.0))
    closures = {name: (c, s) for name, _, _, c, s in made.named_priors()}
    read, write = closures["beta_prior"]
    assert read(made).item() == pytest.approx(2.3)
    write(made, torch.tensor(1.5))
    assert made.beta.item() == 1.5
    read, write = closures["alpha_prior"]
    write(made, 0.9)
    assert read(made).item() == pytest.approx(0.9)


def test_own_constraint() -> None:
    made = ReferenceScoreKernel(beta_constraint=GreaterThan(0.5)).double()
    assert made.beta.item() == pytest.approx(1.0)
    assert made.raw_beta.item() != pytest.approx(1.0)


def test_errors_name_the_argument() -> None:
    with pytest.raises(ValueError, match="weights: expected values >= 0"):
        ReferenceScoreKernel(weights=torch.tensor([0.5, -0.5]))
    with pytest.raises(ValueError, match=r"one per reference \(6\), got 2"):
        kernel(weights=torch.ones(2).double())(scores(3)).to_dense()
    with pytest.raises(RuntimeError, match="last_dim_is_batch"):
        kernel().forward(scores(3), scores(3), last_dim_is_batch=True)
    with pytest.raises(TypeError):
        ReferenceScoreKernel(alhpa_prior=None)
