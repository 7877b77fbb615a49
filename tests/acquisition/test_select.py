from __future__ import annotations

import pytest
import torch
from botorch.acquisition.acquisition import AcquisitionFunction
from botorch.models.deterministic import GenericDeterministicModel
from oracles import Problem

from gp_eval.acquisition import qPerformanceInformationGain, select_items
from gp_eval.models import SequentialBucketModel


class Table(AcquisitionFunction):
    """A third party's acquisition without lookahead, from a table of values."""

    def __init__(self, values: list[float]) -> None:
        super().__init__(GenericDeterministicModel(lambda X: X))
        self.values = torch.tensor(values, dtype=torch.float64)
        self.seen: list[list[int]] = []
        self.set_X_pending(None)

    def forward(self, X: torch.Tensor) -> torch.Tensor:
        pending = self.X_pending
        self.seen.append([] if pending is None else pending.flatten().int().tolist())
        return self.values[X[:, 0, 0].long()]


def select(acquisition: AcquisitionFunction, n: int, **options) -> list[int]:
    defaults = {
        "q": 1,
        "same_as": torch.arange(n),
        "rank": torch.arange(n),
        **options,
    }
    available = defaults.pop("available", torch.ones(n, dtype=torch.bool))
    return select_items(acquisition, available, **defaults)


def test_takes_the_maximum_of_what_is_available() -> None:
    available = torch.tensor([True, False, True])
    assert select(Table([0.1, 0.9, 0.2]), 3, available=available) == [2]
    assert available.tolist() == [True, False, True]


def test_ties_go_to_the_lowest_index() -> None:
    assert select(Table([0.1, 0.5, 0.5 * (1 + 1e-13), 0.2]), 4) == [1]
    assert select(Table([0.1, 0.5, 0.5 * (1 + 1e-11), 0.2]), 4) == [2]
    assert select(Table([-0.2, -0.1 * (1 + 1e-13), -0.1]), 3) == [1]


def test_items_of_one_bucket_go_by_rank() -> None:
    same_as, rank = torch.tensor([0, 1, 0, 1]), torch.tensor([3, 1, 0, 2])
    chosen = select(Table([0.5, 0.5, 0.5, 0.5]), 4, same_as=same_as, rank=rank)
    assert chosen == [2]


def test_third_party_acquisitions_get_pending_points() -> None:
    table = Table([0.1, 0.9, 0.8, 0.7])
    available = torch.tensor([True, True, True, False])
    assert select(table, 4, q=2, pending=[3], available=available) == [1, 2]
    assert table.seen == [[3], [3, 1]]
    assert table.X_pending is None


def test_fewer_than_asked_when_there_are_no_more() -> None:
    assert select(Table([0.1, 0.9]), 2, q=5) == [1, 0]


def test_a_batch_equals_one_by_one_evaluation(problem: Problem) -> None:
    """The gain does not depend on the scores."""
    buckets = problem.buckets
    options = {"same_as": buckets.item_bucket, "rank": torch.arange(14)}
    model = SequentialBucketModel(buckets, noise=problem.sigma2)
    gain = qPerformanceInformationGain(model)
    batch = select(gain, 14, q=6, **options)
    available, single = torch.ones(14, dtype=torch.bool), []
    for _ in range(6):
        item = select(gain, 14, available=available, **options)[0]
        model.append(item, problem.scores[item])
        available[item] = False
        single.append(item)
    assert batch == single


def test_a_batch_equals_greedy_joint_gain_by_brute_force(problem: Problem) -> None:
    problem.alpha = problem.beta = 1.0
    model = SequentialBucketModel(problem.buckets, noise=problem.sigma2)
    chosen = select(
        qPerformanceInformationGain(model),
        14,
        q=3,
        same_as=problem.buckets.item_bucket,
    )
    for k in range(3):
        left = [i for i in range(14) if i not in chosen[:k]]
        best = max(problem.gain(chosen[:k], [i]) for i in left)
        got = problem.gain(chosen[:k], [chosen[k]])
        assert abs(got - best) < 1e-12


def test_values_that_are_not_finite_are_an_error() -> None:
    with pytest.raises(ValueError, match="expected finite values, got nan"):
        select(Table([0.1, float("nan")]), 2)


def test_pending_points_of_the_acquisition_count_and_stay(problem: Problem) -> None:
    model = SequentialBucketModel(problem.buckets, noise=problem.sigma2)
    options = {"same_as": problem.buckets.item_bucket, "rank": torch.arange(14)}
    first, second = select(qPerformanceInformationGain(model), 14, q=2, **options)
    waiting = torch.tensor([[float(first)]])
    gain = qPerformanceInformationGain(model, X_pending=waiting)
    available = torch.ones(14, dtype=torch.bool)
    available[first] = False
    assert select(gain, 14, available=available, **options) == [second]
    assert torch.equal(gain.X_pending, waiting)


def test_an_acquisition_that_reads_the_model_once_gets_pending_points(
    problem: Problem,
) -> None:
    """BoTorch's own precompute in ``__init__``; a lookahead would pass them by."""
    table = Table([0.1, 0.9, 0.8])
    table.model = SequentialBucketModel(problem.buckets, noise=problem.sigma2)
    assert select(table, 3, q=2) == [1, 2]
    assert table.seen == [[], [1]]
