"""The population model as the harness sees it."""

from __future__ import annotations

import pytest
import torch
from item_response import KINDS, benchmark, named

from gp_eval import EvaluationLoop, References, StoppingRule
from gp_eval.acquisition import qPerformanceInformationGain
from gp_eval.models import (
    PerformanceModel,
    SupportsItemBelief,
    SupportsRefit,
    make_model,
)
from gp_eval.models.population import Population, population
from gp_eval.models.population.population import is_update

NEVER = StoppingRule(width=1e-12)


def tell(model: Population, scores: torch.Tensor, items: list[int]) -> None:
    model.condition(torch.tensor(items), scores[items])


def loop(references: References, **options) -> EvaluationLoop:
    return EvaluationLoop(Population(references, **options), references, stop=NEVER)


def updates_up_to(n: int) -> list[int]:
    return [i for i in range(n) if is_update(i)[0]]


def first_gap(length: int) -> int:
    """The first ``n`` after an update with no other for ``length`` items."""
    return next(
        n for n in range(200) if not any(is_update(n + i)[0] for i in range(length))
    )


def test_satisfies_the_protocols_of_the_harness() -> None:
    model = make_model("population", benchmark()[0])
    assert isinstance(model, Population)
    assert isinstance(model, PerformanceModel)
    assert isinstance(model, SupportsRefit)
    assert isinstance(model, SupportsItemBelief)
    assert isinstance(model.acquisition(), qPerformanceInformationGain)


def test_variances_are_fitted_where_the_docstring_says() -> None:
    assert [n for n in range(900) if is_update(n)[1]] == [50, 100, 200, 400, 800]
    effects = [n for n in range(45, 450) if is_update(n)[0]]
    assert effects == [50, 71, 100, 141, 200, 283, 400]
    assert all(is_update(n)[0] for n in population._FIRST)
    assert is_update(0) == (False, False)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("weighted", [False, True])
def test_all_items_known_is_exact(kind: str, weighted: bool) -> None:
    references, scores = benchmark(55, kind=kind)
    weights = torch.linspace(0.1, 2.0, 55, dtype=torch.float64) if weighted else None
    references = named(references.scores, weights=weights)
    model = Population(references)
    tell(model, scores, list(range(55)))
    truth = float(references.item_weights @ scores)
    assert float(model.performance().mean) == pytest.approx(truth, rel=1e-14)
    assert float(model.performance().variance) == 0.0
    assert list(model.updates) == [0, *(n for n in updates_up_to(55) if n)]


@pytest.mark.parametrize("kind", ["binary", "continuous"])
@pytest.mark.parametrize("value", [0.0, 1.0, 1.7, -40.0])
def test_a_constant_target_has_a_width_until_the_end(kind: str, value: float) -> None:
    """Even of scores that no reference has: a run must not break off on them."""
    references, scores = benchmark(55, kind=kind)
    scores = torch.full_like(scores, value)
    model = Population(references)
    for item in range(54):
        tell(model, scores, [item])
        assert float(model.performance().width()) > 0.0
    tell(model, scores, [54])
    assert float(model.performance().mean) == pytest.approx(value, rel=1e-14)


@pytest.mark.parametrize("kind", KINDS)
def test_between_updates_the_order_of_items_does_not_matter(kind: str) -> None:
    references, scores = benchmark(kind=kind)
    one, two = Population(references), Population(references)
    begin = list(range(first_gap(3) - 1))
    for model, rest in ((one, [20, 21, 22]), (two, [22, 20, 21])):
        tell(model, scores, begin)
        tell(model, scores, rest)
    assert list(one.updates) == list(two.updates)
    for name in ("mean", "variance"):
        got, want = getattr(one.performance(), name), getattr(two.performance(), name)
        torch.testing.assert_close(got, want, rtol=1e-10, atol=1e-15)


@pytest.mark.parametrize("kind", KINDS)
def test_between_updates_the_variance_never_increases(kind: str) -> None:
    references, scores = benchmark(55, kind=kind)
    model = Population(references)
    for item in range(55):
        model.acquisition()  # what is due acts now
        before = float(model.performance().variance)
        tell(model, scores, [item])
        assert float(model.performance().variance) <= before * (1 + 1e-12)


def test_an_update_acts_from_the_next_step_on() -> None:
    references, scores = benchmark()
    model = Population(references)
    first = updates_up_to(20)[0]
    tell(model, scores, list(range(first)))
    before = float(model.performance().mean)
    assert float(model.performance().mean) == before
    assert list(model.updates) == [0]
    model.acquisition()
    assert list(model.updates) == [0, first]
    assert float(model.performance().mean) != before


def test_one_call_equals_many_across_updates() -> None:
    references, scores = benchmark(60)
    at_once, single = Population(references), Population(references)
    tell(at_once, scores, list(range(55)))
    for item in range(55):
        tell(single, scores, [item])
    assert at_once.updates == single.updates
    assert float(at_once.performance().mean) == float(single.performance().mean)


def test_inflation_scales_every_interval_and_no_estimate() -> None:
    references, scores = benchmark()
    plain, wide = (
        Population(references, inflation=1.0),
        Population(references, inflation=3),
    )
    for model in (plain, wide):
        tell(model, scores, list(range(8)))
    assert float(wide.performance().mean) == float(plain.performance().mean)
    ratio = wide.performance().width() / plain.performance().width()
    assert float(ratio) == pytest.approx(3.0, rel=1e-12)
    weights = references.item_weights.unsqueeze(0)
    sums = [model.weighted_sums(weights) for model in (plain, wide)]
    assert float(sums[1].variance) == pytest.approx(9 * float(sums[0].variance))
    torch.testing.assert_close(sums[1].mean[0], wide.performance().mean)


@pytest.mark.parametrize("n", [0, 1, 8])
def test_the_fewer_scores_and_references_the_wider(n: int) -> None:
    references, scores = benchmark()
    model = Population(references, inflation=1.5)
    tell(model, scores, list(range(n)))
    factor = 1.5**2 * (1 + 10 / max(n, 1)) * (1 + 4 / len(references.models))
    want = factor * float(model.model.performance_variance())
    assert float(model.performance().variance) == pytest.approx(want, rel=1e-12)


# Which items


@pytest.mark.parametrize(("initial", "explore"), [(0, None), (4, 2), (7, 5), (3, None)])
def test_explores_first_items_and_every_so_many(
    initial: int, explore: int | None
) -> None:
    model = Population(benchmark()[0], initial=initial, explore=explore)
    for position in range(30):
        want = position < initial or (explore is not None and position % explore == 0)
        assert model.explores(position) is want


def test_the_loop_draws_where_the_model_explores_and_selects_elsewhere() -> None:
    references, scores = benchmark()
    made = loop(references, initial=4, explore=3)
    order = list(made._order)
    for position in range(30):
        drawn = next(i for i in order if i not in made.scores)
        gain = made.model.acquisition().of_items(torch.arange(30).unsqueeze(-1))
        gain[list(made.scores)] = -1.0
        item = made.ask()[0]
        if made.model.explores(position):
            assert item == drawn
        else:
            assert float(gain[item]) == pytest.approx(float(gain.max()), rel=1e-11)
        made.tell(item, float(scores[item]))
    assert made.stop_reason == "complete"


@pytest.mark.parametrize("explore", [None, 2, 3])
def test_asking_for_many_is_asking_one_by_one_between_updates(
    explore: int | None,
) -> None:
    references, scores = benchmark(60)
    single = loop(references, initial=5, explore=explore)
    batched = loop(references, initial=5, explore=explore)
    stops = [*updates_up_to(60), 60]
    while not single.done:
        item = single.ask()[0]
        single.tell(item, float(scores[item]))
    while not batched.done:
        room = next(n for n in stops if n > batched.n) - batched.n
        items = batched.ask(room)
        assert len(items) == room
        for item in reversed(items):
            batched.tell(item, float(scores[item]))
    # Scores came in reverse, so that only asking is in the order of asking.
    chosen, n = list(batched.scores), 0
    for stop in stops:
        assert chosen[n:stop] == list(single.scores)[n:stop][::-1]
        n = stop


def test_two_asks_without_scores_are_one_ask_of_both() -> None:
    references, _ = benchmark()
    made = loop(references, initial=2)
    assert [*made.ask(3), *made.ask(1), *made.ask(5)] == loop(
        references, initial=2
    ).ask(9)


def test_choices_between_updates_do_not_depend_on_scores() -> None:
    references, scores = benchmark()
    first = updates_up_to(20)[0]
    runs = []
    for told in (scores, 1 - scores):
        made = loop(references, initial=0, explore=None)
        for _ in range(first):
            item = made.ask()[0]
            made.tell(item, float(told[item]))
        runs.append(list(made.scores))
    assert runs[0] == runs[1]


def test_a_skipped_item_stays_out_and_nothing_else_changes() -> None:
    references, scores = benchmark()
    made = loop(references)
    skipped = made.ask(2)
    for item in skipped:
        made.skip(item)
    while not made.done:
        for item in made.ask(4):
            made.tell(item, float(scores[item]))
    assert made.stop_reason == "complete"
    assert made.n == 28
    assert made.width > 0.0
