"""Hyperparameters that are known, edge cases of tables and options."""

from __future__ import annotations

import pytest
import torch
from item_response import KINDS, answers, benchmark, named, spread

from gp_eval import References
from gp_eval.errors import DataError
from gp_eval.models.population import Population, SequentialPopulationModel
from gp_eval.models.population.population import is_update

N = 58
UPDATES = [0, *(n for n in range(N) if is_update(n)[0])]


def tell(model: Population, scores: torch.Tensor, n: int = N) -> None:
    model.condition(torch.arange(n), scores[:n])


@pytest.fixture
def no_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: object) -> None:
        raise AssertionError("nothing is to be fitted here")

    monkeypatch.setattr(SequentialPopulationModel, "fit_effects", refuse)
    monkeypatch.setattr(SequentialPopulationModel, "fit_variances", refuse)


def made_up(references: References) -> dict:
    """Hyperparameters that no fit would find."""
    start = Population(references).updates[0]
    size = len(start["effects"])
    return {
        n: {
            "log_variances": [v - 0.1 - 0.01 * n for v in start["log_variances"]],
            "effects": [0.3 + 0.01 * n] * size,
            "effects_std": [1.5, 0.4, 0.9][:size],
        }
        for n in UPDATES
    }


@pytest.mark.parametrize("kind", KINDS)
def test_a_replay_is_bit_for_bit_and_fits_nothing(
    kind: str, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    references, scores = benchmark(60, kind=kind)
    first = Population(references)
    tell(first, scores)
    assert 50 in first.fits
    request.getfixturevalue("no_fits")
    again = Population(references)
    again.replay_updates(first.updates)
    tell(again, scores)
    assert again.updates == first.updates
    assert again.fits == {}
    for name in ("mean", "variance"):
        got, want = (
            getattr(again.performance(), name),
            getattr(first.performance(), name),
        )
        assert float(got) == float(want)


@pytest.mark.parametrize("kind", KINDS)
def test_replayed_updates_are_taken_as_they_are(kind: str, no_fits: None) -> None:
    references, scores = benchmark(60, kind=kind)
    known = made_up(references)
    model = Population(references)
    model.replay_updates(known)
    assert model.updates == {0: known[0]}
    tell(model, scores)
    assert model.updates.keys() == known.keys()
    for n, values in known.items():
        for name in ("log_variances", "effects"):
            assert model.updates[n][name] == values[name]
        # The prior of the effects is that of the start.
        assert model.updates[n]["effects_std"] == known[0]["effects_std"]


def test_the_start_can_only_be_replaced_before_the_first_score() -> None:
    references, scores = benchmark(60)
    model = Population(references)
    tell(model, scores, 2)
    before = model.updates[0]
    model.replay_updates(made_up(references))
    assert model.updates[0] == before
    assert model.model.n == 2


def test_after_a_replay_the_acquisition_is_that_of_the_new_model() -> None:
    references, _ = benchmark(60)
    model = Population(references)
    old = model.acquisition()
    model.replay_updates(made_up(references))
    assert model.acquisition() is not old
    assert model.acquisition().model is model.model


# Tables at the edge


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n_models", [2, 3, 4])
def test_few_references_are_enough_to_run(kind: str, n_models: int) -> None:
    references, scores = benchmark(55, n_models, kind=kind)
    model = Population(references)
    for item in range(55):
        model.acquisition()
        tell_one(model, scores, item)
        assert 0.0 <= float(model.performance().variance) < float("inf")
    truth = float(scores.mean())
    assert float(model.performance().mean) == pytest.approx(truth, rel=1e-14)


def tell_one(model: Population, scores: torch.Tensor, item: int) -> None:
    model.condition(torch.tensor([item]), scores[[item]])


@pytest.mark.parametrize("columns", [(0, 0, 1), (0, 1, 0), (0, 0, 0, 1), (1, 0, 0, 0)])
def test_a_model_twice_among_few_references_is_no_error(columns: tuple) -> None:
    """Left out, the other one leaves references that all agree."""
    table = answers([-0.5, 0.5], 30)[:, list(columns)]
    belief = Population(named(table)).performance()
    assert 0.0 < float(belief.variance) < float("inf")


@pytest.mark.parametrize("column", range(6))
def test_one_score_above_1_makes_all_scores_unbounded(column: int) -> None:
    """In folds too that leave that model out."""
    table = answers(spread(6), 30, kind="continuous")
    table[3, column] = 1.3
    model = Population(named(table))
    assert len(model.updates[0]["effects"]) == 1
    assert bool(model.performance().variance.isfinite())


@pytest.mark.parametrize("n_items", [1, 2, 40])
def test_items_that_are_all_the_same_to_the_references(n_items: int) -> None:
    table = torch.tensor([[0.0, 1.0, 1.0]]).repeat(n_items, 1)
    model = Population(named(table))
    for item in range(n_items):
        assert 0.0 < float(model.performance().variance) < float("inf")
        model.acquisition()
        tell_one(model, torch.ones(n_items).double(), item)
    assert float(model.performance().mean) == 1.0
    assert float(model.performance().variance) == 0.0


def test_items_that_all_references_agree_on_count_as_any_other() -> None:
    table = torch.cat([torch.zeros(10, 6), torch.ones(10, 6)]).double()
    table = torch.cat([table, answers(spread(6), 10)])
    model = Population(named(table))
    tell(model, torch.ones(30).double(), 30)
    assert float(model.performance().mean) == 1.0


def test_near_copies_of_items_share_a_bucket_within_a_tolerance() -> None:
    table = answers(spread(6), 20, kind="continuous")
    table = torch.cat([table, table + 1e-7]).clamp(0.0, 1.0)
    model = Population(named(table), tolerance=1e-4)
    # Rounding may part a pair that is at the edge of two.
    assert model.model.buckets.n_buckets < 25
    assert Population(named(table)).model.buckets.n_buckets == 40
    tell(model, table[:, 0], 40)
    truth = float(table[:, 0].mean())
    assert float(model.performance().mean) == pytest.approx(truth, rel=1e-12)


def test_missing_cells_are_refused_with_what_to_do() -> None:
    references = References(
        [[1.0, float("nan")], [0.5, 0.2]], ["p", "q"], ["a", "b"], missing="keep"
    )
    with pytest.raises(DataError, match="1 missing cells; read them with"):
        Population(references)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (answers([0.0], 9), "at least 2 references, got 1"),
        (answers([0.0], 9).repeat(1, 3), "references: all agree on every item"),
    ],
)
def test_references_that_tell_nothing_are_refused(
    table: torch.Tensor, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        Population(named(table))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"initial": -1}, "initial: expected at least 0, got -1"),
        ({"explore": 1}, "explore: expected at least 2 or None, got 1"),
        ({"inflation": 0.5}, "inflation: expected at least 1, got 0.5"),
        ({"inflation": float("nan")}, "inflation: expected at least 1, got nan"),
        ({"tolerance": -1.0}, "tolerance: expected a number >= 0"),
    ],
)
def test_options_out_of_range_are_refused(options: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Population(benchmark()[0], **options)


@pytest.mark.parametrize(
    ("items", "values"),
    [([30], [1.0]), ([-1], [1.0]), ([0], [1.0]), ([5], [float("nan")]), ([5], [])],
)
def test_a_batch_that_is_refused_changes_nothing(items: list, values: list) -> None:
    references, scores = benchmark()
    model = Population(references)
    tell(model, scores, 3)
    before = float(model.performance().mean)
    with pytest.raises(ValueError, match="item|scores"):
        model.condition(torch.tensor([7, *items]), torch.tensor([1.0, *values]))
    assert float(model.performance().mean) == before
    assert model.model.n == 3
