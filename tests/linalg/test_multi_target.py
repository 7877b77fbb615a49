from __future__ import annotations

from copy import copy

import pytest
import torch
from gpytorch.kernels import MaternKernel, RBFKernel, ScaleKernel
from multi_target_oracle import (
    MultiTargetProblem,
    Pair,
    disjoint,
    make_multi_target_problem,
    ragged,
)

from gp_eval.kernels import LMCKernel, ReferenceScoreKernel
from gp_eval.linalg import (
    LMCTable,
    MultiTargetPosterior,
    Observations,
    RowAppendPosterior,
)
from gp_eval.linalg.lmc_table import shared_distances

CLOSE = {"rtol": 1e-10, "atol": 1e-13}


def engine(problem: MultiTargetProblem) -> MultiTargetPosterior:
    buckets = problem.buckets
    return MultiTargetPosterior(
        LMCTable(problem.kernel(), buckets.phi),
        buckets.phi.mean(1).repeat(problem.n_targets),
        buckets.counts.repeat(problem.n_targets),
        n_targets=problem.n_targets,
    )


def ability(problem: MultiTargetProblem, pair: Pair) -> int:
    target, item = pair
    return target * problem.buckets.n_buckets + int(problem.buckets.item_bucket[item])


def append(made: MultiTargetPosterior, problem: MultiTargetProblem, pair: Pair) -> None:
    noise = problem.sigma2 * float(
        problem.buckets.counts[problem.buckets.item_bucket[pair[1]]]
    )
    made.append(ability(problem, pair), float(problem.scores[pair]), noise, 1.0)


def remaining(problem: MultiTargetProblem, coreset: list[Pair]) -> torch.Tensor:
    left = problem.buckets.counts.repeat(problem.n_targets)
    for pair in coreset:
        left[ability(problem, pair)] -= 1.0
    return left


def check(
    made: MultiTargetPosterior, problem: MultiTargetProblem, coreset: list[Pair]
) -> None:
    """All that the engine keeps, against the T B x T B posterior of the oracle."""
    mean, covariance = problem.posterior(coreset)
    torch.testing.assert_close(made.mean, mean, **CLOSE)
    torch.testing.assert_close(made.variance, covariance.diagonal(), **CLOSE)
    left = remaining(problem, coreset)
    torch.testing.assert_close(made.remaining, left, rtol=0, atol=0)
    size = problem.n_targets
    columns = torch.stack(
        [
            covariance[:, t * problem.buckets.n_buckets :][
                :, : problem.buckets.n_buckets
            ]
            @ left.view(size, -1)[t]
            for t in range(size)
        ]
    )
    torch.testing.assert_close(made.covariance_with_rest, columns, **CLOSE)
    blocks = covariance.view(size, -1, size, problem.buckets.n_buckets)
    rest = torch.einsum(
        "ta,tasb,sb->ts", left.view(size, -1), blocks, left.view(size, -1)
    )
    torch.testing.assert_close(made.rest_covariance(), rest, **CLOSE)


@pytest.mark.parametrize(
    ("n_targets", "n_latents"), [(1, 1), (2, 2), (3, 3), (3, 1), (2, 5), (20, 20)]
)
def test_all_views_of_the_table_are_the_sum_of_kronecker_products(
    n_targets: int, n_latents: int
) -> None:
    problem = make_multi_target_problem(n_targets=n_targets, n_latents=n_latents)
    table, expected = (
        LMCTable(problem.kernel(), problem.buckets.phi),
        problem.ability_covariance,
    )
    close = {"rtol": 1e-12, "atol": 1e-14}
    size = expected.shape[0]
    generator = torch.Generator().manual_seed(0)
    for pair in range(size):
        torch.testing.assert_close(table.row(pair), expected[pair], **close)
    torch.testing.assert_close(table.diagonal(), expected.diagonal(), **close)
    rows = torch.randint(size, (5,), generator=generator)
    columns = torch.randint(size, (4,), generator=generator)
    torch.testing.assert_close(
        table.block(rows, columns), expected[rows][:, columns], **close
    )
    for part in (slice(0, 3), slice(2, 512), slice(None)):
        torch.testing.assert_close(
            table.block(rows, part), expected[rows][:, part], **close
        )
    vector = torch.rand(size, 3, generator=generator, dtype=torch.float64)
    torch.testing.assert_close(table.matvec(vector), expected @ vector, **close)
    torch.testing.assert_close(
        table.matvec(vector[:, 0]), expected @ vector[:, 0], **close
    )


def test_latents_of_gpytorch_and_of_ours_mix_in_one_table() -> None:
    problem = make_multi_target_problem(n_targets=2)
    phi = problem.buckets.phi
    weighted = ReferenceScoreKernel(weights=torch.linspace(0.1, 2.0, 5).double())
    latents = [
        ScaleKernel(RBFKernel()),
        ReferenceScoreKernel(),
        weighted,
        MaternKernel(1.5),
    ]
    kernel = LMCKernel(latents, 2).double()
    table = LMCTable(kernel, phi)
    rows = torch.cat(
        [
            torch.cat([phi, torch.ones(7, 1), torch.full((7, 1), float(t))], -1)
            for t in range(2)
        ]
    )
    with torch.no_grad():
        expected = kernel(rows).to_dense()
    everything = torch.arange(14)
    torch.testing.assert_close(
        table.block(everything, everything), expected, rtol=1e-10, atol=1e-12
    )
    # Distances of a kernel with weights are its own, and not for the others to share.
    plain = (phi.unsqueeze(1) - phi).square().sum(-1)
    torch.testing.assert_close(table.shared, plain, **CLOSE)
    assert table.tables[1].distances is table.shared
    assert table.tables[2].distances is not table.shared
    assert shared_distances(LMCKernel([RBFKernel()], 2), phi) is None


def test_a_refresh_leaves_a_shallow_copy_of_the_table_alone() -> None:
    problem = make_multi_target_problem()
    table = LMCTable(problem.kernel(), problem.buckets.phi)
    twin = copy(table)
    for latent in table.kernel.latents:
        latent.alpha = 2.0
    table.refresh()
    torch.testing.assert_close(twin.row(3), problem.ability_covariance[3], **CLOSE)
    torch.testing.assert_close(
        twin.diagonal(), problem.ability_covariance.diagonal(), **CLOSE
    )
    assert not torch.allclose(table.row(3), twin.row(3))


@pytest.mark.parametrize("coreset", [ragged, disjoint])
@pytest.mark.parametrize("n_targets", [2, 3, 20])
def test_appends_are_the_joint_posterior_after_every_pair(n_targets, coreset) -> None:
    problem = make_multi_target_problem(n_targets=n_targets)
    made, told = engine(problem), []
    check(made, problem, told)
    pairs = coreset(problem)
    step = max(1, len(pairs) // 8)
    for n, pair in enumerate(pairs, 1):
        append(made, problem, pair)
        told.append(pair)
        if n % step == 0 or n == len(pairs):
            check(made, problem, told)


@pytest.mark.parametrize("form", [Observations.by_item, Observations.by_bucket])
def test_conditioning_at_once_is_the_same_in_both_forms(form) -> None:
    problem = make_multi_target_problem()
    coreset = [*ragged(problem), *((0, i) for i in range(14))]
    coreset = list(dict.fromkeys(coreset))
    made = engine(problem)
    made.remaining = remaining(problem, coreset)
    made.condition(
        form(
            torch.tensor([ability(problem, pair) for pair in coreset]),
            torch.stack([problem.scores[pair] for pair in coreset]),
            problem.sigma2 * problem.buckets.counts.repeat(3),
        )
    )
    check(made, problem, coreset)
    append(made, problem, (2, 5))
    check(made, problem, [*coreset, (2, 5)])


def test_blocks_of_columns_are_joined_right_beyond_their_size() -> None:
    """512 columns are solved for at a time; here there are 600."""
    problem = make_multi_target_problem(1, n_targets=3, counts=(1,) * 200)
    coreset = [(i % 3, i) for i in range(0, 200, 5)]
    made = engine(problem)
    made.remaining = remaining(problem, coreset)
    made.condition(
        Observations.by_item(
            torch.tensor([ability(problem, pair) for pair in coreset]),
            torch.stack([problem.scores[pair] for pair in coreset]),
            problem.sigma2 * problem.buckets.counts.repeat(3),
        )
    )
    check(made, problem, coreset)


@pytest.mark.parametrize(("scale", "rtol"), [(1.0, 1e-9), (10.0, 1e-7)])
def test_stays_exact_after_many_appends(scale: float, rtol: float) -> None:
    """Against one Cholesky after 0.9 T N appends; the prior is up to 1e6 the noise."""
    problem = make_multi_target_problem(1, n_targets=4, counts=(1,) * 100, sigma2=1e-4)
    problem.task_weights, problem.betas = scale * problem.task_weights, [0.05] * 4
    order = torch.randperm(400, generator=torch.Generator().manual_seed(2)).tolist()
    coreset = [problem.pairs[place] for place in order[:360]]
    made, direct = engine(problem), engine(problem)
    for pair in coreset:
        append(made, problem, pair)
    direct.remaining = remaining(problem, coreset)
    direct.condition(
        Observations.by_item(
            torch.tensor([ability(problem, pair) for pair in coreset]),
            torch.stack([problem.scores[pair] for pair in coreset]),
            problem.sigma2 * problem.buckets.counts.repeat(4),
        )
    )
    close = {"rtol": rtol, "atol": rtol * 1e-3}
    torch.testing.assert_close(made.mean, direct.mean, **close)
    torch.testing.assert_close(made.variance, direct.variance, **close)
    torch.testing.assert_close(
        made.covariance_with_rest, direct.covariance_with_rest, **close
    )


def test_one_target_is_the_engine_of_one_target() -> None:
    problem = make_multi_target_problem(n_targets=1)
    made = engine(problem)
    single = RowAppendPosterior(made.table, made.prior_mean, made.remaining)
    for item in (3, 0, 11, 7, 5):
        append(made, problem, (0, item))
        append(single, problem, (0, item))
        assert torch.equal(made.mean, single.mean)
        assert torch.equal(made.variance, single.variance)
        torch.testing.assert_close(
            made.covariance_with_rest[0], single.covariance_with_rest, **CLOSE
        )


def test_variances_never_increase_and_stay_positive() -> None:
    problem = make_multi_target_problem()
    made = engine(problem)
    variance, rest = made.variance.clone(), made.rest_covariance().diagonal()
    for pair in problem.pairs:
        append(made, problem, pair)
        assert bool((made.variance <= variance).all())
        assert bool((made.variance > 0).all())
        now = made.rest_covariance().diagonal()
        assert bool((now <= rest * (1 + 1e-12) + 1e-15).all())
        variance, rest = made.variance.clone(), now
    assert made.rest_covariance().count_nonzero() == 0


def test_the_covariance_of_the_rest_is_symmetric_and_exactly_0_once_complete() -> None:
    problem = make_multi_target_problem()
    made = engine(problem)
    for item in range(problem.n_items):
        append(made, problem, (1, item))
    append(made, problem, (0, 4))
    rest = made.rest_covariance()
    assert torch.equal(rest, rest.T)
    assert rest[1].tolist() == [0.0, 0.0, 0.0]
    assert float(rest[0, 2]) != 0.0


def test_snapshot_and_clone() -> None:
    problem = make_multi_target_problem()
    made = engine(problem)
    append(made, problem, (0, 3))
    twin, state = made.clone(), made.snapshot()
    names = ("mean", "variance", "remaining", "covariance_with_rest")
    before = {name: getattr(made, name).clone() for name in names}
    append(made, problem, (1, 5))
    append(made, problem, (2, 3))
    assert not torch.equal(made.covariance_with_rest, before["covariance_with_rest"])
    made.restore(state)
    for name, value in before.items():
        assert torch.equal(getattr(made, name), value)
        assert torch.equal(getattr(twin, name), value)
    assert twin.n_targets == 3
    append(made, problem, (2, 6))
    append(twin, problem, (2, 6))
    check(made, problem, [(0, 3), (2, 6)])
    check(twin, problem, [(0, 3), (2, 6)])
