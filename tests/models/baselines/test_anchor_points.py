from __future__ import annotations

import math
import statistics

import pytest
import torch
from oracles import Problem, make_problem

from gp_eval.data import References
from gp_eval.loop import EvaluationLoop
from gp_eval.models.baselines import SequentialAnchorPoints
from gp_eval.models.baselines.coverage import AnchorCoverage
from gp_eval.stopping import StoppingRule

NEVER = StoppingRule(width=1e-12)


def correlation(a: list[float], b: list[float]) -> float:
    if len(set(a)) == 1 or len(set(b)) == 1:
        return 0.0
    return round(statistics.correlation(a, b), 10)


def table(problem: Problem) -> list[list[float]]:
    rows = problem.references.scores.tolist()
    return [[correlation(a, b) for b in rows] for a in rows]


def clusters(corr: list[list[float]], anchors: list[int]) -> list[int]:
    """Size of each anchor's cluster, item by item, in the order of anchors."""
    sizes = [0] * len(anchors)
    for item in range(len(corr)):
        if item in anchors:
            owner = item
        else:
            owner = min(anchors, key=lambda a, i=item: (-corr[i][a], a))
        sizes[anchors.index(owner)] += 1
    return sizes


def with_constants(seed: int) -> Problem:
    """Binary scores of 6 references: constant and equal items are among them."""
    problem = make_problem(seed, counts=(1,) * 20, n_references=6)
    generator = torch.Generator().manual_seed(seed)
    scores = (torch.rand(20, 6, generator=generator) < 0.5).double()
    scores[3], scores[8], scores[11] = 0.0, 1.0, scores[5]
    problem.references = References(
        scores, problem.references.items, problem.references.models
    )
    return problem


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("binary", [False, True])
def test_estimate_and_variance_by_loops_over_items(seed: int, binary: bool) -> None:
    problem = with_constants(seed) if binary else make_problem(seed, counts=(1,) * 20)
    corr = table(problem)
    generator = torch.Generator().manual_seed(seed)
    order = torch.randperm(20, generator=generator).tolist()
    model = SequentialAnchorPoints(problem.references)
    for n in range(1, 21):
        anchors = order[:n]
        model.condition(torch.tensor(order[n - 1 : n]), problem.scores[order[n - 1]])
        weights = [size / 20 for size in clusters(corr, anchors)]
        scores = [float(problem.scores[i]) for i in anchors]
        mean = sum(w * s for w, s in zip(weights, scores, strict=True))
        squares = sum(w * w for w in weights)
        if n > 1:
            variance = statistics.variance(scores) * squares * (20 - 1 / squares) / 20
            belief = model.performance()
            assert float(belief.mean) == pytest.approx(mean, rel=1e-12)
            assert float(belief.variance) == pytest.approx(
                variance, rel=1e-11, abs=1e-16
            )


@pytest.mark.parametrize("seed", range(4))
def test_anchors_are_the_medoid_and_then_the_farthest_item(seed: int) -> None:
    problem = make_problem(seed, counts=(1,) * 20, n_references=7)
    corr = table(problem)
    expected = [max(range(20), key=lambda i: sum(corr[i]))]
    while len(expected) < 20:
        rest = [i for i in range(20) if i not in expected]
        expected.append(min(rest, key=lambda i: max(corr[i][a] for a in expected)))
    loop = EvaluationLoop(
        SequentialAnchorPoints(problem.references), problem.references, stop=NEVER
    )
    chosen = []
    while not loop.done:
        (item,) = loop.ask()
        chosen.append(item)
        loop.tell(item, float(problem.scores[item]))
    assert chosen == expected


@pytest.mark.parametrize("seed", range(3))
def test_asking_many_equals_asking_one_by_one(seed: int) -> None:
    problem = with_constants(seed)

    def loop() -> EvaluationLoop:
        model = SequentialAnchorPoints(problem.references)
        return EvaluationLoop(model, problem.references, stop=NEVER, seed=seed)

    single, batch, pending = loop(), loop(), loop()
    expected = []
    for _ in range(12):
        (item,) = single.ask()
        single.tell(item, float(problem.scores[item]))
        expected.append(item)
    assert batch.ask(12) == expected
    assert [pending.ask()[0] for _ in range(12)] == expected
    assert batch.model.coverage.anchors == []
    for item in expected[::-1]:
        batch.tell(item, float(problem.scores[item]))
    assert batch.estimate == single.estimate
    assert batch.ask(3) == [*single.ask(1), *single.ask(2)]


def test_ties_between_constant_items_do_not_depend_on_rounding() -> None:
    """The mean of three times 0.1 is not 0.1."""
    scores = torch.full((4, 3), 0.1, dtype=torch.float64)
    assert float(scores[0].mean()) != 0.1
    scores[2] = torch.tensor([0.0, 0.5, 1.0])
    coverage = AnchorCoverage(scores)
    assert coverage.correlations(0).tolist() == [0.0] * 4
    assert coverage.correlations(2).tolist() == [0.0, 0.0, 1.0, 0.0]
    coverage.add(3)
    coverage.add(1)
    assert coverage.cluster_sizes().tolist() == [0.0, 3.0, 0.0, 1.0]


def test_lookahead_leaves_the_coverage_as_it_was() -> None:
    coverage = AnchorCoverage(make_problem(0).references.scores)
    assert coverage.cluster_sizes().tolist() == [0.0] * 14
    coverage.add(3)
    before = coverage.similarity.tolist()
    with coverage.lookahead() as add:
        add(7)
        add(1)
        assert coverage.anchors == [3, 7, 1]
    assert coverage.anchors == [3]
    assert coverage.similarity.tolist() == before
    assert coverage.cluster_sizes()[3] == 14.0


def test_one_reference_correlates_fully_or_not_at_all() -> None:
    problem = make_problem(0, counts=(1,) * 8, n_references=1)
    assert AnchorCoverage(problem.references.scores).centrality.tolist() == [0.0] * 8
    model = SequentialAnchorPoints(problem.references)
    model.condition(torch.tensor([5, 2]), problem.scores[[5, 2]])
    # Nothing correlates: the items that are no anchors go to the lowest index.
    expected = (7 * problem.scores[2] + problem.scores[5]) / 8
    assert float(model.performance().mean) == pytest.approx(float(expected), rel=1e-14)
    assert math.isfinite(model.performance().variance)
