from __future__ import annotations

import pytest
import torch
from gpytorch.kernels import MaternKernel, RBFKernel, ScaleKernel
from gpytorch.means import ConstantMean
from multi_target_oracle import MultiTargetProblem, make_multi_target_problem

from gp_eval.acquisition import qAverageInformationGain, qPerformanceInformationGain
from gp_eval.data import Buckets, References
from gp_eval.kernels import default_latents
from gp_eval.means import ReferenceMean
from gp_eval.models import (
    BayesAME,
    MultiTargetBayesAME,
    MultiTargetModel,
    PerformanceModel,
    SupportsRefit,
    make_model,
    multi_target_bayesame,
)

UNIQUE, SHARED = (1,) * 20, (8, 8, 8)


def problem_of(counts: tuple[int, ...] = UNIQUE, **options) -> MultiTargetProblem:
    return make_multi_target_problem(1, counts=counts, **options)


def make(problem: MultiTargetProblem, **options) -> MultiTargetBayesAME:
    usual = {"n_targets": problem.n_targets, "steps": 4}
    return MultiTargetBayesAME(problem.references, **usual | options)


def tell(model: MultiTargetBayesAME, problem: MultiTargetProblem, pairs) -> None:
    rows = torch.tensor([[item, target] for target, item in pairs])
    model.condition(rows, torch.stack([problem.scores[pair] for pair in pairs]))


def grid(problem: MultiTargetProblem, start: int, stop: int) -> list[tuple[int, int]]:
    """Pairs of items ``start`` to ``stop - 1``, item by item."""
    return [(t, i) for i in range(start, stop) for t in range(problem.n_targets)]


def same(one: MultiTargetBayesAME, two: MultiTargetBayesAME, *, rtol=0.0) -> None:
    a, b = one.performance(), two.performance()
    torch.testing.assert_close(a.mean, b.mean, rtol=rtol, atol=0)
    torch.testing.assert_close(a.covariance, b.covariance, rtol=rtol, atol=0)


def adopt(problem: MultiTargetProblem, model: MultiTargetBayesAME) -> None:
    """Make the prior of the oracle that which the model has at present.

    Its latents alternate, while the default ones come in two halves.
    """
    kernel, half = model.model.covar_module, (problem.n_targets + 1) // 2
    order = list(range(problem.n_targets))
    order[0::2], order[1::2] = order[:half], order[half:]
    problem.task_weights = kernel.task_weights.detach()[order]
    latents = [kernel.latents[i] for i in order]
    problem.alphas = [latent.alpha.item() for latent in latents]
    problem.betas = [latent.beta.item() for latent in latents]
    problem.sigma2 = model.model.likelihood.noise.item()


def test_satisfies_the_protocols_of_the_harness() -> None:
    model = make(problem_of())
    assert isinstance(model, MultiTargetModel)
    assert isinstance(model, PerformanceModel)
    assert isinstance(model, SupportsRefit)


@pytest.mark.parametrize(
    ("initial", "expected"),
    [(0.1, 2), (0.0, 0), (0.01, 1), (0.12, 2), (0.13, 3), (1.0, 20)],
)
def test_the_initial_design_is_a_share_of_the_items(
    initial: float, expected: int
) -> None:
    model = make(problem_of(), initial=initial)
    assert model.initial_items == expected
    assert type(model.initial_items) is int


def test_the_first_training_acts_at_once_and_later_ones_from_the_next_step_on() -> None:
    problem = problem_of()
    model, never = make(problem, refit_every=2), make(problem, initial=1.0)
    initial = grid(problem, 0, 2)
    tell(model, problem, initial[:-1])
    tell(never, problem, initial[:-1])
    same(model, never)
    assert model.updates == {}
    tell(model, problem, initial[-1:])
    tell(never, problem, initial[-1:])
    belief = model.performance()
    assert list(model.updates) == list(model.fits) == [6]
    assert not torch.equal(belief.mean, never.performance().mean)
    more = grid(problem, 2, 4)
    tell(model, problem, more)
    before = model.performance()
    assert list(model.updates) == [6]
    model.acquisition()
    assert list(model.updates) == [6, 12]
    assert not torch.equal(model.performance().mean, before.mean)


def test_updates_come_after_the_initial_items_and_every_f_rounds() -> None:
    problem = problem_of()
    model = make(problem, refit_every=5)
    tell(model, problem, grid(problem, 0, 20))
    model.acquisition()
    assert list(model.updates) == list(model.fits) == [6, 21, 36, 51]
    once = make(problem, refit_every=None)
    tell(once, problem, grid(problem, 0, 20))
    assert list(once.updates) == [6]
    without = make(problem, initial=0.0, refit_every=5)
    tell(without, problem, grid(problem, 0, 12))
    assert list(without.updates) == [15, 30]
    complete = make(problem, initial=1.0)
    tell(complete, problem, grid(problem, 0, 20))
    complete.performance()
    complete.acquisition()
    assert complete.updates == {}


def test_steps_are_halved_from_one_training_to_the_next() -> None:
    problem = problem_of()
    model = make(problem, refit_every=3, steps=120)
    said = []
    model.progress = lambda step, steps: said.append((step, steps))
    tell(model, problem, grid(problem, 0, 9))
    assert [fit.evaluations for fit in model.fits.values()] == [120, 60, 50]
    steps = [(step, of) for of in (120, 60, 50) for step in range(1, of + 1)]
    assert said == steps


def test_what_is_given_wins_over_what_the_scores_suggest() -> None:
    problem = problem_of()
    continuous = make(problem)
    assert continuous.model.likelihood.noise.tolist() == [0.01]
    assert continuous.learning_rate == 0.001
    table = (problem.references.scores > 0.5).double()
    references = References(table, problem.references.items, problem.references.models)
    binary = MultiTargetBayesAME(references, n_targets=3)
    assert binary.model.likelihood.noise.tolist() == [0.1]
    assert binary.learning_rate == 0.01
    own = MultiTargetBayesAME(references, n_targets=3, noise=0.3, learning_rate=0.02)
    assert own.model.likelihood.noise.tolist() == [0.3]
    assert own.learning_rate == 0.02
    with pytest.raises(ValueError, match=r"noise: expected sigma\^2 > 0, got 0"):
        make(problem, noise=0.0)


def test_the_learning_rate_and_the_decay_reach_the_training() -> None:
    """AdamW's first step moves every parameter by its rate."""
    problem = problem_of()
    moved = {}
    for rate in (0.001, 0.01):
        model = make(problem, steps=1, learning_rate=rate, weight_decay=0.0)
        before = model.model.covar_module.task_weights.detach().clone()
        tell(model, problem, grid(problem, 0, 2))
        model.performance()
        after = model.model.covar_module.task_weights.detach()
        moved[rate] = (after - before).abs()
        torch.testing.assert_close(
            moved[rate], torch.full_like(before, rate), rtol=1e-3, atol=0
        )
    decayed = make(problem, steps=1, learning_rate=0.01, weight_decay=5.0)
    tell(decayed, problem, grid(problem, 0, 2))
    decayed.performance()
    after = decayed.model.covar_module.task_weights.detach()
    assert not torch.allclose((after - before).abs(), moved[0.01], rtol=1e-3)


def test_training_raises_the_likelihood_and_moves_every_parameter() -> None:
    problem = problem_of()
    model = make(problem, steps=60, learning_rate=0.01)
    names = [name for name, p in model.model.named_parameters() if p.requires_grad]
    before = {n: p.detach().clone() for n, p in model.model.named_parameters()}
    tell(model, problem, grid(problem, 0, 2))
    model.performance()
    longer = make(problem, steps=1, learning_rate=0.01)
    tell(longer, problem, grid(problem, 0, 2))
    longer.performance()
    assert model.fits[6].value < longer.fits[6].value
    for name, parameter in model.model.named_parameters():
        assert not torch.equal(parameter, before[name]), name
    assert len(names) == len(before) == 1 + 2 * 3 + 1
    assert sum(len(values) for values in model.updates[6].values()) == 9 + 6 + 1


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("counts", [UNIQUE, SHARED])
def test_reports_equation_3_when_unique_and_equation_5_with_1_over_n_otherwise(
    counts: tuple[int, ...], weighted: bool
) -> None:
    problem = problem_of(counts, weighted=weighted)
    model = make(problem, refit_every=None)
    coreset = [*grid(problem, 0, model.initial_items), (0, 7), (0, 5), (2, 9)]
    tell(model, problem, coreset)
    assert len(model.updates) == 1
    adopt(problem, model)
    mean, joint = problem.performance(coreset)
    if counts == SHARED:
        estimates = [problem.estimate(coreset, target) for target in range(3)]
        mean = torch.tensor(estimates, dtype=torch.float64)
    belief = model.performance()
    torch.testing.assert_close(belief.mean, mean, rtol=1e-10, atol=0)
    torch.testing.assert_close(belief.covariance, joint, rtol=1e-10, atol=1e-15)
    assert torch.equal(belief.variance, belief.covariance.diagonal())
    width = 2 * 1.959963984540054 * joint.diagonal().sqrt()
    torch.testing.assert_close(belief.width(), width, rtol=1e-10, atol=0)


def test_regime_and_selection_decide_the_acquisition() -> None:
    unique, shared = problem_of(), problem_of(SHARED)
    assert isinstance(make(unique).acquisition(), qPerformanceInformationGain)
    average = make(unique, selection="average")
    assert isinstance(average.acquisition(), qAverageInformationGain)
    assert average.acquisition().model is average.model
    assert make(unique, selection="random").acquisition() is None
    assert make(unique, selection="random").unique
    for selection in ("round-robin", "average", "random"):
        made = make(shared, selection=selection)
        assert made.acquisition() is None
        assert not made.unique
    assert isinstance(
        make(shared, margin=21).acquisition(), qPerformanceInformationGain
    )
    assert make(shared).item_groups.tolist() == shared.buckets.item_bucket.tolist()


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("counts", [UNIQUE, SHARED])
def test_all_items_known_is_exact_in_both_regimes(counts, weighted: bool) -> None:
    problem = problem_of(counts, weighted=weighted)
    model = make(problem, refit_every=6)
    tell(model, problem, grid(problem, 0, problem.n_items - 1))
    tell(model, problem, [(1, problem.n_items - 1)])
    truth = problem.scores @ problem.weights
    belief = model.performance()
    assert float(belief.mean[1]) == pytest.approx(float(truth[1]), rel=1e-14)
    assert belief.covariance[1].tolist() == [0.0, 0.0, 0.0]
    assert bool((belief.variance[[0, 2]] > 0).all())
    tell(model, problem, [(0, problem.n_items - 1), (2, problem.n_items - 1)])
    belief = model.performance()
    torch.testing.assert_close(belief.mean, truth, rtol=1e-14, atol=0)
    assert belief.covariance.count_nonzero() == 0


def test_one_target_with_one_fixed_latent_is_bayesame() -> None:
    for counts in (UNIQUE, SHARED):
        problem = problem_of(counts, n_targets=1)
        one = BayesAME(problem.references, noise=0.02, refit_every=None)
        many = make(problem, initial=0.0, noise=0.02, refit_every=None)
        with torch.no_grad():
            many.model.covar_module.task_weights.fill_(1.0)
        many.model.refresh()
        for item in range(problem.n_items):
            ours, theirs = many.performance(), one.performance()
            close = {"rtol": 1e-10, "atol": 1e-15}
            torch.testing.assert_close(ours.mean[0], theirs.mean, **close)
            torch.testing.assert_close(ours.variance[0], theirs.variance, **close)
            assert type(many.acquisition()) is type(one.acquisition())
            if one.acquisition() is not None:
                X = torch.arange(item, problem.n_items).double().view(-1, 1, 1)
                torch.testing.assert_close(
                    many.acquisition()(torch.cat([X, torch.zeros_like(X)], -1)),
                    one.acquisition()(X),
                    rtol=1e-9,
                    atol=1e-15,
                )
            tell(many, problem, [(0, item)])
            one.condition(torch.tensor([item]), problem.scores[0, item])
        assert float(many.performance().mean[0]) == float(one.performance().mean)


def test_the_seed_fixes_the_initial_weights_and_with_them_everything() -> None:
    problem = problem_of()
    weights, runs = [], []
    for seed in (0, 0, 1):
        torch.manual_seed(seed + len(runs))  # the global generator plays no part
        model = make(problem, seed=seed)
        weights.append(model.model.covar_module.task_weights.detach().clone())
        tell(model, problem, grid(problem, 0, 8))
        runs.append(model)
    assert torch.equal(weights[0], weights[1])
    assert not torch.equal(weights[0], weights[2])
    assert runs[0].updates == runs[1].updates != runs[2].updates
    same(runs[0], runs[1])


def test_building_and_training_leave_the_global_generator_alone() -> None:
    problem = problem_of()
    torch.manual_seed(3)
    expected = torch.rand(2)
    torch.manual_seed(3)
    model = make(problem)
    tell(model, problem, grid(problem, 0, 3))
    assert torch.equal(torch.rand(2), expected)


def test_one_call_equals_many_across_updates() -> None:
    problem = problem_of()
    at_once, single = make(problem, refit_every=3), make(problem, refit_every=3)
    pairs = grid(problem, 0, 10)
    tell(at_once, problem, pairs)
    for pair in pairs:
        tell(single, problem, [pair])
        single.performance()
    assert at_once.updates == single.updates
    assert list(at_once.updates) == [6, 15, 24]
    same(at_once, single)


def test_replayed_updates_reproduce_a_run_without_training(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    problem = problem_of()
    model = make(problem, refit_every=3)
    pairs = grid(problem, 0, 10)
    tell(model, problem, pairs)
    again = make(problem, refit_every=3)
    again.replay_updates(model.updates)

    def train(*_, **__):
        raise AssertionError("trained again")

    with monkeypatch.context() as patch:
        patch.setattr(multi_target_bayesame, "fit_adamw", train)
        tell(again, problem, pairs)
    assert again.fits == {}
    assert again.updates == model.updates
    same(again, model)
    for made in (model, again):  # and it goes on alike
        tell(made, problem, grid(problem, 10, 14))
    assert list(again.fits) == [33]
    assert again.updates == model.updates
    same(again, model)


@pytest.mark.parametrize("n_latents", [1, 2, 5])
def test_the_number_of_latents_is_free(n_latents: int) -> None:
    problem = problem_of()
    model = make(problem, n_latents=n_latents)
    assert model.model.covar_module.task_weights.shape == (n_latents, 3)
    tell(model, problem, grid(problem, 0, 4))
    assert bool((model.performance().variance > 0).all())


def test_kernels_of_gpytorch_run_the_whole_method() -> None:
    problem = problem_of(n_targets=2)
    model = make(
        problem,
        latents=[ScaleKernel(RBFKernel()), MaternKernel(nu=2.5), RBFKernel()],
        refit_every=5,
    )
    tell(model, problem, grid(problem, 0, 9))
    assert set(model.updates[4]) == {
        "covar_module.task_weights",
        "covar_module.base_kernels.0.raw_outputscale",
        "covar_module.base_kernels.0.base_kernel.raw_lengthscale",
        "covar_module.base_kernels.1.raw_lengthscale",
        "covar_module.base_kernels.2.raw_lengthscale",
        "likelihood.noise_covar.raw_noise",
    }
    assert model.updates[4] != model.updates[14]
    coreset = grid(problem, 0, 9)
    with torch.no_grad():
        problem.sigma2 = float(model.model.likelihood.noise)
        problem.ability_covariance = sum(
            torch.kron(torch.outer(w, w), latent(problem.buckets.phi).to_dense())
            for w, latent in zip(
                model.model.covar_module.task_weights,
                model.model.covar_module.latents,
                strict=True,
            )
        )
    mean, joint = problem.performance(coreset)
    belief = model.performance()
    # GPyTorch's distances by expansion of squares lose half the digits of small ones.
    torch.testing.assert_close(belief.mean, mean, rtol=1e-7, atol=0)
    torch.testing.assert_close(belief.covariance, joint, rtol=1e-6, atol=1e-12)
    tell(model, problem, grid(problem, 9, 20))
    truth = problem.scores.mean(1)
    torch.testing.assert_close(model.performance().mean, truth, rtol=1e-14, atol=0)


def test_a_mean_of_ones_own_is_used_and_not_trained() -> None:
    problem, mean = problem_of(), ConstantMean()
    mean.constant = 0.9
    model = make(problem, mean_module=mean)
    assert model.performance().mean.tolist() == pytest.approx([0.9] * 3)
    tell(model, problem, grid(problem, 0, 3))
    assert mean.constant.item() == pytest.approx(0.9)
    assert not any("mean" in name for name in model.updates[6])


@pytest.mark.parametrize("value", [0.0, 1.0])
@pytest.mark.parametrize("counts", [UNIQUE, SHARED])
def test_all_right_or_all_wrong_keeps_a_positive_width(counts, value: float) -> None:
    problem = problem_of(counts)
    problem.scores.fill_(value)
    model = make(problem, refit_every=3)
    for n in range(problem.n_items - 1):
        tell(model, problem, grid(problem, n, n + 1))
        belief = model.performance()
        assert bool((belief.variance > 0).all())
        assert bool(torch.isfinite(belief.mean).all())


@pytest.mark.parametrize("n_targets", [2, 20])
def test_targets_without_any_score_and_identical_ones(n_targets: int) -> None:
    problem = problem_of((1,) * 10, n_targets=n_targets)
    problem.scores[1] = problem.scores[0]
    model = make(problem, initial=0.0, refit_every=1)
    tell(model, problem, [(t, i) for i in range(6) for t in range(n_targets - 1)])
    assert model.updates
    adopt(problem, model)
    coreset = [(t, i) for i in range(6) for t in range(n_targets - 1)]
    mean, joint = problem.performance(coreset)
    belief = model.performance()
    torch.testing.assert_close(belief.mean, mean, rtol=1e-10, atol=0)
    torch.testing.assert_close(belief.covariance, joint, rtol=1e-10, atol=1e-15)


def test_rounded_scores_share_buckets() -> None:
    problem = problem_of()
    made = make(problem, tolerance=1.0)
    expected = Buckets.from_references(problem.references, tolerance=1.0).n_buckets
    assert int(made.item_groups.max()) + 1 == expected < 20


def test_a_wrong_row_or_score_changes_nothing() -> None:
    problem = problem_of()
    model = make(problem)
    tell(model, problem, [(1, 4)])
    before = model.performance()
    good = [3, 0]
    for rows, scores, message in (
        ([good, [4, 1]], [0.1, 0.2], "item: 4 of target 1 is evaluated already"),
        ([good, good], [0.1, 0.2], "item: 3 of target 0 is evaluated already"),
        ([good, [5, 2]], [0.1, float("nan")], "got nan of 5 of target 2"),
        ([good, [5, 2]], [0.1, float("inf")], "got inf of 5 of target 2"),
        ([good, [20, 2]], [0.1, 0.2], r"expected indices 0\.\.19, got \[20\]"),
        ([good, [5, 3]], [0.1, 0.2], r"expected targets 0\.\.2"),
        ([good, [5, -1]], [0.1, 0.2], r"expected targets 0\.\.2"),
        ([good, [5, 1]], [0.1], "expected as many, got 2 and 1"),
        (
            [[3], [5]],
            [0.1, 0.2],
            r"items: expected rows \[item, target\], got \(2, 1\)",
        ),
        ([3, 5], [0.1, 0.2], r"items: expected rows \[item, target\], got \(2,\)"),
    ):
        with pytest.raises(ValueError, match=message):
            model.condition(torch.tensor(rows), torch.tensor(scores))
    assert model.model.n == 1
    assert torch.equal(model.performance().covariance, before.covariance)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_targets": 0}, "n_targets: expected at least 1, got 0"),
        ({"selection": "auto"}, "selection: expected 'round-robin', 'average' or"),
        ({"initial": 1.5}, "initial: expected a share from 0 to 1, got 1.5"),
        ({"initial": -0.1}, "initial: expected a share from 0 to 1"),
        ({"refit_every": 0}, "refit_every: expected >= 1 or None, got 0"),
        ({"n_latents": 0}, "n_latents: expected at least 1"),
        ({"n_latents": 2, "latents": [RBFKernel()]}, "no latents beside it, got 2"),
        ({"latents": []}, "latents, num_tasks: expected at least one of each"),
    ],
)
def test_errors_name_the_option(options: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make(problem_of(), **options)


def test_is_made_by_name_and_only_with_targets() -> None:
    references = problem_of().references
    made = make_model("bayesame-multi", references, n_targets=4)
    assert isinstance(made, MultiTargetBayesAME)
    assert made.n_targets == 4
    with pytest.raises(ValueError, match="'bayesame-multi' is about several targets"):
        make_model("bayesame-multi", references)
    for name in ("bayesame", "rs-mean"):
        with pytest.raises(ValueError, match=f"'{name}' is about one target"):
            make_model(name, references, n_targets=4)
    with pytest.raises(ValueError, match=r"unknown options \['alpha'\]"):
        make_model("bayesame-multi", references, n_targets=4, alpha=1)


@pytest.mark.parametrize(
    "wrong", [{"learning_rate": 0.0}, {"weight_decay": -0.1}, {"steps": 0}], ids=str
)
def test_training_that_cannot_be_is_refused_at_once(wrong: dict[str, float]) -> None:
    references = References(
        torch.rand(5, 2, dtype=torch.float64), list("abcde"), ["m", "n"]
    )
    with pytest.raises(ValueError, match=next(iter(wrong))):
        MultiTargetBayesAME(references, n_targets=2, **wrong)


def test_equal_weights_of_the_references_are_no_weights() -> None:
    problem = problem_of()
    size = len(problem.references.models)
    plain, equal = make(problem), make(problem, weights=[0.3] * size)
    for model in (plain, equal):
        tell(model, problem, grid(problem, 0, 5))
    assert list(equal.updates) == [6]
    # The sum of weighted squares is another order of rounding, and training carries it.
    same(plain, equal, rtol=1e-8)


def test_weights_of_the_references_are_those_of_latents_and_mean_by_hand() -> None:
    problem = problem_of()
    weights = torch.tensor([0.5, 2.0, 0.0, 1.0, 0.25], dtype=torch.float64)
    names = problem.references.models
    assert len(names) == 5
    weighted = make(problem, weights=weights.tolist())
    kept = weights[[0, 1, 3, 4]]
    references = problem.references.subset(models=[n for n in names if n != names[2]])
    by_hand = MultiTargetBayesAME(
        references,
        n_targets=problem.n_targets,
        steps=4,
        latents=default_latents(problem.n_targets, weights=kept * 4 / kept.sum()),
        mean_module=ReferenceMean(weights=kept / kept.sum()),
    )
    for model in (weighted, by_hand):
        tell(model, problem, grid(problem, 0, 5))
    same(weighted, by_hand, rtol=1e-10)
    assert weighted.model.buckets.phi.shape[1] == 4
    tell(weighted, problem, grid(problem, 5, 20))
    belief = weighted.performance()
    torch.testing.assert_close(belief.mean, problem.scores.mean(1), rtol=1e-12, atol=0)
    assert belief.variance.tolist() == [0.0] * 3


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"weights": [1.0]}, r"weights: expected one per reference \(5\), got 1"),
        ({"weights": [0.0] * 5}, "weights: expected finite values >= 0, not all 0"),
        ({"weights": [1.0] * 5, "latents": [RBFKernel()]}, "they make the latents"),
        ({"weights": [1.0] * 5, "mean_module": ConstantMean()}, "they make the lat"),
    ],
)
def test_weights_that_cannot_be_used(options: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make(problem_of(), **options)
