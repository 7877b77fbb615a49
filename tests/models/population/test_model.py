"""The sequential model against dense conditioning and against GPyTorch."""

from __future__ import annotations

from pathlib import Path

import gpytorch
import pytest
import torch
from item_response import KINDS, answers, benchmark, named, spread

from gp_eval.data import Buckets, References
from gp_eval.kernels import PopulationKernel, PopulationStatistics
from gp_eval.linalg import population_table
from gp_eval.means import PopulationMean
from gp_eval.models.checkpoint import load_model, save_model
from gp_eval.models.population import (
    PopulationPrior,
    SequentialPopulationModel,
    fit_population_prior,
)
from gp_eval.optim import variance_components
from gp_eval.settings import exact_inference

# Row appends and one dense solve lose digits in other places.
CLOSE = {"rtol": 1e-9, "atol": 1e-11}
SEEN = [3, 17, 0, 8, 21, 5]


def repeated(kind: str, *, weighted: bool = False) -> tuple[References, torch.Tensor]:
    """Some buckets hold several items."""
    references, scores = benchmark(18, kind=kind)
    of_item = torch.cat([torch.arange(18), torch.tensor([2, 2, 5, 17, 0, 9])])
    weights = torch.linspace(0.2, 1.5, 24, dtype=torch.float64) if weighted else None
    return named(references.scores[of_item], weights=weights), scores[of_item]


def make(references: References) -> SequentialPopulationModel:
    """With hyperparameters that are not the centre of the prior.

    The prior is that of another table: exact copies of items fit best without noise,
    and GPyTorch refuses so little.
    """
    buckets = Buckets.from_references(references)
    prior = fit_population_prior(Buckets.from_references(benchmark(kind="binary")[0]))
    if buckets.phi.min() < 0 or buckets.phi.max() > 1:  # no link, the offset alone
        effects = torch.zeros(1, dtype=torch.float64), torch.ones(1).double()
        prior = PopulationPrior(prior.log_variances, *effects)
    model = SequentialPopulationModel(buckets, prior)
    shift = torch.tensor([0.6, -0.2, 0.3], dtype=torch.float64)
    effects = prior.effects_mean + shift[: prior.effects_mean.shape[0]]
    step = torch.tensor([0.5, -0.3, 0.8, 0.2, 0.1], dtype=torch.float64)
    model.set_hyperparameters(prior.log_variances + step, effects)
    return model


def joint(
    model: SequentialPopulationModel, references: References
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Mean, covariance without noise, and noise of all N scores, from the kernel."""
    x, kernel = references.scores, model.kernel
    with torch.no_grad(), exact_inference():
        covariance = kernel(x).to_dense()
        noise = model.log_variances[-1].exp() * kernel.scale(x).square()
        return kernel.mean(x), covariance, noise


def dense(
    model: SequentialPopulationModel, references: References, scores: torch.Tensor
) -> tuple[float, float]:
    """Mean and variance of the benchmark score, by conditioning N scores jointly."""
    mean, covariance, noise = joint(model, references)
    covariance = covariance + torch.diag(noise)
    rest = [i for i in range(len(scores)) if i not in SEEN]
    solved = torch.linalg.solve(covariance[SEEN][:, SEEN], covariance[SEEN][:, rest])
    expected = mean[rest] + solved.T @ (scores[SEEN] - mean[SEEN])
    left = covariance[rest][:, rest] - covariance[rest][:, SEEN] @ solved
    w = references.item_weights
    total = w[SEEN] @ scores[SEEN] + w[rest] @ expected
    return float(total), float(w[rest] @ left @ w[rest])


def tell(model: SequentialPopulationModel, scores: torch.Tensor) -> None:
    for item in SEEN:
        model.append(item, float(scores[item]))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("stored", [False, True])
def test_the_belief_is_that_of_conditioning_all_scores(
    kind: str, weighted: bool, stored: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not stored:
        monkeypatch.setattr(population_table, "_STORED", 0)
    references, scores = repeated(kind, weighted=weighted)
    model = make(references)
    tell(model, scores)
    mean, variance = dense(model, references, scores)
    for _ in range(2):
        assert float(model.performance_mean()) == pytest.approx(mean, rel=1e-9)
        assert float(model.performance_variance()) == pytest.approx(variance, rel=1e-9)
        model.refresh()  # and by conditioning at once


@pytest.mark.parametrize("kind", KINDS)
def test_the_posterior_is_that_of_an_exact_gp(kind: str) -> None:
    references, scores = repeated(kind)
    model = make(references)
    tell(model, scores)
    x, kernel = references.scores, model.kernel
    noise = joint(model, references)[2]

    class Model(gpytorch.models.ExactGP):
        def __init__(self) -> None:
            likelihood = gpytorch.likelihoods.FixedNoiseGaussianLikelihood(noise[SEEN])
            super().__init__(x[SEEN], scores[SEEN], likelihood)
            self.covar_module, self.mean_module = kernel, PopulationMean(kernel)

        def forward(self, at: torch.Tensor) -> gpytorch.distributions.Distribution:
            return gpytorch.distributions.MultivariateNormal(
                self.mean_module(at), self.covar_module(at)
            )

    with torch.no_grad(), exact_inference():
        theirs = Model().eval()(x)
        covariance = theirs.covariance_matrix
    items = torch.arange(24, dtype=torch.float64).unsqueeze(-1)
    ours = model.posterior(items)
    torch.testing.assert_close(ours.mean.squeeze(-1), theirs.mean, **CLOSE)
    torch.testing.assert_close(ours.distribution.covariance_matrix, covariance, **CLOSE)
    torch.testing.assert_close(model.latent(torch.arange(24))[0], theirs.mean, **CLOSE)
    torch.testing.assert_close(
        model.score_variance(torch.arange(24)), covariance.diagonal() + noise, **CLOSE
    )


@pytest.mark.parametrize("kind", KINDS)
def test_each_score_is_predicted_by_the_others(kind: str) -> None:
    references, scores = repeated(kind)
    model = make(references)
    tell(model, scores)
    mean, covariance, noise = joint(model, references)
    covariance = covariance + torch.diag(noise)
    got = model.leave_one_out()
    for place, item in enumerate(SEEN):
        others = [i for i in SEEN if i != item]
        gain = torch.linalg.solve(covariance[others][:, others], covariance[others])
        want = mean[item] + gain[:, item] @ (scores[others] - mean[others])
        left = covariance[item, item] - gain[:, item] @ covariance[others, item]
        torch.testing.assert_close(got[0][place], want, **CLOSE)
        torch.testing.assert_close(got[1][place], left, **CLOSE)


@pytest.mark.parametrize("kind", KINDS)
def test_sums_of_groups_are_those_of_conditioning(kind: str) -> None:
    references, scores = repeated(kind)
    model = make(references)
    tell(model, scores)
    weights = references.item_weights.unsqueeze(0)
    mean, variance, _ = model.weighted_sums(torch.cat([weights, 2 * weights]))
    torch.testing.assert_close(mean[0], model.performance_mean(), **CLOSE)
    torch.testing.assert_close(variance[0], model.performance_variance(), **CLOSE)
    torch.testing.assert_close(variance[1], 4 * variance[0], **CLOSE)


@pytest.mark.parametrize("kind", KINDS)
def test_variances_are_fitted_to_the_density_of_the_scores(kind: str) -> None:
    """In working units the density is that of the scores themselves, but a constant."""
    references, scores = repeated(kind)
    model = make(references)
    tell(model, scores)
    found: list[variance_components.Components] = []
    original = variance_components.negative_log

    def spy(theta: torch.Tensor, data: variance_components.Components) -> tuple:
        found.append(data)
        return original(theta, data)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(variance_components, "negative_log", spy)
        model.fit_variances()

    def density(at: torch.Tensor) -> float:
        model.set_hyperparameters(at, model.kernel.effects.clone())
        mean, covariance, noise = joint(model, references)
        here = covariance[SEEN][:, SEEN] + torch.diag(noise[SEEN])
        normal = torch.distributions.MultivariateNormal(mean[SEEN], here)
        return -float(normal.log_prob(scores[SEEN]))

    one, two = model.log_variances, model.prior.log_variances
    want = density(one) - density(two)
    got = float(original(one, found[0])[0] - original(two, found[0])[0])
    assert got == pytest.approx(want, rel=1e-8)


def test_fitted_variances_are_more_probable_than_the_centre() -> None:
    references, scores = benchmark(60)
    model = make(references)
    for item in range(50):
        model.append(item, float(scores[item]))
    fitted, fit = model.fit_variances()
    assert fit.converged
    model.set_hyperparameters(fitted, model.kernel.effects.clone())
    again, second = model.fit_variances()
    assert second.value <= fit.value + 1e-6
    torch.testing.assert_close(again, fitted, rtol=0, atol=0.02)


def test_noise_is_in_proportion_to_the_working_variance_whatever_the_bucket() -> None:
    references, _ = repeated("binary")
    model = make(references)
    scale = model.kernel.scale(model.buckets.phi)
    want = model.log_variances[-1].exp() * scale.square()
    torch.testing.assert_close(model.noise_variance, want.detach(), **CLOSE)
    assert float(model.ability_counts.max()) > 1


def test_a_state_on_disk_has_the_noise_and_the_effects(tmp_path: Path) -> None:
    references, scores = repeated("binary")
    model = make(references)
    tell(model, scores)
    save_model(tmp_path / "m.npz", model, {}, fingerprint="f")
    other = SequentialPopulationModel(model.buckets, model.prior)
    load_model(tmp_path / "m.npz", other, fingerprint="f")
    torch.testing.assert_close(other.log_variances, model.log_variances)
    torch.testing.assert_close(
        other.performance_mean(), model.performance_mean(), **CLOSE
    )
    torch.testing.assert_close(
        other.performance_variance(), model.performance_variance(), **CLOSE
    )


def test_a_clone_goes_its_own_way() -> None:
    references, scores = repeated("binary")
    model = make(references)
    tell(model, scores)
    before = float(model.performance_mean())
    twin = model.clone()
    twin.append(10, 1.0)
    assert float(model.performance_mean()) == before
    assert twin.n == model.n + 1


def test_scores_of_another_unit_give_the_same_belief_in_that_unit() -> None:
    table = answers([*spread(8), 0.4], 24, kind="unbounded")
    beliefs = []
    for factor, level in ((1.0, 0.0), (8.0, 64.0)):
        scores = factor * table + level
        model = make(named(scores[:, :-1]))
        tell(model, scores[:, -1])
        std = float(model.performance_variance()) ** 0.5
        beliefs.append(
            ((float(model.performance_mean()) - level) / factor, std / factor)
        )
    assert beliefs[1] == pytest.approx(beliefs[0], rel=1e-9)


def test_hyperparameters_are_copied_not_shared() -> None:
    references, _ = repeated("binary")
    buckets = Buckets.from_references(references)
    prior = fit_population_prior(buckets)
    kept = PopulationPrior(
        prior.log_variances.clone(), prior.effects_mean.clone(), prior.effects_std
    )
    model = SequentialPopulationModel(buckets, prior)
    model.set_hyperparameters(prior.log_variances + 1.0, prior.effects_mean + 1.0)
    assert torch.equal(prior.log_variances, kept.log_variances)
    assert torch.equal(prior.effects_mean, kept.effects_mean)
    statistics = PopulationStatistics.from_scores(buckets.phi, buckets.counts)
    assert isinstance(model.covar_module, PopulationKernel)
    assert torch.equal(model.kernel.statistics.abilities, statistics.abilities)
