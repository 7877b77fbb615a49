from __future__ import annotations

from pathlib import Path

import pytest
import torch
from gpytorch.kernels import MaternKernel, ScaleKernel
from oracles import Problem, make_problem

from gp_eval.acquisition import qPerformanceInformationGain
from gp_eval.data import References
from gp_eval.linalg import Observations
from gp_eval.models import (
    BayesAME,
    PerformanceModel,
    SupportsRefit,
    bayesame,
    make_model,
)
from gp_eval.optim import fit_kernel, make_objective


def unique_problem(size: int = 40) -> Problem:
    return make_problem(1, counts=(1,) * size, n_references=6)


def tell(model: BayesAME, problem: Problem, items: list[int]) -> None:
    model.condition(torch.tensor(items), problem.scores[items])


def test_satisfies_the_protocols_of_the_harness(problem: Problem) -> None:
    model = BayesAME(problem.references)
    assert isinstance(model, PerformanceModel)
    assert isinstance(model, SupportsRefit)


def test_regime_decides_selection_noise_and_estimator() -> None:
    unique = BayesAME(unique_problem().references)
    assert unique.unique
    assert isinstance(unique.acquisition(), qPerformanceInformationGain)
    assert unique.model.noise_variance.tolist() == [1e-4] * 40
    problem = make_problem(0, counts=(6, 6, 6))
    shared = BayesAME(problem.references)
    assert not shared.unique
    assert shared.acquisition() is None
    assert shared.model.noise_variance.tolist() == pytest.approx([0.6] * 3)
    assert BayesAME(problem.references, margin=15).unique


def test_random_selection_is_bayesame_rs() -> None:
    model = make_model("bayesame-rs", unique_problem().references)
    assert model.acquisition() is None
    assert model.unique


def test_reports_equation_3_when_unique_and_equation_4_otherwise() -> None:
    for counts, unique in (((1,) * 20, True), ((8, 8, 8), False)):
        problem = make_problem(0, counts=counts)
        model = BayesAME(problem.references)
        problem.alpha = problem.beta = 1.0
        problem.sigma2 = 1e-4 if unique else 1e-1
        coreset = [0, 5, 3, 11]
        tell(model, problem, coreset)
        mean, variance = problem.performance(coreset)
        if not unique:
            mu = problem.posterior(coreset)[0][problem.buckets.item_bucket]
            mean = float((problem.scores[coreset] - mu[coreset]).mean() + mu.mean())
        belief = model.performance()
        assert float(belief.mean) == pytest.approx(mean, rel=1e-10)
        assert float(belief.variance) == pytest.approx(variance, rel=1e-10)
        bayes, _ = problem.performance(coreset)
        mse = variance + (bayes - mean) ** 2
        assert float(model.posterior_mse()) == pytest.approx(mse, rel=1e-10)


def test_all_items_known_is_exact_in_both_regimes() -> None:
    for counts in ((1,) * 20, (8, 8, 8)):
        problem = make_problem(0, counts=counts)
        model = BayesAME(problem.references, refit_every=7)
        tell(model, problem, list(range(problem.n_items)))
        belief = model.performance()
        assert float(belief.mean) == float(problem.scores.mean())
        assert float(belief.variance) == 0.0


def test_before_the_first_item_the_estimate_is_the_prior_mean() -> None:
    problem = make_problem(0, counts=(8, 8, 8))
    belief = BayesAME(problem.references).performance()
    expected = float(problem.references.scores.mean())
    assert float(belief.mean) == pytest.approx(expected, rel=1e-14)
    assert float(belief.variance) > 0


def test_one_call_equals_many_across_updates() -> None:
    problem = unique_problem()
    at_once = BayesAME(problem.references, refit_every=8)
    single = BayesAME(problem.references, refit_every=8)
    items = list(range(30))
    tell(at_once, problem, items)
    for item in items:
        tell(single, problem, [item])
    assert at_once.updates == single.updates
    assert list(at_once.updates) == [8, 16, 24]
    assert float(at_once.performance().mean) == float(single.performance().mean)


def test_order_does_not_matter_between_updates() -> None:
    problem = unique_problem()
    one, two = BayesAME(problem.references), BayesAME(problem.references)
    tell(one, problem, [3, 1, 4, 15, 9, 2, 6])
    tell(two, problem, [6, 9, 2, 4, 3, 15, 1])
    torch.testing.assert_close(
        one.performance().mean, two.performance().mean, rtol=1e-10, atol=0
    )
    torch.testing.assert_close(
        one.performance().variance, two.performance().variance, rtol=1e-9, atol=0
    )


def test_an_update_acts_from_the_next_step_on() -> None:
    """Algorithm 1: estimate and variance of step F are those before the update."""
    problem = unique_problem()
    model = BayesAME(problem.references, refit_every=5)
    never = BayesAME(problem.references, refit_every=None)
    tell(model, problem, [0, 1, 2, 3, 4])
    tell(never, problem, [0, 1, 2, 3, 4])
    assert float(model.performance().mean) == float(never.performance().mean)
    assert model.updates == {}
    model.acquisition()
    assert list(model.updates) == [5]
    assert float(model.performance().mean) != float(never.performance().mean)


@pytest.mark.parametrize("counts", [(1,) * 40, (6,) * 7])
def test_updates_minimise_equation_11(counts: tuple[int, ...]) -> None:
    problem = make_problem(1, counts=counts, n_references=6)
    model = BayesAME(problem.references, refit_every=10)
    items = list(range(10))
    tell(model, problem, items)
    model.acquisition()
    phi, buckets = problem.buckets.phi, problem.buckets
    other = BayesAME(problem.references).model
    data = Observations.by_item(
        buckets.item_bucket[items], problem.scores[items], other.noise_variance
    )
    objective = make_objective(other.covar_module, phi, phi.mean(1), data)
    fit_kernel(other.covar_module, objective)
    # The bucket form has other rounding, and the optimum is flat.
    assert model.updates[10]["raw_alpha"][0] == pytest.approx(
        float(other.covar_module.alpha.detach()), rel=1e-4
    )


def test_replayed_updates_are_taken_as_they_are() -> None:
    problem = unique_problem()
    model = BayesAME(problem.references, refit_every=8)
    tell(model, problem, list(range(20)))
    again = BayesAME(problem.references, refit_every=8)
    again.replay_updates({8: {"raw_alpha": [0.3], "raw_beta": [0.7]}})
    tell(again, problem, list(range(20)))
    assert again.updates[8] == {"raw_alpha": [0.3], "raw_beta": [0.7]}
    assert again.updates[16] != {"raw_alpha": [0.3], "raw_beta": [0.7]}
    exact = BayesAME(problem.references, refit_every=8)
    exact.replay_updates(model.updates)
    tell(exact, problem, list(range(20)))
    assert float(exact.performance().mean) == float(model.performance().mean)
    assert float(exact.performance().variance) == float(model.performance().variance)


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_all_right_or_all_wrong_keeps_a_positive_width(value: float) -> None:
    problem = unique_problem()
    problem.scores = torch.full((40,), value, dtype=torch.float64)
    model = BayesAME(problem.references, refit_every=10)
    for n in range(39):
        tell(model, problem, [n])
        assert float(model.performance().width()) > 0


def test_any_kernel_of_gpytorch_runs_the_whole_method() -> None:
    problem = unique_problem()
    kernel = ScaleKernel(MaternKernel(nu=1.5))
    model = BayesAME(problem.references, covar_module=kernel, refit_every=10)
    tell(model, problem, list(range(25)))
    assert set(model.updates[10]) == {
        "raw_outputscale",
        "base_kernel.raw_lengthscale",
    }
    tell(model, problem, list(range(25, 40)))
    assert float(model.performance().mean) == float(problem.scores.mean())


def test_out_of_sample_estimate_needs_an_item(problem: Problem) -> None:
    model = BayesAME(problem.references)
    with pytest.raises(ValueError, match="at least one evaluated item"):
        model.out_of_sample_estimate()
    tell(model, problem, [0, 4, 2])
    assert 0 < float(model.out_of_sample_estimate()) < 1


def test_item_weights_change_the_target_of_estimation() -> None:
    problem = make_problem(0, counts=(8, 8, 8), weighted=True)
    model = BayesAME(problem.references)
    tell(model, problem, list(range(24)))
    truth = float(problem.references.item_weights @ problem.scores)
    assert float(model.performance().mean) == pytest.approx(truth, rel=1e-14)
    assert truth != pytest.approx(float(problem.scores.mean()), rel=1e-3)


def test_one_reference_and_equal_references_work() -> None:
    for table in (torch.rand(30, 1), torch.ones(30, 4)):
        references = References(
            table.double(),
            [f"q{i}" for i in range(30)],
            [f"m{k}" for k in range(table.shape[1])],
        )
        model = BayesAME(references, refit_every=10)
        model.condition(torch.arange(25), torch.rand(25).double())
        belief = model.performance()
        assert torch.isfinite(belief.mean)
        assert float(belief.variance) > 0


def test_errors_name_the_argument(problem: Problem) -> None:
    with pytest.raises(ValueError, match="selection: expected 'auto' or 'random'"):
        BayesAME(problem.references, selection="best")
    with pytest.raises(ValueError, match="refit_every: expected >= 1"):
        BayesAME(problem.references, refit_every=0)
    model = BayesAME(problem.references)
    with pytest.raises(ValueError, match="item: 3 is evaluated already"):
        tell(model, problem, [4, 3, 3])
    with pytest.raises(ValueError, match="expected finite ones, got nan of 5"):
        model.condition(torch.tensor([4, 5]), torch.tensor([0.5, float("nan")]))
    with pytest.raises(ValueError, match="expected as many, got 2 and 1"):
        model.condition(torch.tensor([4, 5]), torch.tensor([0.5]))
    assert model.model.n == 0
    with pytest.raises(ValueError, match=r"model: expected one of .*got 'bayes'"):
        make_model("bayes", problem.references)
    with pytest.raises(ValueError, match=r"unknown options \['refit'\]"):
        make_model("bayesame", problem.references, refit=3)


def test_ifeval_run_of_the_paper_in_short(shared_data: Path) -> None:
    """Real data: active regime at 50 % of the references, exact at the end."""
    references = References.read(
        shared_data / "benchpred_ifeval.npz", duplicate_models="number"
    )
    models = references.models
    target = references.subset(models=[models[5]]).scores[:, 0]
    model = BayesAME(references.subset(models=models[10::2]))
    assert model.unique
    model.condition(torch.arange(541), target)
    assert float(model.performance().mean) == float(target.mean())
    assert float(model.performance().variance) == 0.0


def test_no_fit_once_every_item_is_known() -> None:
    problem = unique_problem()
    model = BayesAME(problem.references, refit_every=10)
    tell(model, problem, list(range(40)))
    model.acquisition()
    assert list(model.updates) == [10, 20, 30]


def test_a_fit_with_more_items_than_buckets_factorises_buckets(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    problem = make_problem(1, counts=(6,) * 7, n_references=6)
    sizes = []
    real = bayesame.make_objective

    def spy(kernel, phi, mean, data, **options):
        sizes.append(data.bucket.shape[0])
        return real(kernel, phi, mean, data, **options)

    monkeypatch.setattr(bayesame, "make_objective", spy)
    model = BayesAME(problem.references, refit_every=20)
    tell(model, problem, list(range(42)))
    assert sizes == [7, 7]


def test_outcome_of_every_fit_is_kept() -> None:
    problem = unique_problem()
    model = BayesAME(problem.references, refit_every=10)
    tell(model, problem, list(range(25)))
    assert list(model.fits) == [10, 20]
    assert all(fit.converged for fit in model.fits.values())
