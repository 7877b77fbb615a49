from __future__ import annotations

import numpy as np
import pytest
import torch
from batches import all_batches, conditioned, left_over
from botorch.models.deterministic import GenericDeterministicModel
from oracles import Problem, make_problem

from gp_eval.acquisition import (
    RandomSelection,
    optimize_batch,
    qPerformanceInformationGain,
    qVarianceReduction,
    select_items,
)
from gp_eval.acquisition.batch import SearchSettings, search
from gp_eval.models.baselines.latent_scores import LatentScoreModel

UNIQUE = (1,) * 18


def instance(seed: int) -> tuple[Problem, list[int]]:
    """Smooth or rough, with more or less noise, with something evaluated or not."""
    problem = make_problem(seed, counts=UNIQUE, n_references=1 + seed % 6)
    problem.beta = (0.5, 2.0, 10.0, 60.0)[seed % 4]
    problem.sigma2 = (1e-4, 1e-2)[seed % 2]
    return problem, list(range(seed % 5))


@pytest.mark.parametrize("q", [3, 4])
def test_search_finds_the_exhaustive_optimum(q: int) -> None:
    found = 0
    for seed in range(100):
        problem, coreset = instance(seed)
        gain = qPerformanceInformationGain(conditioned(problem, coreset))
        result = optimize_batch(gain, q, left_over(problem, coreset), seed=seed)
        batches, values = all_batches(problem, coreset, q)
        value = values[batches.index(sorted(result.items))]
        found += bool(value >= values.max() * (1 - 1e-9))
    assert found >= 95, found


@pytest.mark.parametrize("q", [2, 3, 5, 8])
def test_no_method_returns_less_than_greedy(q: int) -> None:
    settings = SearchSettings(population=2, rounds=1, patience=1)
    strictly = 0
    for seed in range(25):
        problem, coreset = instance(seed)
        gain = qPerformanceInformationGain(conditioned(problem, coreset))
        available = left_over(problem, coreset)
        order = torch.arange(problem.n_items)
        items = select_items(gain, available, q=q, same_as=order, rank=order)
        greedy = float(gain.of_items(torch.tensor([items])))
        for method in ("auto", "search", "greedy"):
            result = optimize_batch(
                gain, q, available, method=method, seed=seed, settings=settings
            )
            assert result.value >= greedy
            strictly += result.value > greedy * (1 + 1e-6)
    assert strictly


def test_value_and_trace_are_those_of_the_acquisition() -> None:
    problem, coreset = instance(3)
    model, available = conditioned(problem, coreset), left_over(problem, coreset)
    for kind in (qPerformanceInformationGain, qVarianceReduction):
        for q in (1, 2, 4):
            result = optimize_batch(kind(model), q, available)
            value = kind(model).of_items(torch.tensor([result.items]))
            assert result.value == pytest.approx(float(value), rel=1e-12)
            assert result.trace == sorted(result.trace)
            assert result.trace[-1] == result.value
            assert len(result.items) == len(set(result.items)) == q
            assert bool(available[result.items].all())
            assert (len(result.trace) > 1) == (q == 4)
    expected = problem.gain(coreset, result.items)
    assert optimize_batch(
        qPerformanceInformationGain(model), 4, available
    ).value == pytest.approx(expected, rel=1e-9)


def test_two_are_chosen_exactly_and_search_agrees() -> None:
    for seed in range(20):
        problem, coreset = instance(seed)
        gain = qPerformanceInformationGain(conditioned(problem, coreset))
        available = left_over(problem, coreset)
        exact = optimize_batch(gain, 2, available)
        assert exact.method == "exact"
        batches, values = all_batches(problem, coreset, 2)
        assert sorted(exact.items) == batches[int(values.argmax())]
        searched = optimize_batch(gain, 2, available, method="search")
        assert searched.method == "search"
        assert searched.value == pytest.approx(exact.value, rel=1e-10)


def test_items_come_in_greedy_order_within_the_batch() -> None:
    problem, coreset = instance(7)
    gain = qPerformanceInformationGain(conditioned(problem, coreset))
    items = optimize_batch(gain, 4, left_over(problem, coreset)).items
    for k in range(4):
        prefix = [problem.gain(coreset, [*items[:k], j]) for j in items[k:]]
        assert max(prefix) == pytest.approx(prefix[0], rel=1e-9)


@pytest.mark.parametrize("q", [2, 4])
def test_pending_items_count_as_evaluated(q: int) -> None:
    for seed in range(6):
        problem, coreset = instance(seed)
        waiting = [9, 14]
        told = qPerformanceInformationGain(conditioned(problem, [*coreset, *waiting]))
        available = left_over(problem, [*coreset, *waiting])
        expected = optimize_batch(told, q, available)
        gain = qPerformanceInformationGain(conditioned(problem, coreset))
        given = optimize_batch(gain, q, available, pending=waiting)
        assert given.items == expected.items
        assert given.value == pytest.approx(expected.value, rel=1e-9)
        X = torch.tensor([[9.0], [14.0]], dtype=torch.float64)
        gain.set_X_pending(X)
        assert optimize_batch(gain, q, available).items == expected.items
        assert torch.equal(gain.X_pending, X)
        assert gain.model.n == len(coreset)


def test_seed_fixes_the_search_and_nothing_global_is_used() -> None:
    problem = make_problem(5, counts=(1,) * 60, n_references=2)
    problem.beta = 60.0
    gain = qPerformanceInformationGain(conditioned(problem, []))
    available = left_over(problem, [])
    short = SearchSettings(population=3, rounds=2)
    first = optimize_batch(gain, 6, available, seed=1, settings=short)
    state = torch.get_rng_state()
    other = np.random.get_state()[1].copy()  # noqa: NPY002 - that it stays untouched
    assert optimize_batch(gain, 6, available, seed=1, settings=short) == first
    assert torch.equal(torch.get_rng_state(), state)
    assert np.array_equal(np.random.get_state()[1], other)  # noqa: NPY002
    traces = {
        tuple(optimize_batch(gain, 6, available, seed=s, settings=short).trace)
        for s in range(5)
    }
    assert len(traces) > 1


def test_all_that_is_left_is_taken() -> None:
    problem, coreset = make_problem(0, counts=UNIQUE), list(range(15))
    gain = qPerformanceInformationGain(conditioned(problem, coreset))
    for q in (3, 7):
        result = optimize_batch(gain, q, left_over(problem, coreset))
        assert sorted(result.items) == [15, 16, 17]
    assert optimize_batch(gain, 1, left_over(problem, coreset)).method == "exact"


def test_items_of_one_bucket_go_by_rank() -> None:
    problem = make_problem(2, counts=(3,) * 6)
    gain = qPerformanceInformationGain(conditioned(problem, []))
    bucket, available = problem.buckets.item_bucket, left_over(problem, [])
    rank = torch.randperm(18, generator=torch.Generator().manual_seed(0))
    for q in (2, 4):
        ranked = optimize_batch(gain, q, available, same_as=bucket, rank=rank)
        plain = optimize_batch(gain, q, available)
        assert ranked.value == pytest.approx(plain.value, rel=1e-10)
        for b in bucket[ranked.items].unique():
            chosen = [i for i in ranked.items if bucket[i] == b]
            members = (bucket == b).nonzero().squeeze(1)
            expected = members[rank[members].argsort()][: len(chosen)]
            assert sorted(chosen) == sorted(expected.tolist())


def test_weighted_items_of_one_bucket_are_not_the_same() -> None:
    problem = make_problem(2, counts=(3,) * 6, weighted=True)
    gain = qPerformanceInformationGain(conditioned(problem, []))
    bucket, available = problem.buckets.item_bucket, left_over(problem, [])
    result = optimize_batch(
        gain, 3, available, same_as=bucket, rank=torch.arange(18).flip(0)
    )
    batches, values = all_batches(problem, [], 3)
    assert sorted(result.items) == batches[int(values.argmax())]


@pytest.mark.parametrize("start", ["lars", "dpp", "kmeans"])
def test_every_start_serves_by_itself(start: str) -> None:
    hits = 0
    for seed in range(10):
        problem, coreset = instance(seed)
        gain = qPerformanceInformationGain(conditioned(problem, coreset))
        available = left_over(problem, coreset)
        one = optimize_batch(gain, 4, available, starts=[start])
        hits += one.value >= optimize_batch(gain, 4, available).value * (1 - 1e-9)
    assert hits >= 9


def test_features_of_your_own_take_the_place_of_reference_scores() -> None:
    scores = torch.rand(20, 4, generator=torch.Generator().manual_seed(0)).double()
    weights = torch.full((20,), 1 / 20, dtype=torch.float64)
    model = LatentScoreModel(scores, weights, noise=0.01)
    acquisition = qVarianceReduction(model)
    available = torch.ones(20, dtype=torch.bool)
    assert len(optimize_batch(acquisition, 4, available).items) == 4
    with pytest.raises(ValueError, match="features: expected N x d features"):
        optimize_batch(acquisition, 4, available, starts=["kmeans"])
    result = optimize_batch(
        acquisition, 4, available, starts=["kmeans"], features=scores
    )
    assert len(result.items) == 4


def test_a_swap_is_taken_only_if_it_helps() -> None:
    problem, coreset = instance(11)
    gain = qPerformanceInformationGain(conditioned(problem, coreset))
    objective = search.BatchObjective(
        gain.model, left_over(problem, coreset).nonzero().squeeze(1)
    )
    rng = np.random.default_rng(0)
    batches = torch.stack(
        [torch.from_numpy(rng.choice(len(objective), 4, False)) for _ in range(30)]
    )
    better = search.improve_by_swaps(objective, batches, rng=rng)
    values = objective.values(better)
    assert bool((values >= objective.values(batches)).all())
    for batch, value in zip(better.tolist(), values.tolist(), strict=True):
        for m in range(4):
            for item in set(range(len(objective))) - set(batch):
                other = torch.tensor([[*batch[:m], item, *batch[m + 1 :]]])
                assert float(objective.values(other)) <= value * (1 + 1e-9)


def test_errors_name_the_argument(problem: Problem) -> None:
    gain = qPerformanceInformationGain(conditioned(problem, []))
    every = torch.ones(14, dtype=torch.bool)
    with pytest.raises(ValueError, match="method: expected one of"):
        optimize_batch(gain, 2, every, method="best")
    with pytest.raises(ValueError, match="q: expected at least 1, got 0"):
        optimize_batch(gain, 0, every)
    with pytest.raises(ValueError, match="q: expected at least 1 and at most 2"):
        optimize_batch(gain, 3, every, method="exact")
    with pytest.raises(ValueError, match="available: expected at least one item"):
        optimize_batch(gain, 2, ~every)
    with pytest.raises(ValueError, match=r"starts: expected .*got \['luck'\]"):
        optimize_batch(gain, 3, every, starts=["luck"])
    with pytest.raises(ValueError, match="population: expected at least 1, got 0"):
        SearchSettings(population=0)
    other = RandomSelection(GenericDeterministicModel(lambda X: X), n_items=14)
    with pytest.raises(ValueError, match="acquisition: expected .*RandomSelection"):
        optimize_batch(other, 3, every)
