from __future__ import annotations

import pytest
import torch
from lmc_objectives import at_present, fused, kinds, likelihood, literal, setting
from lmc_oracles import correlation, varied

from gp_eval.errors import NotPositiveDefiniteError
from gp_eval.kernels import LMCKernel, default_latents
from gp_eval.linalg.kernel_table import squared_distances
from gp_eval.optim import PairScores, make_lmc_objective
from gp_eval.optim.lmc_objective import AutogradLMCObjective, ClosedFormLMCObjective

SIZES = [(1, 1), (3, 1), (1, 3), (3, 3), (4, 5), (5, 2)]  # T, L


def test_the_literal_formula_is_the_one_by_loops() -> None:
    data, noise = setting(2, n=6), 0.3
    values = torch.tensor(
        [0.5, -1.2, 0.8, 0.4, 0.7, 1.3, 0.2, 2.0, noise], dtype=torch.float64
    )
    weights = [[0.5, -1.2], [0.8, 0.4]]
    gram = torch.zeros(6, 6, dtype=torch.float64)
    for i in range(6):
        for j in range(6):
            a, b = data.phi[data.bucket[i]], data.phi[data.bucket[j]]
            for w, kind, alpha, beta in zip(
                weights, ("se", "matern"), (0.7, 0.2), (1.3, 2.0), strict=True
            ):
                both = w[int(data.target[i])] * w[int(data.target[j])]
                gram[i, j] += both * alpha * correlation(kind, a, b, beta)
        gram[i, i] += noise * data.counts[data.bucket[i]]
    r = data.score - data.mean[data.bucket]
    expected = 0.5 * (r @ torch.linalg.inv(gram) @ r + torch.logdet(gram))
    torch.testing.assert_close(
        literal(data, values, ["se", "matern"]), expected, rtol=1e-10, atol=0
    )


@pytest.mark.parametrize(("n_targets", "n_latents"), SIZES)
@pytest.mark.parametrize("block", [1, 300, 1 << 16])
def test_closed_form_is_the_item_level_likelihood_and_its_gradient(
    n_targets: int, n_latents: int, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gp_eval.optim.lmc_gram._BLOCK", block)
    data = setting(n_targets)
    made = make_lmc_objective(
        fused(n_targets, n_latents), likelihood(), data.phi, data.pairs
    )
    assert isinstance(made, ClosedFormLMCObjective)
    assert (data.pairs.residual.shape[0] > made.gram._height) is (block < 1000)
    point = at_present(made).requires_grad_()
    expected = literal(data, point, kinds(n_latents))
    (slope,) = torch.autograd.grad(expected, point)
    for _ in range(2):  # memory is used again
        value, gradient = made(point.detach())
        torch.testing.assert_close(value, expected.detach(), rtol=1e-10, atol=0)
        torch.testing.assert_close(gradient, slope, rtol=1e-9, atol=1e-10)


def test_many_blocks_at_the_size_that_is_shipped() -> None:
    """Heights 65536 // m: for m = 300 it takes two, and the last one is ragged."""
    data = setting(5, n=400, size=200, k=6)
    made = make_lmc_objective(fused(5, 5), likelihood(), data.phi, data.pairs)
    size = data.pairs.residual.shape[0]
    assert isinstance(made, ClosedFormLMCObjective)
    assert size > made.gram._height
    assert size % made.gram._height
    point = at_present(made).requires_grad_()
    expected = literal(data, point, kinds(5))
    (slope,) = torch.autograd.grad(expected, point)
    value, gradient = made(point.detach())
    torch.testing.assert_close(value, expected.detach(), rtol=1e-10, atol=0)
    torch.testing.assert_close(gradient, slope, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(("n_targets", "n_latents"), SIZES)
def test_closed_form_equals_autograd(n_targets: int, n_latents: int) -> None:
    data = setting(n_targets)
    kernel, noise = fused(n_targets, n_latents), likelihood()
    closed = ClosedFormLMCObjective(kernel, noise, data.phi, data.pairs)
    auto = AutogradLMCObjective(kernel, noise, data.phi, data.pairs)
    names = [entry[0] for entry in closed.parameters()]
    assert names == [entry[0] for entry in auto.parameters()]
    assert len(names) == 1 + 2 * n_latents + 1
    generator = torch.Generator().manual_seed(0)
    start = at_present(closed)
    for scale in (0.0, 0.3, 1.0):
        factor = torch.exp(scale * torch.randn(start.shape, generator=generator))
        point = start * factor
        value, gradient = closed(point)
        other, slope = auto(point)
        torch.testing.assert_close(value, other, rtol=1e-10, atol=0)
        torch.testing.assert_close(gradient, slope, rtol=1e-10, atol=1e-10)


def test_closed_form_of_latents_that_share_their_weights_equals_autograd() -> None:
    data = setting(3)
    weights = torch.tensor([0.2, 1.8, 0.5, 1.5], dtype=torch.float64)
    kernel = varied(LMCKernel(default_latents(3, weights=weights), 3))
    noise = likelihood()
    closed = make_lmc_objective(kernel, noise, data.phi, data.pairs)
    assert isinstance(closed, ClosedFormLMCObjective)
    auto = AutogradLMCObjective(kernel, noise, data.phi, data.pairs)
    value, gradient = closed(at_present(closed))
    other, slope = auto(at_present(closed))
    torch.testing.assert_close(value, other, rtol=1e-10, atol=0)
    torch.testing.assert_close(gradient, slope, rtol=1e-10, atol=1e-10)
    plain = make_lmc_objective(
        varied(LMCKernel(default_latents(3), 3)), noise, data.phi, data.pairs
    )
    assert abs(float(plain(at_present(closed))[0] - value)) > 1e-3


def test_closed_form_gradient_by_finite_differences() -> None:
    data = setting(3)
    made = make_lmc_objective(fused(3, 3), likelihood(), data.phi, data.pairs)
    point = at_present(made)
    _, gradient = made(point)
    for i in range(point.shape[0]):
        step = torch.zeros_like(point)
        step[i] = 1e-6
        slope = (made(point + step)[0] - made(point - step)[0]) / 2e-6
        # Central differences have an error of about 1e-8 at this step.
        assert float(gradient[i]) == pytest.approx(float(slope), rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("noise", [1e-3, 1e-2, 0.1, 1.0, 4.0])
@pytest.mark.parametrize("kind", [ClosedFormLMCObjective, AutogradLMCObjective])
def test_is_the_likelihood_of_items_at_every_sigma2(kind: type, noise: float) -> None:
    """By bucket, Eq. (11) misses terms that matter as soon as sigma^2 is learned."""
    data = setting(3, size=10)
    assert data.pairs.repeats.item() > 5
    made = kind(fused(3, 3), likelihood(noise), data.phi, data.pairs)
    point = at_present(made)
    value, gradient = made(point)
    point.requires_grad_()
    expected = literal(data, point, kinds(3))
    (slope,) = torch.autograd.grad(expected, point)
    torch.testing.assert_close(value, expected.detach(), rtol=1e-10, atol=0)
    # The item-level matrix is ill-conditioned at small sigma^2, ours is not.
    torch.testing.assert_close(gradient, slope, rtol=1e-8, atol=1e-8)


def test_given_distances_are_used() -> None:
    data, kernel = setting(2), fused(2, 2)
    table = squared_distances(kernel.latents[0], data.phi)
    plain = make_lmc_objective(kernel, likelihood(), data.phi, data.pairs)
    given = make_lmc_objective(
        kernel, likelihood(), data.phi, data.pairs, distances=table
    )
    point = at_present(plain)
    assert torch.equal(plain(point)[1], given(point)[1])
    doubled = make_lmc_objective(
        kernel, likelihood(), data.phi, data.pairs, distances=2 * table
    )
    assert not torch.equal(plain(point)[0], doubled(point)[0])


def test_the_closed_form_leaves_the_parameters_alone() -> None:
    data, kernel = setting(2), fused(2, 2)
    made = make_lmc_objective(kernel, likelihood(), data.phi, data.pairs)
    before = at_present(made)
    made(before * 2.0)
    assert torch.equal(at_present(made), before)


def test_bounds_are_those_of_the_constraints() -> None:
    data = setting(2)
    made = make_lmc_objective(fused(2, 2), likelihood(), data.phi, data.pairs)
    low = torch.cat([entry[2].reshape(-1) for entry in made.parameters()])
    high = torch.cat([entry[3].reshape(-1) for entry in made.parameters()])
    assert low.tolist() == [-torch.inf] * 4 + [1e-4] * 4 + [1e-4]
    assert bool(high.isinf().all())


@pytest.mark.parametrize("block", [1, 1 << 16])
def test_no_factor_is_an_error_with_the_eigenvalues_of_the_covariance(
    block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half of the memory is never written; the error must not read it."""
    monkeypatch.setattr("gp_eval.optim.lmc_gram._BLOCK", block)
    data = setting(3)
    made = make_lmc_objective(fused(3, 3), likelihood(), data.phi, data.pairs)
    assert isinstance(made, ClosedFormLMCObjective)
    made.gram._gram.fill_(1e6)
    point = at_present(made)
    point[-1] = -0.5
    pairs = data.pairs
    upper = made.gram.covariance(
        point[:9].view(3, 3), *point[9:-1].view(-1, 2).T
    ).triu()
    gram = upper + upper.triu(1).T + torch.diag(-0.5 * pairs.noise_scale)
    lowest, highest = torch.linalg.eigvalsh(gram)[[0, -1]].tolist()
    assert lowest < 0
    with pytest.raises(
        NotPositiveDefiniteError,
        match=f"evaluated pairs: .* from {lowest:.3g} to {highest:.3g}",
    ):
        made(point)
    point[-1] = 0.07  # and the next evaluation is right again
    expected = literal(data, point, kinds(3))
    torch.testing.assert_close(made(point)[0], expected, rtol=1e-10, atol=0)


@pytest.mark.parametrize("kind", [ClosedFormLMCObjective, AutogradLMCObjective])
@pytest.mark.parametrize("place", [0, 10, -1])
def test_nan_is_an_error_and_not_a_value(kind: type, place: int) -> None:
    data = setting(3)
    made = kind(fused(3, 3), likelihood(), data.phi, data.pairs)
    point = at_present(made)
    point[place] = torch.nan
    with pytest.raises(NotPositiveDefiniteError, match="not finite"):
        made(point)


@pytest.mark.parametrize("kind", [ClosedFormLMCObjective, AutogradLMCObjective])
def test_one_score_alone(kind: type) -> None:
    data = setting(2, n=1)
    made = kind(fused(2, 3), likelihood(), data.phi, data.pairs)
    point = at_present(made)
    value, gradient = made(point)
    point.requires_grad_()
    expected = literal(data, point, kinds(3))
    (slope,) = torch.autograd.grad(expected, point)
    torch.testing.assert_close(value, expected.detach(), rtol=1e-10, atol=1e-12)
    torch.testing.assert_close(gradient, slope, rtol=1e-9, atol=1e-12)


def test_a_target_without_scores_has_no_slope_in_its_weights() -> None:
    data, kernel = setting(2), fused(3, 2)
    made = make_lmc_objective(kernel, likelihood(), data.phi, data.pairs)
    point = at_present(made)
    _, gradient = made(point)
    weights = gradient[:6].view(2, 3)
    assert bool((weights[:, 2] == 0).all())
    assert bool((weights[:, :2] != 0).all())


def test_single_precision_in_one_block_agrees_with_double() -> None:
    """Elsewhere than in float64 on a CPU all of the matrix is read, not a triangle."""
    data = setting(4, n=700, size=300)
    double = make_lmc_objective(fused(4, 2), likelihood(), data.phi, data.pairs)
    scores = data.pairs
    single = make_lmc_objective(
        fused(4, 2).float(),
        likelihood().float(),
        data.phi.float(),
        PairScores(
            **{
                name: value.float() if value.is_floating_point() else value
                for name, value in vars(scores).items()
            }
        ),
    )
    point = at_present(double)
    value, gradient = double(point)
    rough, slope = single(point.float())
    torch.testing.assert_close(rough.double(), value, rtol=1e-4, atol=1e-2)
    # float32 has 7 digits and the gradient is a difference of large terms.
    torch.testing.assert_close(
        slope.double(), gradient, rtol=1e-2, atol=1e-3 * float(gradient.abs().max())
    )
