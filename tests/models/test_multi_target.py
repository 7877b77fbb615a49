from __future__ import annotations

import pytest
import torch
from gpytorch.kernels import MaternKernel, RBFKernel, ScaleKernel
from gpytorch.means import ConstantMean
from multi_target_oracle import (
    MultiTargetProblem,
    disjoint,
    identical,
    make_multi_target_problem,
    ragged,
)

from gp_eval.data import Buckets, References
from gp_eval.kernels import LMCKernel, ReferenceScoreKernel
from gp_eval.models import (
    MultiTargetGP,
    SequentialBucketModel,
    SequentialMultiTargetModel,
    multi_target_inputs,
)
from gp_eval.settings import exact_inference

CLOSE = {"rtol": 1e-10, "atol": 1e-13}


def rows(pairs: list[tuple[int, int]]) -> torch.Tensor:
    """BoTorch inputs ``[item, target]`` of pairs ``(target, item)``."""
    return torch.tensor([[i, t] for t, i in pairs], dtype=torch.float64)


def check(model: SequentialMultiTargetModel, problem, coreset) -> None:
    """Everything that is said about abilities and benchmark scores."""
    mean, covariance = problem.posterior(coreset)
    torch.testing.assert_close(model.engine.mean, mean, **CLOSE)
    every = torch.arange(mean.shape[0])
    torch.testing.assert_close(
        model.engine.covariance(every, every), covariance, **CLOSE
    )
    expected, joint = problem.performance(coreset)
    torch.testing.assert_close(model.performance_mean(), expected, **CLOSE)
    torch.testing.assert_close(
        model.performance_covariance_matrix(), joint, rtol=1e-10, atol=1e-15
    )
    torch.testing.assert_close(
        model.performance_variance(), joint.diagonal(), rtol=1e-10, atol=0
    )


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("coreset", [ragged, disjoint])
@pytest.mark.parametrize("n_targets", [1, 2, 3, 20])
def test_abilities_and_benchmark_scores_against_all_item_scores(
    n_targets: int, coreset, weighted: bool
) -> None:
    """With ``ragged`` coresets the last target has no score yet."""
    problem = make_multi_target_problem(n_targets=n_targets, weighted=weighted)
    pairs = coreset(problem)
    model = problem.model()
    check(model, problem, [])
    step = max(1, len(pairs) // 4)
    for n, pair in enumerate(pairs, 1):
        problem.tell(model, pair)
        if n % step == 0 or n == len(pairs):
            check(model, problem, pairs[:n])


def test_all_scores_equal_and_two_identical_targets() -> None:
    for value in (0.0, 1.0):
        problem = make_multi_target_problem()
        problem.scores.fill_(value)
        check(problem.model(ragged(problem)), problem, ragged(problem))
    problem = identical(make_multi_target_problem())
    coreset = [(t, i) for i in (3, 0, 8) for t in (0, 1)]
    model = problem.model(coreset)
    check(model, problem, coreset)
    estimates, joint = model.performance_mean(), model.performance_covariance_matrix()
    torch.testing.assert_close(estimates[0], estimates[1], **CLOSE)
    torch.testing.assert_close(joint[0, 0], joint[1, 1], **CLOSE)
    # Their abilities are one, and the noise of what is left is not.
    noise = problem.buckets.counts[problem.buckets.item_bucket]
    left = noise.sum() - noise[[3, 0, 8]].sum()
    apart = joint[0, 0] + joint[1, 1] - 2 * joint[0, 1]
    assert float(apart) == pytest.approx(
        2 * problem.sigma2 * float(left) / problem.n_items**2, rel=1e-10
    )


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_targets", [1, 3])
def test_equation_5_with_one_over_n_of_each_target(
    n_targets: int, weighted: bool
) -> None:
    problem = make_multi_target_problem(n_targets=n_targets, weighted=weighted)
    coreset = [*ragged(problem), (0, 4)] if n_targets > 1 else [(0, 4), (0, 2)]
    coreset = list(dict.fromkeys(coreset))
    model = problem.model(coreset)
    means = model.performance_mean()
    torch.testing.assert_close(
        model.performance_estimate(unique=True), means, rtol=0, atol=0
    )
    got = model.performance_estimate(unique=False)
    for target in range(n_targets):
        if any(t == target for t, _ in coreset):
            expected = problem.estimate(coreset, target)
            assert float(got[target]) == pytest.approx(expected, rel=1e-10)
            assert expected != pytest.approx(float(means[target]), rel=1e-6)
        else:  # without a score 1 / n means nothing
            assert float(got[target]) == float(means[target])


@pytest.mark.parametrize("weighted", [False, True])
def test_covariance_and_correlation_of_points_with_benchmark_scores(
    weighted: bool,
) -> None:
    problem = make_multi_target_problem(weighted=weighted)
    coreset = ragged(problem)
    model = problem.model(coreset)
    _, covariance = problem.given(coreset)
    _, joint = problem.performance(coreset)
    rest = [pair for pair in problem.pairs if pair not in coreset]
    places = [problem.at(pair) for pair in rest]
    # Of every point with the score of every target, T N x T.
    with_scores = covariance.view(len(covariance), 3, -1) @ problem.weights
    for target in range(3):
        first = next(p for p, (t, _) in zip(places, rest, strict=True) if t == target)
        points = torch.tensor([first, *(p for p in places if p != first)])
        torch.testing.assert_close(
            model.performance_covariance(points), with_scores[points, target], **CLOSE
        )
    points = torch.tensor(places)
    own = torch.tensor([t for t, _ in rest])
    share = with_scores[points, own].square() / covariance.diagonal()[points]
    torch.testing.assert_close(
        model.squared_correlation(points), share / joint.diagonal()[own], **CLOSE
    )
    torch.testing.assert_close(
        model.score_covariance(points), covariance[points][:, points], **CLOSE
    )
    known = torch.tensor([problem.at(pair) for pair in coreset])
    assert not model.unevaluated(known).any()
    assert model.unevaluated(points).all()


def test_points_of_shapes_with_batches_are_those_of_flat_ones() -> None:
    problem = make_multi_target_problem()
    model = problem.model(ragged(problem))
    points = torch.tensor([[28, 29, 30], [41, 35, 33]])
    flat = model.squared_correlation(points.reshape(-1)).view(2, 3)
    assert torch.equal(model.squared_correlation(points), flat)
    for row, points_of_row in zip(
        model.performance_covariance(points), points, strict=True
    ):
        assert torch.equal(row, model.performance_covariance(points_of_row))


@pytest.mark.parametrize("coreset", [ragged, disjoint])
def test_refresh_conditions_from_scratch_as_the_appends_did(coreset) -> None:
    problem = make_multi_target_problem()
    model = problem.model(coreset(problem))
    before = model.performance_covariance_matrix(), model.engine.mean.clone()
    model.refresh()
    torch.testing.assert_close(
        model.performance_covariance_matrix(), before[0], **CLOSE
    )
    torch.testing.assert_close(model.engine.mean, before[1], **CLOSE)
    check(model, problem, coreset(problem))


@pytest.mark.parametrize("n", [2, 14])
def test_refresh_takes_new_hyperparameters_in_either_form(n: int) -> None:
    """Two items of three targets are fewer than 21 abilities, fourteen are more."""
    old = make_multi_target_problem()
    coreset = [(t, i) for t in range(3) for i in range(n)]
    coreset.remove((2, 1))
    model = old.model(coreset)
    problem = make_multi_target_problem(sigma2=0.2)
    problem.alphas, problem.betas = [0.9, 0.4, 0.7], [0.3, 1.2, 2.0]
    problem.task_weights = old.task_weights.flip(0) * 1.5
    with torch.no_grad():
        model.covar_module.task_weights.copy_(problem.task_weights)
        for latent, alpha, beta in zip(
            model.covar_module.latents, problem.alphas, problem.betas, strict=True
        ):
            latent.alpha, latent.beta = alpha, beta
    model.likelihood.noise = 0.2
    model.refresh()
    check(model, problem, coreset)
    problem.tell(model, (2, 1))
    check(model, problem, [*coreset, (2, 1)])


@pytest.mark.parametrize("coreset", [ragged, disjoint])
@pytest.mark.parametrize("noise", [False, True])
def test_agrees_with_the_exact_gp_of_gpytorch(coreset, noise: bool) -> None:
    problem = make_multi_target_problem()
    pairs, buckets = coreset(problem), problem.buckets
    grid = multi_target_inputs(buckets, 3)
    target, item = torch.tensor(pairs).T
    gp = MultiTargetGP(
        grid[target, buckets.item_bucket[item]],
        problem.scores[target, item].unsqueeze(-1),
        n_targets=3,
        covar_module=problem.kernel(),
    )
    gp.likelihood.noise = problem.sigma2
    every = [(t, i) for t in range(3) for i in range(problem.n_items)]
    with torch.no_grad(), exact_inference():
        theirs = gp.posterior(
            grid[:, buckets.item_bucket].flatten(0, 1), observation_noise=noise
        )
        joint = theirs.distribution.covariance_matrix
    ours = problem.model(pairs).posterior(rows(every), observation_noise=noise)
    torch.testing.assert_close(ours.mean, theirs.mean, **CLOSE)
    torch.testing.assert_close(ours.distribution.covariance_matrix, joint, **CLOSE)


def test_posterior_takes_batches_and_noise_of_ones_own() -> None:
    problem = make_multi_target_problem()
    coreset = ragged(problem)
    model = problem.model(coreset)
    _, covariance = problem.posterior(coreset)
    X = torch.stack([rows([(0, 0), (2, 7)]), rows([(1, 6), (1, 6)])])
    own = torch.tensor([[[0.1], [0.2]], [[0.3], [0.4]]], dtype=torch.float64)
    got = model.posterior(X).distribution.covariance_matrix
    noisy = model.posterior(X, observation_noise=own).distribution.covariance_matrix
    for batch, row, noise in zip(X.long(), range(2), own, strict=True):
        ability = batch[:, 1] * 7 + problem.buckets.item_bucket[batch[:, 0]]
        expected = covariance[ability][:, ability]
        torch.testing.assert_close(got[row], expected, **CLOSE)
        torch.testing.assert_close(noisy[row], expected + noise.diagflat(), **CLOSE)


def test_condition_on_observations_gives_a_new_model() -> None:
    problem = make_multi_target_problem()
    coreset = ragged(problem)
    model = problem.model(coreset)
    new = [(2, 3), (2, 0)]
    scores = torch.stack([problem.scores[pair] for pair in new]).unsqueeze(-1)
    more = model.condition_on_observations(rows(new), scores)
    check(model, problem, coreset)
    check(more, problem, [*coreset, *new])
    assert model.n == len(coreset)
    with pytest.raises(ValueError, match="shapes n x 2 and n x 1, got"):
        model.condition_on_observations(rows(new), scores.squeeze(-1))


def test_variance_of_no_benchmark_score_ever_increases() -> None:
    problem = make_multi_target_problem()
    model = problem.model()
    last = model.performance_variance().clone()
    for pair in problem.pairs[::5] + [p for p in problem.pairs if p[1] % 5]:
        if problem.at(pair) in model.seen:
            continue
        problem.tell(model, pair)
        now = model.performance_variance().clone()
        assert bool((now <= last * (1 + 1e-12)).all())
        assert float(now[pair[0]]) < float(last[pair[0]])
        last = now


def test_the_order_of_pairs_does_not_matter() -> None:
    problem = make_multi_target_problem(weighted=True)
    coreset = ragged(problem)
    one, two = problem.model(coreset), problem.model(coreset[::-1])
    torch.testing.assert_close(one.engine.mean, two.engine.mean, **CLOSE)
    torch.testing.assert_close(
        one.performance_covariance_matrix(),
        two.performance_covariance_matrix(),
        **CLOSE,
    )


@pytest.mark.parametrize("weighted", [False, True])
def test_a_complete_target_is_exact_while_the_others_are_not(weighted: bool) -> None:
    problem = make_multi_target_problem(weighted=weighted)
    n_items = problem.n_items
    coreset = [(1, i) for i in range(n_items)] + [(0, 3), (2, 5)]
    model = problem.model(coreset)
    check(model, problem, coreset)
    truth = float((problem.buckets.item_weights * problem.scores[1]).sum() / n_items)
    for unique in (True, False):
        estimate = model.performance_estimate(unique=unique)[1]
        assert float(estimate) == pytest.approx(truth, rel=1e-15)
    joint = model.performance_covariance_matrix()
    assert joint[1].tolist() == joint[:, 1].tolist() == [0.0, 0.0, 0.0]
    assert float(joint[0, 0]) > 0.0
    assert float(joint[0, 2]) != 0.0
    assert model.squared_correlation(torch.arange(14, 28)).tolist() == [0.0] * 14
    assert bool((model.squared_correlation(torch.tensor([0, 28])) > 0).all())
    model.refresh()
    assert model.performance_covariance_matrix()[1].tolist() == [0.0, 0.0, 0.0]


@pytest.mark.parametrize("weighted", [False, True])
def test_lookahead_conditions_variances_and_restores_exactly(weighted: bool) -> None:
    problem = make_multi_target_problem(weighted=weighted)
    coreset, more = ragged(problem), [(2, 6), (0, 12), (2, 7)]
    more = [pair for pair in more if pair not in coreset]
    model = problem.model(coreset)
    names = ("mean", "variance", "remaining", "covariance_with_rest")
    before = [getattr(model.engine, name).clone() for name in names]
    joint = model.performance_covariance_matrix().clone()
    with model.lookahead() as add:
        for n, pair in enumerate(more, 1):
            add(problem.at(pair))
            torch.testing.assert_close(
                model.performance_covariance_matrix(),
                problem.performance([*coreset, *more[:n]])[1],
                **CLOSE,
            )
        assert not model.unevaluated(torch.tensor(problem.at(more[0])))
    for name, value in zip(names, before, strict=True):
        assert torch.equal(getattr(model.engine, name), value)
    assert torch.equal(model.performance_covariance_matrix(), joint)
    assert model.unevaluated(torch.tensor(problem.at(more[0])))
    problem.tell(model, more[0])
    check(model, problem, [*coreset, more[0]])


def test_a_copy_keeps_its_hyperparameters_when_the_original_gets_new_ones() -> None:
    problem = make_multi_target_problem()
    coreset = ragged(problem)
    model = problem.model(coreset)
    copy = model.clone()
    with torch.no_grad():
        model.covar_module.task_weights.mul_(2.0)
    for latent in model.covar_module.latents:
        latent.alpha, latent.beta = 0.9, 0.3
    model.refresh()
    problem.tell(copy, (2, 6))
    check(copy, problem, [*coreset, (2, 6)])
    assert model.n == len(coreset)


def single(problem: MultiTargetProblem, latent: int, target: int, coreset):
    """The single-target model with one latent of the problem, for one target."""
    kernel = problem.kernel().latents[latent]
    model = SequentialBucketModel(
        problem.buckets, noise=problem.sigma2, covar_module=kernel
    )
    for t, item in coreset:
        if t == target:
            model.append(item, problem.scores[target, item])
    return model


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("counts", [(1, 4, 2, 1, 3, 1, 2), (1,) * 14])
def test_one_target_with_one_latent_is_the_single_target_model(
    counts: tuple[int, ...], weighted: bool
) -> None:
    problem = make_multi_target_problem(n_targets=1, counts=counts, weighted=weighted)
    problem.task_weights = torch.ones(1, 1, dtype=torch.float64)
    coreset = [(0, i) for i in (3, 0, 11, 7, 5)]
    many, one = problem.model(coreset), single(problem, 0, 0, coreset)
    points = torch.tensor([1, 2, 4, 13])
    torch.testing.assert_close(many.engine.mean, one.engine.mean, **CLOSE)
    torch.testing.assert_close(many.engine.variance, one.engine.variance, **CLOSE)
    torch.testing.assert_close(
        many.performance_variance()[0], one.performance_variance(), **CLOSE
    )
    for unique in (True, False):
        torch.testing.assert_close(
            many.performance_estimate(unique=unique)[0],
            one.performance_estimate(unique=unique),
            **CLOSE,
        )
    for name in ("performance_covariance", "squared_correlation", "score_covariance"):
        torch.testing.assert_close(
            getattr(many, name)(points), getattr(one, name)(points), **CLOSE
        )


@pytest.mark.parametrize("weighted", [False, True])
def test_with_diagonal_weights_targets_are_models_of_their_own(weighted: bool) -> None:
    problem = make_multi_target_problem(weighted=weighted)
    problem.task_weights = torch.eye(3, dtype=torch.float64)
    coreset = ragged(problem)
    many = problem.model(coreset)
    joint = many.performance_covariance_matrix()
    assert torch.equal(joint, joint.diagonal().diag())
    for target in range(3):
        one = single(problem, target, target, coreset)
        torch.testing.assert_close(
            many.engine.mean.view(3, -1)[target], one.engine.mean, **CLOSE
        )
        torch.testing.assert_close(
            joint[target, target], one.performance_variance(), **CLOSE
        )
        points = torch.tensor([i for i in range(14) if i not in one.seen])
        torch.testing.assert_close(
            many.squared_correlation(points + target * 14),
            one.squared_correlation(points),
            **CLOSE,
        )
        torch.testing.assert_close(
            many.performance_estimate(unique=False)[target],
            one.performance_estimate(unique=False),
            **CLOSE,
        )


def test_leaving_out_a_target_never_changes_the_prior_of_another() -> None:
    """Masking the missing scores of a grid would."""
    problem = make_multi_target_problem()
    two = make_multi_target_problem()
    two.scores, two.task_weights = two.scores[:2], two.task_weights[:, :2]
    prior, smaller = problem.model(), two.model()
    torch.testing.assert_close(
        prior.performance_covariance_matrix()[:2, :2],
        smaller.performance_covariance_matrix(),
        **CLOSE,
    )
    coreset = [(0, 3), (1, 5), (0, 8)]
    with_third, without = problem.model(coreset), two.model(coreset)
    torch.testing.assert_close(
        with_third.engine.mean[:14], without.engine.mean, **CLOSE
    )
    torch.testing.assert_close(
        with_third.performance_covariance_matrix()[:2, :2],
        without.performance_covariance_matrix(),
        **CLOSE,
    )


def test_scores_of_a_target_inform_the_others_and_only_through_weights() -> None:
    problem = make_multi_target_problem()
    alone = float(problem.model().performance_variance()[2])
    informed = problem.model([(0, i) for i in range(14)])
    assert float(informed.performance_variance()[2]) < 0.999 * alone
    problem.task_weights[:, 0] = 0.0
    deaf, prior = problem.model([(0, i) for i in range(14)]), problem.model()
    assert torch.equal(
        deaf.performance_variance()[1:], prior.performance_variance()[1:]
    )
    assert torch.equal(deaf.performance_mean()[1:], prior.performance_mean()[1:])


def test_any_kernels_of_gpytorch_as_latents() -> None:
    problem = make_multi_target_problem(n_targets=2)
    latents = [
        ScaleKernel(RBFKernel()),
        ScaleKernel(MaternKernel(nu=2.5)),
        ReferenceScoreKernel(),
    ]
    kernel = LMCKernel(latents, 2).double()
    coreset = disjoint(problem)
    model = SequentialMultiTargetModel(
        problem.buckets, n_targets=2, noise=problem.sigma2, covar_module=kernel
    )
    for pair in coreset:
        problem.tell(model, pair)
    with torch.no_grad():
        problem.ability_covariance = sum(
            torch.kron(torch.outer(w, w), latent(problem.buckets.phi).to_dense())
            for w, latent in zip(kernel.task_weights, latents, strict=True)
        )
    # RBF of GPyTorch expands squares, ours does not.
    mean, covariance = problem.posterior(coreset)
    torch.testing.assert_close(model.engine.mean, mean, rtol=1e-9, atol=1e-11)
    torch.testing.assert_close(
        model.engine.variance, covariance.diagonal(), rtol=1e-9, atol=1e-11
    )


def test_the_default_prior_has_a_latent_for_each_target_and_the_mean_of_phi() -> None:
    problem = make_multi_target_problem()
    model = SequentialMultiTargetModel(problem.buckets, n_targets=3)
    assert model.covar_module.task_weights.shape == (3, 3)
    assert model.likelihood.noise.tolist() == [0.1]
    expected = problem.buckets.phi.mean(1).repeat(3)
    torch.testing.assert_close(model.prior_mean, expected, **CLOSE)
    prior = float(problem.references.scores.mean())
    torch.testing.assert_close(
        model.performance_estimate(unique=False),
        torch.full((3,), prior, dtype=torch.float64),
        **CLOSE,
    )


def test_a_mean_with_new_parameters_counts_after_refresh() -> None:
    problem, mean = make_multi_target_problem(), ConstantMean()
    model = SequentialMultiTargetModel(problem.buckets, n_targets=3, mean_module=mean)
    mean.constant = 0.7
    model.refresh()
    assert model.performance_mean().tolist() == pytest.approx([0.7] * 3)


def test_zero_weights_are_items_that_do_not_count() -> None:
    problem = make_multi_target_problem()
    references = problem.references
    weights = torch.ones(problem.n_items, dtype=torch.float64)
    weights[[2, 5]] = 0.0
    problem.references = References(
        references.scores, references.items, references.models, item_weights=weights
    )
    problem.buckets = Buckets.from_references(problem.references)
    coreset = ragged(problem)
    check(problem.model(coreset), problem, coreset)
    left = [(0, i) for i in range(14) if i not in (2, 5)]
    joint = problem.model(left).performance_covariance_matrix()
    assert joint[0].tolist() == [0.0, 0.0, 0.0]


def test_points_are_rows_of_item_and_target() -> None:
    model = make_multi_target_problem().model()
    X = torch.tensor([[4.0, 0.0], [4.0, 2.0]])
    assert model.points(X).tolist() == [4, 32]
    assert model.target_of(model.points(X)).tolist() == [0, 2]
    for target in (-1.0, 3.0, 0.5, float("nan")):
        with pytest.raises(ValueError, match=r"X: expected targets 0\.\.2"):
            model.points(torch.tensor([[4.0, target]]))
    for item in (-1.0, 14.0, 0.5):
        with pytest.raises(ValueError, match=r"expected indices 0\.\.13"):
            model.posterior(torch.tensor([[item, 1.0]]))


def test_errors_name_what_is_wrong() -> None:
    problem = make_multi_target_problem()
    model = problem.model([(1, 4)])
    with pytest.raises(ValueError, match="item: 4 of target 1 is evaluated already"):
        model.append(18, 0.5)
    for noise in (0.0, -0.1, float("nan")):
        with pytest.raises(ValueError, match=r"noise: expected sigma\^2 > 0"):
            SequentialMultiTargetModel(problem.buckets, n_targets=3, noise=noise)
    with pytest.raises(ValueError, match="covar_module: expected 2 targets, got 3"):
        SequentialMultiTargetModel(
            problem.buckets, n_targets=2, covar_module=problem.kernel()
        )
    with pytest.raises(RuntimeError, match="cannot be moved or cast"):
        model.to(torch.float32)
    with pytest.raises(ValueError, match=r"idcs: expected \[0\]"):
        model.subset_output([1])
