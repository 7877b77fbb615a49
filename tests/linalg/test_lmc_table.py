from __future__ import annotations

import pytest
import torch
from gpytorch.kernels import LinearKernel, RBFKernel
from lmc_oracles import custom_latents, lmc_by_loops, parameters_of, varied
from torch import Tensor

from gp_eval.kernels import (
    LMCKernel,
    ReferenceMaternKernel,
    ReferenceScoreKernel,
    default_latents,
)
from gp_eval.linalg import DenseKernelTable, LMCTable, ReferenceKernelTable
from gp_eval.linalg.kernel_table import squared_distances
from gp_eval.linalg.lmc_table import shared_distances, shares_distances
from gp_eval.settings import exact_inference

CLOSE = {"rtol": 1e-12, "atol": 1e-12}


def phi(size: int = 6, k: int = 4) -> Tensor:
    generator = torch.Generator().manual_seed(3)
    return torch.rand(size, k, generator=generator, dtype=torch.float64)


def pairs(x: Tensor, n_targets: int) -> Tensor:
    """Rows ``[phi, count, target]`` of pair ``t * B + b``."""
    target = torch.arange(n_targets).repeat_interleave(x.shape[0]).double()
    rows = x.repeat(n_targets, 1)
    return torch.cat([rows, torch.ones_like(rows[:, :1]), target[:, None]], -1)


def check_all_views(table: LMCTable, expected: Tensor) -> None:
    size = expected.shape[0]
    generator = torch.Generator().manual_seed(1)
    rows = torch.randint(0, size, (5,), generator=generator)
    columns = torch.randint(0, size, (3,), generator=generator)
    for pair in range(size):
        torch.testing.assert_close(table.row(pair), expected[pair], **CLOSE)
    torch.testing.assert_close(table.diagonal(), expected.diagonal(), **CLOSE)
    torch.testing.assert_close(
        table.block(rows, columns), expected[rows][:, columns], **CLOSE
    )
    for part in (slice(None), slice(2, size - 1), slice(1, None, 3), slice(-4, -1)):
        torch.testing.assert_close(
            table.block(rows, part), expected[rows][:, part], **CLOSE
        )
    matrix = torch.randn(size, 3, generator=generator, dtype=torch.float64)
    turned = torch.randn(3, size, generator=generator, dtype=torch.float64).T
    for right in (matrix, matrix[:, 0], matrix[:, :1], turned, matrix[:, :0]):
        torch.testing.assert_close(table.matvec(right), expected @ right, **CLOSE)


@pytest.mark.parametrize(
    ("n_targets", "n_latents"), [(1, 1), (3, 1), (1, 3), (3, 3), (5, 2), (20, 4)]
)
def test_all_views_are_the_sum_of_kronecker_products(
    n_targets: int, n_latents: int
) -> None:
    x = phi()
    kernel = varied(LMCKernel(default_latents(n_latents), n_targets))
    with torch.no_grad():
        kronecker = sum(
            torch.kron(torch.outer(w, w), latent(x).to_dense())
            for w, latent in zip(kernel.task_weights, kernel.latents, strict=True)
        )
        check_all_views(LMCTable(kernel, x), kronecker)


def test_all_views_are_the_formula_entry_by_entry() -> None:
    x, kernel = phi(), varied(LMCKernel(default_latents(3), 2))
    rows = pairs(x, 2)
    expected = lmc_by_loops(
        rows, rows, kernel.task_weights.detach(), parameters_of(kernel)
    )
    check_all_views(LMCTable(kernel, x), expected)


def test_any_kernels_and_ours_with_weights_of_references_side_by_side() -> None:
    x, w = phi(), torch.tensor([0.1, 0.0, 0.6, 0.3], dtype=torch.float64)
    latents = [
        ReferenceMaternKernel(weights=w),  # first: its distances are not to be shared
        *custom_latents(),
        ReferenceScoreKernel(),
        ReferenceScoreKernel(weights=w),
        ReferenceMaternKernel(),
        ReferenceScoreKernel(active_dims=(0, 2)),
    ]
    kernel = varied(LMCKernel(latents, 3))
    rows = pairs(x, 3)
    with torch.no_grad(), exact_inference():
        check_all_views(LMCTable(kernel, x), kernel(rows).to_dense())


def test_latents_without_weights_share_one_table_of_distances() -> None:
    x, w = phi(), torch.ones(4, dtype=torch.float64)
    latents = [*default_latents(2), ReferenceScoreKernel(weights=w), RBFKernel()]
    table = LMCTable(varied(LMCKernel(latents, 2)), x)
    smooth, rough, weighted, other = table.tables
    assert isinstance(weighted, ReferenceKernelTable)
    assert isinstance(smooth, ReferenceKernelTable)
    assert isinstance(rough, ReferenceKernelTable)
    assert isinstance(other, DenseKernelTable)
    assert smooth.distances is rough.distances is table.shared
    assert weighted.distances is not table.shared


def test_latents_of_equal_weights_share_the_distances_under_them() -> None:
    x, w = phi(), torch.tensor([0.5, 2.0, 1.0, 0.25], dtype=torch.float64)
    table = LMCTable(varied(LMCKernel(default_latents(2, weights=w), 2)), x)
    smooth, rough = table.tables
    assert isinstance(smooth, ReferenceKernelTable)
    assert isinstance(rough, ReferenceKernelTable)
    assert smooth.distances is rough.distances is table.shared
    expected = ((x.unsqueeze(1) - x).square() * w).sum(-1)
    torch.testing.assert_close(table.shared, expected, rtol=1e-10, atol=1e-15)
    other = ReferenceScoreKernel(weights=2.0 * w).double()
    assert not shares_distances(table.kernel, other)


def test_no_shared_distances_where_nobody_reads_them() -> None:
    x = phi()
    assert shared_distances(LMCKernel([LinearKernel()], 2).double(), x) is None
    found = shared_distances(LMCKernel([ReferenceMaternKernel()], 2).double(), x)
    assert found is not None
    assert torch.equal(found, squared_distances(ReferenceScoreKernel(), x))


def test_buckets_that_coincide_are_fully_correlated_within_a_latent() -> None:
    x = phi()[[0, 1, 2, 2, 4, 5]]
    kernel = varied(LMCKernel(default_latents(2), 2))
    table = LMCTable(kernel, x)
    assert torch.equal(table.row(2), table.row(3))


def test_new_hyperparameters_count_after_refresh_and_not_before() -> None:
    x, kernel = phi(), varied(LMCKernel([*default_latents(2), RBFKernel()], 2))
    table, rows = LMCTable(kernel, x), pairs(x, 2)
    with torch.no_grad():
        old = kernel(rows).to_dense()
        kernel.task_weights.mul_(1.5).add_(0.1)
        kernel.latents[0].alpha, kernel.latents[1].beta = 3.0, 0.2
        kernel.latents[2].lengthscale = 2.0
        check_all_views(table, old)
        table.refresh()
        check_all_views(table, kernel(rows).to_dense())


def test_kernel_with_a_formula_of_its_own_is_refused() -> None:
    class Shifted(LMCKernel):
        def forward(self, x1: Tensor, x2: Tensor, **params: bool) -> Tensor:
            return super().forward(x1, x2, **params) + 1.0

    kernel = Shifted(default_latents(2), 2).double()
    with pytest.raises(ValueError, match="Shifted"):
        LMCTable(kernel, torch.rand(3, 2, dtype=torch.float64))
