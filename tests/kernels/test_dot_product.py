from __future__ import annotations

import pytest
import torch
from gpytorch.kernels import LinearKernel, MaternKernel, ScaleKernel

from gp_eval.kernels import DotProductKernel
from gp_eval.settings import exact_inference


def rows(n: int, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(n, 3, generator=generator, dtype=torch.float64)


def test_it_is_the_inner_product_and_gpytorchs_linear_kernel() -> None:
    a, b = rows(4), rows(5, seed=1)
    found = DotProductKernel()(a, b).to_dense()
    for i in range(4):
        for j in range(5):
            expected = sum(float(a[i, f] * b[j, f]) for f in range(3))
            assert float(found[i, j]) == pytest.approx(expected, rel=1e-12)
    linear = LinearKernel().double()
    linear.variance = torch.tensor(0.4, dtype=torch.float64)
    scaled = ScaleKernel(DotProductKernel()).double()
    scaled.outputscale = torch.tensor(0.4, dtype=torch.float64)
    torch.testing.assert_close(scaled(a, b).to_dense(), linear(a, b).to_dense())


def test_its_diagonal_and_batches_are_parts_of_the_whole() -> None:
    a = rows(6)
    kernel = DotProductKernel()
    whole = kernel(a).to_dense()
    torch.testing.assert_close(kernel(a, diag=True), whole.diagonal())
    batched = kernel(a.view(2, 3, 3)).to_dense()
    torch.testing.assert_close(batched[1], whole[3:, 3:])
    with pytest.raises(RuntimeError, match="last_dim_is_batch"):
        kernel.forward(a, a, last_dim_is_batch=True)


def test_it_adds_to_a_kernel_that_is_singular_without_noise() -> None:
    """GPyTorch's own linear kernel fails here: it factorises the other summand."""
    a = rows(5)[[0, 0, 1, 2, 3]]
    kernel = (MaternKernel() + ScaleKernel(DotProductKernel())).double()
    with exact_inference():
        assert kernel(a).to_dense().shape == (5, 5)
