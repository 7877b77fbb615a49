from __future__ import annotations

import math

import pytest
import torch
from botorch.fit import fit_gpytorch_mll
from botorch.models.model import Model
from botorch.optim.fit import fit_gpytorch_mll_torch
from gpytorch.constraints import GreaterThan
from gpytorch.kernels import IndexKernel
from gpytorch.mlls import ExactMarginalLogLikelihood
from gpytorch.models import ExactGP
from lmc_oracles import custom_latents, lmc_by_loops, parameters_of, varied
from oracles import Problem, make_problem
from torch import Tensor

from gp_eval.kernels import LMCKernel, default_latents, hadamard_lmc
from gp_eval.likelihoods import BucketGaussianLikelihood
from gp_eval.models import BucketGP, MultiTargetGP, multi_target_inputs
from gp_eval.settings import exact_inference

CLOSE = {"rtol": 1e-10, "atol": 1e-12}
T = 3
SIGMA2 = 0.03

Coresets = dict[int, list[int]]

RAGGED: Coresets = {0: [1, 4, 2, 9, 12, 3], 1: [4, 0], 2: [5, 6, 2, 13]}
WITHOUT_ONE: Coresets = {0: [1, 4, 2, 9], 1: [], 2: [4, 0, 7]}
DISJOINT: Coresets = {0: [0, 1, 2], 1: [3, 4, 5, 6], 2: [7, 8]}
SAME: Coresets = {t: [1, 4, 2, 9] for t in range(T)}
ALL: Coresets = {t: list(range(14)) for t in range(T)}


def item_scores(problem: Problem) -> Tensor:
    """Scores ``T x N``."""
    generator = torch.Generator().manual_seed(8)
    return torch.rand(T, problem.n_items, generator=generator, dtype=torch.float64)


def observed(coresets: Coresets) -> tuple[Tensor, Tensor]:
    """Target and item of each score."""
    found = [(t, i) for t, items in coresets.items() for i in items]
    target, item = torch.tensor(found).T
    return target, item


def make(problem: Problem, coresets: Coresets, **options) -> MultiTargetGP:
    target, item = observed(coresets)
    rows = multi_target_inputs(problem.buckets, T)
    model = MultiTargetGP(
        rows[target, problem.buckets.item_bucket[item]],
        item_scores(problem)[target, item].unsqueeze(-1),
        n_targets=T,
        **options,
    )
    model.likelihood.noise = SIGMA2
    if "covar_module" not in options:
        varied(model.covar_module)
    return model


def brute_force(
    problem: Problem, coresets: Coresets, abilities: Tensor
) -> tuple[Tensor, Tensor]:
    """Joint Gaussian of ``T B`` abilities, given the scores of items, as printed.

    ``abilities`` is their prior covariance, pair ``t * B + b``.
    """
    buckets, target_item = problem.buckets, observed(coresets)
    n_buckets = buckets.n_buckets
    h = torch.zeros(target_item[0].shape[0], T * n_buckets, dtype=torch.float64)
    noise = torch.zeros(h.shape[0], dtype=torch.float64)
    scores = torch.zeros(h.shape[0], dtype=torch.float64)
    sizes = problem.indicator.sum(0)
    for row, (t, i) in enumerate(zip(*target_item, strict=True)):
        b = int(buckets.item_bucket[i])
        h[row, int(t) * n_buckets + b] = 1.0
        noise[row] = SIGMA2 * sizes[b]
        scores[row] = item_scores(problem)[t, i]
    mean = buckets.phi.mean(1).repeat(T)
    middle = torch.linalg.inv(h @ abilities @ h.T + torch.diag(noise))
    gain = abilities @ h.T @ middle
    return mean + gain @ (scores - h @ mean), abilities - gain @ h @ abilities


def prior(problem: Problem, kernel: LMCKernel) -> Tensor:
    rows = multi_target_inputs(problem.buckets, T).flatten(0, 1)
    return lmc_by_loops(rows, rows, kernel.task_weights.detach(), parameters_of(kernel))


def posterior(model: MultiTargetGP, problem: Problem, **options):
    rows = multi_target_inputs(problem.buckets, T).flatten(0, 1)
    with torch.no_grad(), exact_inference():
        return model.posterior(rows, **options)


def test_inputs_are_the_bucket_rows_of_each_target(problem: Problem) -> None:
    buckets = problem.buckets
    rows = multi_target_inputs(buckets, T)
    assert rows.shape == (T, buckets.n_buckets, buckets.phi.shape[1] + 2)
    for t in range(T):
        assert torch.equal(rows[t, :, :-2], buckets.phi)
        assert torch.equal(rows[t, :, -2], buckets.counts)
        assert bool((rows[t, :, -1] == t).all())


def test_is_an_exact_gp_and_a_botorch_model(problem: Problem) -> None:
    model = make(problem, RAGGED)
    assert isinstance(model, ExactGP)
    assert isinstance(model, Model)
    assert model.num_outputs == 1
    assert model.batch_shape == torch.Size()


@pytest.mark.parametrize(
    "coresets",
    [RAGGED, WITHOUT_ONE, DISJOINT, SAME, ALL],
    ids=["ragged", "without-one", "disjoint", "same", "all"],
)
def test_posterior_is_the_joint_gaussian_of_item_scores(
    problem: Problem, coresets: Coresets
) -> None:
    model = make(problem, coresets)
    got = posterior(model, problem)
    mean, covariance = brute_force(
        problem, coresets, prior(problem, model.covar_module)
    )
    torch.testing.assert_close(got.mean.squeeze(-1), mean, **CLOSE)
    torch.testing.assert_close(got.distribution.covariance_matrix, covariance, **CLOSE)


def test_the_hadamard_form_gives_the_same_posterior(problem: Problem) -> None:
    fused = make(problem, RAGGED)
    products = hadamard_lmc(default_latents(T), T, 5).double()
    with torch.no_grad():
        for term, ours, w in zip(
            products.kernels,
            fused.covar_module.latents,
            fused.covar_module.task_weights,
            strict=True,
        ):
            term.kernels[0].alpha, term.kernels[0].beta = (
                float(ours.alpha),
                float(ours.beta),
            )
            term.kernels[1].covar_factor.copy_(w.unsqueeze(-1))
    got = posterior(make(problem, RAGGED, covar_module=products), problem)
    expected = posterior(fused, problem)
    torch.testing.assert_close(got.mean, expected.mean, **CLOSE)
    torch.testing.assert_close(
        got.distribution.covariance_matrix,
        expected.distribution.covariance_matrix,
        **CLOSE,
    )


def test_any_latents_with_items_of_one_bucket(problem: Problem) -> None:
    latents = custom_latents()[1:]  # the first has four length scales
    kernel = varied(LMCKernel(latents, T))
    rows = multi_target_inputs(problem.buckets, T).flatten(0, 1)
    got = posterior(make(problem, RAGGED, covar_module=kernel), problem)
    with torch.no_grad(), exact_inference():
        mean, covariance = brute_force(problem, RAGGED, kernel(rows).to_dense())
    torch.testing.assert_close(got.mean.squeeze(-1), mean, **CLOSE)
    torch.testing.assert_close(got.distribution.covariance_matrix, covariance, **CLOSE)


def test_one_target_and_one_latent_is_the_model_of_one_target(
    problem: Problem,
) -> None:
    buckets, coreset = problem.buckets, [1, 4, 2, 9, 12, 3]
    rows = multi_target_inputs(buckets, 1)[0]
    X, Y = rows[buckets.item_bucket[coreset]], problem.scores[coreset].unsqueeze(-1)
    joint = MultiTargetGP(X, Y, n_targets=1)
    joint.covar_module.initialize(task_weights=torch.full((1, 1), -0.5).double())
    joint.covar_module.latents[0].alpha = 1.6
    joint.covar_module.latents[0].beta = 1.7
    single = BucketGP(X[:, :-1], Y)
    single.covar_module.alpha, single.covar_module.beta = 0.4, 1.7
    for model in (joint, single):
        model.likelihood.noise = SIGMA2
    with torch.no_grad(), exact_inference():
        got, expected = joint.posterior(rows), single.posterior(rows[:, :-1])
    torch.testing.assert_close(got.mean, expected.mean, **CLOSE)
    torch.testing.assert_close(got.variance, expected.variance, **CLOSE)


def test_dropping_a_targets_rows_changes_nobodys_prior(problem: Problem) -> None:
    rows = multi_target_inputs(problem.buckets, T).flatten(0, 1)
    full, part = make(problem, RAGGED), make(problem, WITHOUT_ONE)
    with torch.no_grad(), exact_inference():
        before, after = full.forward(rows), part.forward(rows)
    assert torch.equal(before.mean, after.mean)
    assert torch.equal(before.covariance_matrix, after.covariance_matrix)
    torch.testing.assert_close(
        after.covariance_matrix, prior(problem, part.covar_module), **CLOSE
    )


def test_a_missing_row_is_not_an_observed_one(problem: Problem) -> None:
    """GPyTorch's masking gives the variances of a complete grid."""
    complete = posterior(make(problem, ALL), problem).variance.view(T, -1)
    ragged = posterior(make(problem, WITHOUT_ONE), problem).variance.view(T, -1)
    kernel = make(problem, ALL).covar_module
    free = prior(problem, kernel).diagonal().view(T, -1)
    # Bucket by bucket: fewer scores never mean less variance, here always more.
    assert bool((ragged > complete * (1 + 1e-6)).all())
    assert bool((ragged <= free * (1 + 1e-12)).all())


def test_a_target_apart_keeps_its_prior_whatever_the_others_scored(
    problem: Problem,
) -> None:
    """Weights that do not overlap make independent targets."""
    model = make(problem, WITHOUT_ONE)
    with torch.no_grad():
        model.covar_module.task_weights.copy_(torch.diag(torch.tensor([0.9, 1.1, 0.7])))
    got = posterior(model, problem)
    size = problem.buckets.n_buckets
    own = slice(size, 2 * size)
    torch.testing.assert_close(
        got.mean[own].squeeze(-1), problem.buckets.phi.mean(1), **CLOSE
    )
    torch.testing.assert_close(
        got.distribution.covariance_matrix[own, own],
        prior(problem, model.covar_module)[own, own],
        **CLOSE,
    )


def test_observation_noise_is_that_of_each_bucket(problem: Problem) -> None:
    model = make(problem, RAGGED)
    latent = posterior(model, problem).variance
    noisy = posterior(model, problem, observation_noise=True).variance
    torch.testing.assert_close(
        (noisy - latent).squeeze(-1), SIGMA2 * problem.buckets.counts.repeat(T), **CLOSE
    )


def test_conditioning_equals_training_on_all(problem: Problem) -> None:
    model = make(problem, RAGGED)
    posterior(model, problem)
    more = {1: [7, 5], 2: [0]}
    target, item = observed(more)
    rows = multi_target_inputs(problem.buckets, T)
    with torch.no_grad(), exact_inference():
        conditioned = model.condition_on_observations(
            rows[target, problem.buckets.item_bucket[item]],
            item_scores(problem)[target, item].unsqueeze(-1),
        )
    together = {t: RAGGED[t] + more.get(t, []) for t in range(T)}
    got = posterior(conditioned, problem)
    expected = posterior(make(problem, together), problem)
    torch.testing.assert_close(got.mean, expected.mean, rtol=1e-9, atol=1e-11)
    torch.testing.assert_close(got.variance, expected.variance, rtol=1e-9, atol=1e-11)


def loss(model: MultiTargetGP) -> float:
    """Negative log marginal likelihood, in nats."""
    mll = ExactMarginalLogLikelihood(model.likelihood, model).train()
    with torch.no_grad(), exact_inference():
        output = model(*model.train_inputs)
        value = mll(output, model.train_targets, *model.train_inputs)
    return -float(value) * model.train_targets.shape[0]


def test_marginal_likelihood_of_gpytorch_is_that_of_the_items(problem: Problem) -> None:
    model = make(problem, RAGGED)
    target, item = observed(RAGGED)
    place = target * problem.buckets.n_buckets + problem.buckets.item_bucket[item]
    gram = prior(problem, model.covar_module)[place][:, place]
    gram = gram + torch.diag(
        SIGMA2 * problem.buckets.counts[problem.buckets.item_bucket[item]]
    )
    residual = (
        item_scores(problem)[target, item]
        - problem.buckets.phi.mean(1)[problem.buckets.item_bucket[item]]
    )
    expected = 0.5 * (
        residual @ torch.linalg.inv(gram) @ residual
        + torch.logdet(gram)
        + item.shape[0] * math.log(2 * math.pi)
    )
    assert loss(model) == pytest.approx(float(expected), rel=1e-10)


def test_fits_with_botorch(problem: Problem) -> None:
    # One latent: the default three take seconds, and show no more.
    kernel = varied(LMCKernel(default_latents(1), T))
    model = make(problem, RAGGED, covar_module=kernel)
    before, start = loss(model), model.likelihood.noise.item()
    mll = ExactMarginalLogLikelihood(model.likelihood, model)
    with exact_inference():
        fit_gpytorch_mll(mll)
    assert loss(model) < before - 1.0
    assert model.likelihood.noise.item() != start
    for latent in model.covar_module.latents:
        assert latent.alpha.item() >= 1e-4 * (1 - 1e-7)
        assert latent.beta.item() >= 1e-4 * (1 - 1e-7)
    assert bool(posterior(model, problem).mean.isfinite().all())


def test_takes_one_step_with_botorchs_own_loop(problem: Problem) -> None:
    model = make(problem, RAGGED)
    before = {k: v.detach().clone() for k, v in model.named_parameters()}
    mll = ExactMarginalLogLikelihood(model.likelihood, model)
    with exact_inference():
        fit_gpytorch_mll_torch(
            mll, step_limit=1, stopping_criterion=None, optimizer=torch.optim.AdamW
        )
    assert len(before) == 1 + 2 * T + 1
    for name, value in model.named_parameters():
        assert not torch.equal(value, before[name]), name


def test_state_dict_round_trip(problem: Problem) -> None:
    saved, loaded = make(problem, RAGGED), make(problem, RAGGED)
    with torch.no_grad():
        loaded.covar_module.task_weights.mul_(3.0)
    loaded.likelihood.noise = 1.0
    loaded.load_state_dict(saved.state_dict())
    got, expected = posterior(loaded, problem), posterior(saved, problem)
    assert torch.equal(got.mean, expected.mean)
    assert torch.equal(got.variance, expected.variance)


def test_construction_leaves_the_global_generator_alone(problem: Problem) -> None:
    torch.manual_seed(4)
    state = torch.random.get_rng_state()
    make(problem, RAGGED)
    assert torch.equal(torch.random.get_rng_state(), state)


def test_defaults_are_as_many_latents_as_targets_and_exact_noise() -> None:
    problem = make_problem(1)
    rows = multi_target_inputs(problem.buckets, 4)[2]
    model = MultiTargetGP(rows, torch.zeros(rows.shape[0], 1).double(), n_targets=4)
    assert model.covar_module.task_weights.shape == (4, 4)
    assert model.likelihood.noise.item() == 0.1
    assert all(p.dtype == torch.float64 for p in model.parameters())


def test_any_kernel_over_such_rows(problem: Problem) -> None:
    index = IndexKernel(T, rank=1, active_dims=(6,))
    latent = default_latents(1)[0]
    latent.active_dims = torch.arange(5)
    model = make(problem, RAGGED, covar_module=(latent * index).double())
    assert bool(posterior(model, problem).variance.gt(0).all())


def test_errors_name_the_argument(problem: Problem) -> None:
    rows = multi_target_inputs(problem.buckets, T)[1]
    y = torch.zeros(rows.shape[0], 1).double()
    with pytest.raises(ValueError, match=r"train_X, train_Y: expected shapes"):
        MultiTargetGP(rows, y.squeeze(-1), n_targets=T)
    with pytest.raises(ValueError, match=r"expected targets 0..0 .* got 1 to 1"):
        MultiTargetGP(rows, y, n_targets=1)
    with pytest.raises(ValueError, match=r"expected targets 0..2 .* got -1 to -1"):
        MultiTargetGP(rows - 2.0, y, n_targets=T)


@pytest.mark.parametrize("count_dim", [-1, 0, 6])
def test_a_likelihood_that_would_read_another_column_is_refused(
    problem: Problem, count_dim: int
) -> None:
    rows = multi_target_inputs(problem.buckets, T)[1]
    y = torch.zeros(rows.shape[0], 1).double()
    wrong = BucketGaussianLikelihood(count_dim=count_dim)
    with pytest.raises(ValueError, match=f"count_dim=-2, .* got {count_dim}"):
        MultiTargetGP(rows, y, n_targets=T, likelihood=wrong)


@pytest.mark.parametrize("count_dim", [-2, 5])
def test_own_likelihood_keeps_its_constraint(problem: Problem, count_dim: int) -> None:
    own = BucketGaussianLikelihood(
        count_dim=count_dim, noise_constraint=GreaterThan(0.01, transform=None)
    ).double()
    model = make(problem, RAGGED, likelihood=own)
    assert model.likelihood is own
    mean, _ = brute_force(problem, RAGGED, prior(problem, model.covar_module))
    got = posterior(model, problem).mean.squeeze(-1)
    torch.testing.assert_close(got, mean, **CLOSE)
