from __future__ import annotations

import pytest
import torch
from gpytorch.constraints import GreaterThan
from gpytorch.kernels import (
    Kernel,
    LinearKernel,
    MaternKernel,
    RBFKernel,
    ScaleKernel,
)
from gpytorch.priors import GammaPrior
from oracles import covariance_by_loops

from gp_eval.kernels import ReferenceMaternKernel, ReferenceScoreKernel
from gp_eval.linalg import DenseKernelTable, ReferenceKernelTable, make_kernel_table
from gp_eval.linalg.kernel_table import (
    dense_covariance,
    has_closed_form,
    is_reference_kernel,
    squared_distances,
)


def phi(size: int = 11, n_references: int = 4) -> torch.Tensor:
    generator = torch.Generator().manual_seed(3)
    return torch.rand(size, n_references, generator=generator, dtype=torch.float64)


def reference_kernel(**options) -> ReferenceScoreKernel:
    made = ReferenceScoreKernel(**options).double()
    made.alpha, made.beta = 0.6, 3.1
    return made


@pytest.mark.parametrize("kind", [DenseKernelTable, ReferenceKernelTable])
def test_all_views_are_equation_1(kind: type) -> None:
    x = phi()
    expected = covariance_by_loops(x, 0.6, 3.1)
    table = kind(reference_kernel(), x)
    rows, columns = torch.tensor([4, 0, 4]), torch.tensor([1, 10])
    vector = torch.rand(11, dtype=torch.float64)
    close = {"rtol": 1e-12, "atol": 1e-14}
    torch.testing.assert_close(table.row(7), expected[7], **close)
    torch.testing.assert_close(table.diagonal(), expected.diagonal(), **close)
    torch.testing.assert_close(table.matvec(vector), expected @ vector, **close)
    torch.testing.assert_close(
        table.block(rows, columns), expected[rows][:, columns], **close
    )
    torch.testing.assert_close(
        table.block(rows, slice(2, 9)), expected[rows][:, 2:9], **close
    )


@pytest.mark.parametrize("kind", [DenseKernelTable, ReferenceKernelTable])
def test_new_hyperparameters_count_after_refresh(kind: type) -> None:
    x, kernel = phi(), reference_kernel()
    table = kind(kernel, x)
    kernel.alpha, kernel.beta = 0.2, 0.5
    table.refresh()
    torch.testing.assert_close(table.row(2), covariance_by_loops(x, 0.2, 0.5)[2])


def test_weights_of_references() -> None:
    x, w = phi(), torch.tensor([0.1, 0.0, 0.6, 0.3], dtype=torch.float64)
    kernel = reference_kernel(weights=w)
    everything = torch.arange(11)
    torch.testing.assert_close(
        ReferenceKernelTable(kernel, x).block(everything, everything),
        DenseKernelTable(kernel, x).block(everything, everything),
        rtol=1e-12,
        atol=1e-14,
    )


def ours(**options) -> ReferenceScoreKernel | ReferenceMaternKernel:
    family = options.pop("family", ReferenceScoreKernel)
    made = family(**options).double()
    made.alpha, made.beta = 0.6, 3.1
    return made


@pytest.mark.parametrize(
    ("kernel", "lean", "closed_form"),
    [
        (ours(), True, True),
        (ours(family=ReferenceMaternKernel), True, True),
        (ours(weights=torch.ones(4)), True, True),
        (ours(alpha_prior=GammaPrior(2.0, 2.0)), True, False),
        (ours(beta_constraint=GreaterThan(0.5)), True, False),
        (ours(beta_constraint=GreaterThan(0.5, transform=None)), True, True),
        (ReferenceScoreKernel(active_dims=(0, 1)), False, False),
        (ReferenceMaternKernel(active_dims=(0, 1)), False, False),
        (ScaleKernel(MaternKernel(nu=1.5)), False, False),
    ],
)
def test_lean_table_for_our_kernels_and_closed_form_without_priors_or_transforms(
    kernel: Kernel, lean: bool, closed_form: bool
) -> None:
    table = make_kernel_table(kernel.double(), phi())
    assert isinstance(table, ReferenceKernelTable) is lean
    assert is_reference_kernel(kernel) is lean
    assert has_closed_form(kernel) is closed_form


@pytest.mark.parametrize("shape", [(1,), (2,)])
def test_batched_kernels_are_neither(shape: tuple[int, ...]) -> None:
    batched = ReferenceMaternKernel(batch_shape=torch.Size(shape)).double()
    assert not is_reference_kernel(batched)
    assert not has_closed_form(batched)


@pytest.mark.parametrize(
    "options",
    [
        {"family": ReferenceMaternKernel},
        {"family": ReferenceMaternKernel, "weights": torch.tensor([0.2, 0.0, 1, 2])},
        {"alpha_prior": GammaPrior(2.0, 2.0)},
        {"beta_constraint": GreaterThan(0.5)},
    ],
)
@pytest.mark.parametrize("shared", [False, True])
def test_lean_table_of_all_our_kernels_equals_the_dense_one(
    options: dict, shared: bool
) -> None:
    x, kernel = phi()[[0, 1, 2, 2, 4, 5, 6, 7, 8, 9, 10]], ours(**options)
    given = squared_distances(kernel, x) if shared else None
    lean = make_kernel_table(kernel, x, distances=given)
    assert isinstance(lean, ReferenceKernelTable)
    dense = DenseKernelTable(kernel, x)
    rows, columns = torch.tensor([4, 0, 3]), torch.tensor([2, 10])
    vectors = torch.rand(11, 3, dtype=torch.float64)
    for view in (
        lambda table: table.row(3),
        lambda table: table.diagonal(),
        lambda table: table.matvec(vectors),
        lambda table: table.matvec(vectors[:, 0]),
        lambda table: table.block(rows, columns),
        lambda table: table.block(rows, slice(2, 9)),
    ):
        torch.testing.assert_close(view(lean), view(dense), rtol=1e-12, atol=1e-14)


def test_active_dims_of_a_sum_are_kept() -> None:
    total = ScaleKernel(RBFKernel() + LinearKernel()).double()
    total.active_dims = torch.tensor([1, 3])
    bare = ScaleKernel(RBFKernel() + LinearKernel()).double()
    torch.testing.assert_close(
        dense_covariance(total, phi()), dense_covariance(bare, phi()[:, [1, 3]])
    )
    inner = (RBFKernel() + LinearKernel()).double()
    inner.active_dims = torch.tensor([1, 3])
    torch.testing.assert_close(
        dense_covariance(inner, phi()),
        dense_covariance((RBFKernel() + LinearKernel()).double(), phi()[:, [1, 3]]),
    )


@pytest.mark.parametrize("scaled", [False, True])
def test_sums_with_low_rank_terms_need_no_factor_of_the_other_term(
    scaled: bool,
) -> None:
    x = phi()[[0, 0, 3, 3, 5, 6]]
    stationary, linear = MaternKernel(nu=1.5).double(), LinearKernel().double()
    total = stationary + linear
    got = dense_covariance(ScaleKernel(total).double() if scaled else total, x)
    scale = float(ScaleKernel(total).outputscale.detach()) if scaled else 1.0
    expected = scale * (stationary(x).to_dense() + linear(x).to_dense())
    torch.testing.assert_close(got, expected.to(got))


def test_products_of_any_kernels() -> None:
    x = phi()[[0, 0, 3, 3, 5, 6]]
    stationary, linear = MaternKernel(nu=1.5).double(), LinearKernel().double()
    got = dense_covariance(stationary * linear, x)
    torch.testing.assert_close(got, stationary(x).to_dense() * linear(x).to_dense())


def test_kernel_of_another_shape_is_refused() -> None:
    batched = ReferenceScoreKernel(batch_shape=torch.Size([2])).double()
    with pytest.raises(ValueError, match="covar_module: expected a 11 x 11"):
        make_kernel_table(batched, phi())


def test_distances_of_nearly_equal_rows_keep_their_digits() -> None:
    """The quadratic expansion, |a|^2 + |b|^2 - 2ab, would lose all of them."""
    x = phi(2)
    x[1] = x[0] + 1e-9
    made = ReferenceKernelTable(reference_kernel(), x)
    assert float(made.distances[0, 1]) == pytest.approx(4e-18, rel=1e-6)
