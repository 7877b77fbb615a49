from __future__ import annotations

import math

import gpytorch
import pytest
import torch
from gpytorch.kernels import Kernel, LinearKernel, RBFKernel
from lmc_oracles import (
    custom_latents,
    lmc_by_loops,
    parameters_of,
    random_rows,
    varied,
)
from torch import Tensor

from gp_eval.kernels import (
    LMCKernel,
    RankOneIndexKernel,
    ReferenceMaternKernel,
    ReferenceScoreKernel,
    default_latents,
    hadamard_lmc,
)
from gp_eval.settings import exact_inference

CLOSE = {"rtol": 1e-12, "atol": 1e-12}
SIZES = [(1, 1), (3, 1), (1, 3), (3, 3), (5, 2), (2, 5)]  # T, L


def fused(n_targets: int, n_latents: int) -> LMCKernel:
    return varied(LMCKernel(default_latents(n_latents), n_targets))


def hadamard(kernel: LMCKernel, latents: list[Kernel], k: int = 4) -> Kernel:
    """The sum of products with the fused kernel's parameters."""
    made = hadamard_lmc(latents, kernel.num_tasks, k).double()
    with torch.no_grad():
        for term, ours, w in zip(
            made.kernels, kernel.latents, kernel.task_weights, strict=True
        ):
            latent, index = term.kernels
            latent.load_state_dict(ours.state_dict(), strict=False)
            index.covar_factor.copy_(w.unsqueeze(-1))
    return made


def lcm_of_gpytorch(kernel: LMCKernel, latents: list[Kernel], phi: Tensor) -> Tensor:
    """GPyTorch's own on the full grid, target by target."""
    n, n_targets = phi.shape[0], kernel.num_tasks
    made = gpytorch.kernels.LCMKernel(latents, num_tasks=n_targets, rank=1).double()
    with torch.no_grad():
        for module, ours, w in zip(
            made.covar_module_list, kernel.latents, kernel.task_weights, strict=True
        ):
            module.data_covar_module.load_state_dict(ours.state_dict())
            module.task_covar_module.covar_factor.copy_(w.unsqueeze(-1))
            module.task_covar_module.raw_var.requires_grad_(False).fill_(-math.inf)
        interleaved = made(phi).to_dense()  # item by item
    blocks = interleaved.view(n, n_targets, n, n_targets)
    return blocks.permute(1, 0, 3, 2).reshape(n * n_targets, n * n_targets)


def grid(n_targets: int, phi: Tensor) -> Tensor:
    """All rows ``[phi, count, target]``, target by target."""
    n = phi.shape[0]
    target = torch.arange(n_targets).repeat_interleave(n).double()
    count = torch.arange(1, n + 1).repeat(n_targets).double()
    return torch.cat([phi.repeat(n_targets, 1), count[:, None], target[:, None]], -1)


def scores(n: int, k: int = 4, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.rand(n, k, generator=generator, dtype=torch.float64)


@pytest.mark.parametrize(("n_targets", "n_latents"), SIZES)
def test_four_ways_agree_with_the_kronecker_formula_on_the_full_grid(
    n_targets: int, n_latents: int
) -> None:
    phi, kernel = scores(6), fused(n_targets, n_latents)
    rows = grid(n_targets, phi)
    with torch.no_grad(), exact_inference():
        kronecker = sum(
            torch.kron(torch.outer(w, w), latent(phi).to_dense())
            for w, latent in zip(kernel.task_weights, kernel.latents, strict=True)
        )
        loops = lmc_by_loops(rows, rows, kernel.task_weights, parameters_of(kernel))
        theirs = lcm_of_gpytorch(kernel, default_latents(n_latents), phi)
        products = hadamard(kernel, default_latents(n_latents))(rows).to_dense()
        ours = kernel(rows).to_dense()
    for got in (loops, theirs, products, ours):
        torch.testing.assert_close(got, kronecker, **CLOSE)


@pytest.mark.parametrize(("n_targets", "n_latents"), [*SIZES, (20, 20), (20, 3)])
def test_three_ways_agree_on_ragged_rows_and_cross_blocks(
    n_targets: int, n_latents: int
) -> None:
    kernel = fused(n_targets, n_latents)
    products = hadamard(kernel, default_latents(n_latents))
    rows, other = random_rows(n_targets), random_rows(n_targets, size=6, seed=1)
    same = random_rows(n_targets, seed=2)
    with torch.no_grad(), exact_inference():
        for left, right in ((rows, rows), (rows, other), (other, rows)):
            loops = lmc_by_loops(
                left, right, kernel.task_weights, parameters_of(kernel)
            )
            torch.testing.assert_close(kernel(left, right).to_dense(), loops, **CLOSE)
            torch.testing.assert_close(products(left, right).to_dense(), loops, **CLOSE)
        for right in (rows, same):
            loops = lmc_by_loops(
                rows, right, kernel.task_weights, parameters_of(kernel)
            ).diagonal()
            torch.testing.assert_close(kernel(rows, right, diag=True), loops, **CLOSE)
            torch.testing.assert_close(products(rows, right, diag=True), loops, **CLOSE)


def test_one_target_and_one_latent_is_the_latent_scaled() -> None:
    kernel = LMCKernel([ReferenceScoreKernel()], 1).double()
    kernel.initialize(task_weights=torch.full((1, 1), -1.5, dtype=torch.float64))
    rows = random_rows(1)
    torch.testing.assert_close(
        kernel(rows).to_dense(), 2.25 * kernel.latents[0](rows[:, :4]).to_dense()
    )


def test_any_list_of_kernels_in_all_forms_and_with_items_of_one_bucket() -> None:
    kernel = varied(LMCKernel(custom_latents(), 3))
    rows = random_rows(3)
    phi, target = rows[:, :4], rows[:, -1].long()
    with torch.no_grad(), exact_inference():
        expected = torch.zeros(9, 9, dtype=torch.float64)
        for w, latent in zip(kernel.task_weights, custom_latents(), strict=True):
            # Entry by entry, so that nothing lazy is added to anything.
            table = torch.tensor(
                [
                    [latent.double()(a[None], b[None]).to_dense().item() for b in phi]
                    for a in phi
                ],
                dtype=torch.float64,
            )
            expected += torch.outer(w[target], w[target]) * table
        torch.testing.assert_close(kernel(rows).to_dense(), expected, **CLOSE)
        torch.testing.assert_close(
            kernel(rows, diag=True), expected.diagonal(), **CLOSE
        )
        torch.testing.assert_close(
            kernel(rows, rows[:4]).to_dense(), expected[:, :4], **CLOSE
        )
        # In cross blocks GPyTorch's sums need no factor, whatever the rows.
        products = hadamard(kernel, custom_latents())
        torch.testing.assert_close(
            products(rows, rows[:4]).to_dense(), expected[:, :4], **CLOSE
        )


def test_product_latents_never_see_counts_or_targets() -> None:
    """``product * index`` would take the product apart, and its active_dims."""
    rows = random_rows(3)
    made = hadamard_lmc([RBFKernel() * RBFKernel()], 3, 4).double()
    changed = rows.clone()
    changed[:, 4] += 3.0
    assert torch.equal(made(rows).to_dense(), made(changed).to_dense())


def test_the_count_is_not_read() -> None:
    kernel, rows = fused(3, 3), random_rows(3)
    changed = rows.clone()
    changed[:, -2] = torch.nan
    assert torch.equal(kernel(rows).to_dense(), kernel(changed).to_dense())


def test_batches_of_rows() -> None:
    kernel = fused(3, 2)
    rows = torch.stack([random_rows(3, seed=s) for s in range(4)])
    other = torch.stack([random_rows(3, size=5, seed=s) for s in range(4, 8)])
    got = kernel(rows, other).to_dense()
    variances = kernel(rows, diag=True)
    assert got.shape == (4, 9, 5)
    for i in range(4):
        torch.testing.assert_close(
            got[i], kernel(rows[i], other[i]).to_dense(), **CLOSE
        )
        torch.testing.assert_close(
            variances[i], kernel(rows[i]).to_dense().diagonal(), **CLOSE
        )


def test_covariance_has_no_negative_eigenvalues() -> None:
    rows = random_rows(4, size=40)
    lowest = torch.linalg.eigvalsh(fused(4, 3)(rows).to_dense().detach()).min()
    assert float(lowest) > -1e-12


def test_signs_and_a_common_scale_of_weights_are_free() -> None:
    kernel, rows = fused(3, 2), random_rows(3)
    before = kernel(rows).to_dense()
    with torch.no_grad():
        kernel.task_weights[0].mul_(-2.0)
        kernel.latents[0].alpha = kernel.latents[0].alpha / 4.0
    torch.testing.assert_close(kernel(rows).to_dense(), before, **CLOSE)


def test_gradients_of_all_parameters_by_finite_differences() -> None:
    kernel, rows = fused(2, 2), random_rows(2, size=5)
    names, values = zip(*kernel.named_parameters(), strict=True)

    def total(*at: Tensor) -> Tensor:
        parameters = dict(zip(names, at, strict=True))
        return torch.func.functional_call(kernel, parameters, (rows, rows)).to_dense()

    point = [value.detach().clone().requires_grad_() for value in values]
    assert torch.autograd.gradcheck(total, point)


@pytest.mark.parametrize("form", ["fused", "hadamard"])
def test_state_dict_round_trip(form: str) -> None:
    def make(seed: int) -> Kernel:
        kernel = varied(LMCKernel(default_latents(3), 3), seed=seed)
        return kernel if form == "fused" else hadamard(kernel, default_latents(3))

    saved, loaded, rows = make(0), make(1), random_rows(3)
    with torch.no_grad():
        for parameter in saved.parameters():
            if parameter.isfinite().all():
                parameter.add_(0.25)
    assert not torch.allclose(saved(rows).to_dense(), loaded(rows).to_dense())
    loaded.load_state_dict(saved.state_dict())
    assert torch.equal(saved(rows).to_dense(), loaded(rows).to_dense())


def test_rank_one_index_kernel_has_one_weight_a_target_and_nothing_else() -> None:
    index = RankOneIndexKernel(7, generator=torch.Generator().manual_seed(3)).double()
    trainable = [p for p in index.parameters() if p.requires_grad]
    assert sum(p.numel() for p in trainable) == 7
    w = index.weights.detach()
    assert w.shape == (7,)
    assert bool((w != 0).all())
    tasks = torch.arange(7)
    torch.testing.assert_close(
        index(tasks).to_dense(), torch.outer(w, w), rtol=1e-15, atol=0
    )
    index(tasks).to_dense().sum().backward()
    assert bool(index.covar_factor.grad.isfinite().all())
    assert index.raw_var.grad is None


def test_ten_targets_have_120_free_parameters_in_the_hadamard_form_too() -> None:
    """10 alpha, 10 beta and 10 x 10 weights; the noise is the likelihood's."""
    for made in (
        LMCKernel(default_latents(10), 10),
        hadamard_lmc(default_latents(10), 10, 4),
    ):
        sizes = [p.numel() for p in made.parameters() if p.requires_grad]
        assert sum(sizes) == 120


def test_construction_leaves_the_global_generator_alone() -> None:
    torch.manual_seed(11)
    before = torch.random.get_rng_state()
    LMCKernel(default_latents(3), 3)
    hadamard_lmc(default_latents(3), 3, 4)
    RankOneIndexKernel(3)
    RankOneIndexKernel(3, generator=torch.Generator().manual_seed(1))
    assert torch.equal(torch.random.get_rng_state(), before)


def test_initial_weights_are_those_of_the_generator() -> None:
    def weights(seed: int | None) -> Tensor:
        generator = None if seed is None else torch.Generator().manual_seed(seed)
        return LMCKernel(default_latents(2), 3, generator=generator).task_weights

    assert torch.equal(weights(None), weights(0))
    assert torch.equal(weights(4), weights(4))
    assert not torch.equal(weights(4), weights(5))
    products = hadamard_lmc(default_latents(2), 3, 4)
    rows = [term.kernels[1].weights for term in products.kernels]
    assert torch.equal(torch.stack(rows), weights(None))


def test_initial_weights_have_variance_one_hundredth() -> None:
    """The paper's N(0, 0.01) states a variance."""
    draws = LMCKernel(default_latents(100), 100).task_weights.detach()
    # 10^4 draws: relative standard error of the deviation 1 / sqrt(2 * 10^4) = 0.7 %.
    assert float(draws.std()) == pytest.approx(0.1, rel=0.03)
    assert abs(float(draws.mean())) < 0.004


@pytest.mark.parametrize(("n", "smooth"), [(1, 1), (2, 1), (5, 3), (10, 5)])
def test_default_latents_are_half_and_half_with_the_bounds_of_a_4(
    n: int, smooth: int
) -> None:
    made = default_latents(n)
    kinds = [type(latent) for latent in made]
    assert kinds.count(ReferenceScoreKernel) == smooth
    assert kinds.count(ReferenceMaternKernel) == n - smooth
    for latent in made:
        assert latent.alpha.item() == latent.beta.item() == 1.0
        for constraint in latent.constraints():
            assert constraint.lower_bound.item() == pytest.approx(1e-4)
            assert not constraint.enforced


def test_errors_name_the_argument() -> None:
    with pytest.raises(ValueError, match="expected at least one of each, got 0 and 2"):
        LMCKernel([], 2)
    with pytest.raises(ValueError, match="expected at least one of each, got 1 and 0"):
        LMCKernel([RBFKernel()], 0)
    once = LinearKernel()
    with pytest.raises(ValueError, match="latents: the same kernel object"):
        LMCKernel([once, once], 2)
    with pytest.raises(ValueError, match="latents: expected no active_dims"):
        hadamard_lmc([RBFKernel(active_dims=(0,))], 2, 4)
    rows = random_rows(2)
    with pytest.raises(RuntimeError, match="last_dim_is_batch"):
        fused(2, 2).forward(rows, rows, last_dim_is_batch=True)
