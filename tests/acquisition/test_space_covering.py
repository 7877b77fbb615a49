from __future__ import annotations

import statistics

import pytest
import torch
from botorch.acquisition.input_constructors import get_acqf_input_constructor
from botorch.optim.optimize import optimize_acqf_discrete
from oracles import make_problem

from gp_eval.acquisition.space_covering import SpaceCovering
from gp_eval.models.baselines.coverage import AnchorCoverage

ROWS = make_problem(3, counts=(1,) * 10, n_references=6).references.scores
CHOICES = torch.arange(10, dtype=torch.float64).unsqueeze(-1)


def correlation(i: int, j: int) -> float:
    return statistics.correlation(ROWS[i].tolist(), ROWS[j].tolist())


def covered(*anchors: int) -> AnchorCoverage:
    coverage = AnchorCoverage(ROWS)
    for anchor in anchors:
        coverage.add(anchor)
    return coverage


def test_distance_from_the_nearest_anchor() -> None:
    acquisition = SpaceCovering(covered(2, 7))
    values = acquisition(CHOICES.unsqueeze(-2)).tolist()
    for i in range(10):
        nearest = max(correlation(i, 2), correlation(i, 7))
        assert values[i] == pytest.approx(1 - nearest, abs=2e-12)
    assert values[2] == values[7] == 0.0


def test_without_anchors_the_mean_correlation() -> None:
    values = SpaceCovering(covered())(CHOICES.unsqueeze(-2)).tolist()
    for i in range(10):
        mean = sum(correlation(i, j) for j in range(10)) / 10
        assert values[i] == pytest.approx(mean, rel=1e-10)


def test_pending_items_count_as_anchors() -> None:
    acquisition = SpaceCovering(covered(2), X_pending=torch.tensor([[7.0]]))
    expected = SpaceCovering(covered(2, 7))
    X = CHOICES.unsqueeze(-2)
    assert torch.equal(acquisition(X), expected(X))
    first = SpaceCovering(covered(), X_pending=torch.tensor([[2.0], [7.0]]))
    assert torch.equal(first(X), expected(X))
    acquisition.set_X_pending(None)
    assert torch.equal(acquisition(X), SpaceCovering(covered(2))(X))


def test_greedy_optimisation_of_botorch_finds_the_anchors() -> None:
    chosen, _ = optimize_acqf_discrete(SpaceCovering(covered()), q=4, choices=CHOICES)
    expected = [max(range(10), key=lambda i: sum(correlation(i, j) for j in range(10)))]
    while len(expected) < 4:
        rest = [i for i in range(10) if i not in expected]
        expected.append(
            min(rest, key=lambda i: max(correlation(i, a) for a in expected))
        )
    assert chosen.flatten().tolist() == expected


def test_the_order_of_anchors_does_not_matter() -> None:
    X = CHOICES.unsqueeze(-2)
    one, two = SpaceCovering(covered(2, 7, 4))(X), SpaceCovering(covered(4, 2, 7))(X)
    assert torch.equal(one, two)


def test_more_than_one_item_is_an_error() -> None:
    with pytest.raises(AssertionError, match="q=1"):
        SpaceCovering(covered(2))(CHOICES.unsqueeze(0))


def test_input_constructor_is_registered() -> None:
    construct = get_acqf_input_constructor(SpaceCovering)
    made = SpaceCovering(**construct(model=covered(1), X_pending=None))
    assert float(made(torch.tensor([[[1.0]]]))) == 0.0
