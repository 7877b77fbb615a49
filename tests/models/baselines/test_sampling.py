"""What holds for every baseline that estimates from a sample of items."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import pytest
import torch
from oracles import Problem, make_problem

from gp_eval.data import References
from gp_eval.errors import DataError
from gp_eval.evaluation import evaluate
from gp_eval.models import PerformanceModel
from gp_eval.models.baselines import (
    AIPW,
    BayesianAIPW,
    BayesianRandomSamplingLearn,
    RandomMean,
    RandomSamplingLearn,
    SequentialAnchorPoints,
)
from gp_eval.models.baselines.sampling import (
    SampleModel,
    effective_sample_size,
    sampling_variance,
)
from gp_eval.stopping import StoppingRule

EXACT = [RandomMean, SequentialAnchorPoints, AIPW, BayesianAIPW]
LEARNERS = [RandomSamplingLearn, BayesianRandomSamplingLearn]
ALL = EXACT + LEARNERS


def references(scores: object, **options) -> References:
    table = torch.as_tensor(scores, dtype=torch.float64)
    return References(
        table,
        [f"q{i}" for i in range(table.shape[0])],
        [f"m{k}" for k in range(table.shape[1])],
        **options,
    )


def told(factory: type[SampleModel], problem: Problem, items: list[int]) -> SampleModel:
    model = factory(problem.references)
    model.condition(torch.tensor(items, dtype=torch.long), problem.scores[items])
    return model


def binary_problem(seed: int) -> Problem:
    """Few references and binary scores: equal items, constant items, many ties."""
    problem = make_problem(seed, counts=(1,) * 12)
    generator = torch.Generator().manual_seed(seed)
    table = torch.rand(12, 3, generator=generator) < 0.5
    return replace(problem, references=references(table))


def test_equation_9_term_by_term() -> None:
    weights, n_items, s2 = [0.5, 0.2, 0.2, 0.1], 9, 0.21
    squares = sum(w * w for w in weights)
    n_eff = sum(weights) ** 2 / squares
    expected = s2 * squares * (n_items - n_eff) / n_items
    size = effective_sample_size(torch.tensor(weights, dtype=torch.float64))
    found = sampling_variance(torch.tensor(s2, dtype=torch.float64), size, n_items)
    assert float(found) == pytest.approx(expected, rel=1e-14)
    scaled = effective_sample_size(torch.tensor([5.0, 2.0, 2.0, 1.0]).double())
    assert float(scaled) == pytest.approx(n_eff, rel=1e-14)


@pytest.mark.parametrize("factory", ALL)
def test_protocol_and_selection(factory: type[SampleModel], problem: Problem) -> None:
    model = factory(problem.references)
    assert isinstance(model, PerformanceModel)
    random = factory is not SequentialAnchorPoints
    assert (model.acquisition() is None) == random


@pytest.mark.parametrize("factory", EXACT)
@pytest.mark.parametrize("n_items", [1, 2, 14])
def test_all_items_known_is_exact(factory: type[SampleModel], n_items: int) -> None:
    problem = make_problem(3, counts=(1,) * n_items)
    belief = told(factory, problem, list(range(n_items))[::-1]).performance()
    assert float(belief.mean) == float(problem.scores.mean())
    assert float(belief.variance) == 0.0


@pytest.mark.parametrize("factory", EXACT)
def test_before_the_first_item_it_is_the_references(
    factory: type[SampleModel], problem: Problem
) -> None:
    table = problem.references.scores.flatten().tolist()
    mean = sum(table) / len(table)
    spread = sum((x - mean) ** 2 for x in table) / len(table)
    belief = factory(problem.references).performance()
    assert float(belief.mean) == pytest.approx(mean, rel=1e-14)
    assert float(belief.variance) == pytest.approx(spread, rel=1e-14)


@pytest.mark.parametrize("factory", LEARNERS)
def test_learners_begin_with_the_scores_of_the_references(
    factory: type[SampleModel], problem: Problem
) -> None:
    outcome = problem.references.scores.mean(0).tolist()
    mean = sum(outcome) / 5
    belief = factory(problem.references).performance()
    assert float(belief.mean) == pytest.approx(mean, rel=1e-14)
    assert float(belief.variance) == pytest.approx(
        sum((x - mean) ** 2 for x in outcome) / 4, rel=1e-12
    )


@pytest.mark.parametrize("factory", [RandomMean, SequentialAnchorPoints, AIPW])
def test_one_item_has_the_spread_of_the_references(
    factory: type[SampleModel], problem: Problem
) -> None:
    """The score itself, with the finite population correction of one item."""
    table = problem.references.scores.flatten().tolist()
    mean = sum(table) / len(table)
    spread = sum((x - mean) ** 2 for x in table) / len(table)
    belief = told(factory, problem, [4]).performance()
    assert float(belief.mean) == pytest.approx(float(problem.scores[4]), rel=1e-14)
    n_items = problem.n_items
    expected = spread * (n_items - 1) / n_items
    assert float(belief.variance) == pytest.approx(expected, rel=1e-13)


def test_one_item_of_the_bayesian_form_has_its_prior() -> None:
    problem = make_problem(0)
    phi, n_items = problem.references.scores, problem.n_items
    rest = [i for i in range(n_items) if i != 4]
    difference = phi[rest].mean(0) - phi[4]
    noise = 2e-6 / (1 + 2e-6) * (1 + 1 / (n_items - 1))
    expected = (float(difference @ difference) + noise) * (1 - 1 / n_items) ** 2
    belief = told(BayesianAIPW, problem, [4]).performance()
    assert float(belief.mean) == pytest.approx(float(problem.scores[4]), rel=1e-14)
    assert float(belief.variance) == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("factory", ALL)
@pytest.mark.parametrize("binary", [False, True])
def test_order_and_grouping_do_not_matter(
    factory: type[SampleModel], binary: bool
) -> None:
    problem = binary_problem(1) if binary else make_problem(1)
    items = [7, 2, 11, 0, 5, 9]
    whole = told(factory, problem, items).performance()
    for order in itertools.islice(itertools.permutations(items), 0, 720, 97):
        model = told(factory, problem, list(order[:2]))
        model.performance()
        for item in order[2:]:
            model.condition(torch.tensor([item]), problem.scores[[item]])
        assert torch.equal(model.performance().mean, whole.mean)
        assert torch.equal(model.performance().variance, whole.variance)


@pytest.mark.parametrize("factory", ALL)
def test_a_bad_batch_changes_nothing(
    factory: type[SampleModel], problem: Problem
) -> None:
    model = told(factory, problem, [5, 2])
    before = model.performance()
    for items, scores, message in (
        ([1, 5], [1.0, 1.0], "item: 5 is evaluated already"),
        ([1, 14], [1.0, 1.0], r"items: expected indices 0..13, got \[14\]"),
        ([0, 1], [1.0, math.nan], "expected finite ones, got nan"),
    ):
        with pytest.raises(ValueError, match=message):
            model.condition(torch.tensor(items), torch.tensor(scores))
    assert torch.equal(model.performance().mean, before.mean)
    model.condition(torch.tensor([1]), problem.scores[[1]])
    expected = told(factory, problem, [5, 2, 1]).performance()
    assert torch.equal(model.performance().mean, expected.mean)


@pytest.mark.parametrize("factory", EXACT)
def test_item_weights_are_an_error(factory: type[SampleModel]) -> None:
    problem = make_problem(0, weighted=True)
    message = f"{factory.name}: item weights are not supported"
    with pytest.raises(ValueError, match=message):
        factory(problem.references)


@pytest.mark.parametrize("factory", ALL)
def test_missing_cells_are_an_error(factory: type[SampleModel]) -> None:
    table = references([[1.0, math.nan], [0.0, 1.0]], missing="keep")
    with pytest.raises(DataError, match=f"{factory.name}: 1 missing cells"):
        factory(table)


@pytest.mark.parametrize("factory", ALL)
@pytest.mark.parametrize("kind", ["equal", "constant", "zero"])
@pytest.mark.parametrize("target", ["random", "constant"])
def test_degenerate_references_and_targets_give_finite_numbers(
    factory: type[SampleModel], kind: str, target: str
) -> None:
    """Equal columns; every reference its own constant; all scores 0."""
    problem = make_problem(2, counts=(1,) * 9)
    column = torch.linspace(0.1, 0.8, 9, dtype=torch.float64).unsqueeze(-1)
    tables = {
        "equal": column.expand(9, 4),
        "constant": column[:4].T.expand(9, 4),
        "zero": torch.zeros(9, 4),
    }
    scores = problem.scores if target == "random" else torch.full_like(column[:, 0], 1)
    problem = replace(problem, references=references(tables[kind]), scores=scores)
    for n in range(9):
        belief = told(factory, problem, list(range(n))).performance()
        assert math.isfinite(belief.mean)
        assert math.isfinite(belief.variance)
        assert belief.variance >= 0.0
        if factory in EXACT and n and target == "constant":
            assert float(belief.mean) == pytest.approx(1.0, rel=1e-12)


@pytest.mark.parametrize("factory", EXACT)
def test_one_reference_works(factory: type[SampleModel]) -> None:
    problem = make_problem(2, counts=(1,) * 9, n_references=1)
    for n in range(1, 9):
        belief = told(factory, problem, list(range(n))).performance()
        assert math.isfinite(belief.mean)
        assert 0.0 < float(belief.variance) < 1.0


@pytest.mark.parametrize("factory", LEARNERS)
def test_one_reference_is_an_error_for_learners(factory: type[SampleModel]) -> None:
    problem = make_problem(2, n_references=1)
    message = f"{factory.name}: expected at least 2 references, got 1"
    with pytest.raises(ValueError, match=message):
        factory(problem.references)


@pytest.mark.parametrize("factory", ALL)
def test_runs_in_the_loop_of_the_harness(factory: type[SampleModel]) -> None:
    problem = binary_problem(4)
    scores = dict(zip(problem.references.items, problem.scores.tolist(), strict=True))
    result = evaluate(
        problem.references,
        scores.__getitem__,
        model=factory(problem.references),
        stop=StoppingRule(width=1e-9),
        seed=1,
    )
    assert sorted(result.items) == sorted(problem.references.items)
    if factory in EXACT:
        assert result.mean == float(problem.scores.mean())
        assert result.width == 0.0
