"""Sessions, reports and comparisons of the population model."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from item_response import benchmark, named
from killing import boundaries, copy_with_journal
from sessions import NEVER, Ask, Tell, Update, events_of, journal

from gp_eval import EvaluationLoop, References, Result, Session, make_model
from gp_eval.comparison import compare_independent
from gp_eval.models.population import (
    Population,
    PopulationPrior,
    SequentialPopulationModel,
    population,
)
from gp_eval.report.build import build_report

N = 60


@pytest.fixture(scope="module")
def problem() -> tuple[References, dict[str, float]]:
    references, scores = benchmark(N)
    return references, dict(zip(references.items, scores.tolist(), strict=True))


def create(folder: Path, references: References, **options) -> Session:
    return Session.create(
        folder, references, target="mine", model="population", stop=NEVER, **options
    )


def finish(session: Session, scores: dict[str, float], *, q: int = 1) -> Result:
    for item in session.pending:
        session.tell(item, scores[item])
    while not session.done:
        for item in session.ask(q):
            session.tell(item, scores[item])
    return session.estimate()


@pytest.fixture(scope="module")
def whole(
    problem: tuple[References, dict[str, float]],
    tmp_path_factory: pytest.TempPathFactory,
) -> tuple[Path, Result, dict]:
    """A run that nothing interrupted, its result and its hyperparameters."""
    folder = tmp_path_factory.mktemp("whole") / "run"
    with create(folder, problem[0]) as session:
        result = finish(session, problem[1], q=2)
        assert isinstance(session.model, Population)
        return folder, result, dict(session.model.updates)


def test_the_journal_has_every_update_and_the_prior_first(
    whole: tuple[Path, Result, dict],
) -> None:
    folder, _, updates = whole
    events = events_of(folder)
    assert isinstance(events[0], Update)
    written = {e.n: e.hyperparameters for e in events if isinstance(e, Update)}
    assert written == updates
    assert 50 in written
    assert {type(e) for e in events} == {Update, Ask, Tell}


def another_prior(buckets: object, **options: object) -> PopulationPrior:
    """What another machine, or another version, might have found."""
    return PopulationPrior(
        torch.full((5,), -1.0, dtype=torch.float64),
        torch.tensor([0.3, 0.6, -0.2], dtype=torch.float64),
        torch.tensor([1.0, 0.2, 0.5], dtype=torch.float64),
    )


@pytest.mark.parametrize("elsewhere", [False, True])
def test_a_finished_run_is_replayed_without_any_fit_of_the_target(
    whole: tuple[Path, Result, dict],
    elsewhere: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(self: object) -> None:
        raise AssertionError("a replay does not optimise")

    monkeypatch.setattr(SequentialPopulationModel, "fit_effects", refuse)
    monkeypatch.setattr(SequentialPopulationModel, "fit_variances", refuse)
    if elsewhere:
        monkeypatch.setattr(population, "_PRIORS", {})
        monkeypatch.setattr(population, "fit_population_prior", another_prior)
    folder, result, updates = whole
    with Session.open(folder) as session:
        assert session.estimate() == result
        assert session.model.updates == updates
        assert session.model.fits == {}


@pytest.mark.parametrize("place", [0.02, 0.1, 0.33, 0.6, 0.85, 0.99])
def test_a_run_cut_anywhere_goes_on_as_if_nothing_had_happened(
    whole: tuple[Path, Result, dict],
    problem: tuple[References, dict[str, float]],
    tmp_path: Path,
    place: float,
) -> None:
    folder, result, updates = whole
    content = journal(folder).read_bytes()
    ends = boundaries(content)
    cut = content[: ends[int(place * len(ends))] + 7]  # and a torn line
    copy = copy_with_journal(folder, tmp_path / "run", cut)
    with Session.open(copy) as session:
        again = finish(session, problem[1], q=2)
        assert again == result
        assert session.model.updates == updates


def test_a_session_computes_what_the_loop_in_memory_does(
    whole: tuple[Path, Result, dict], problem: tuple[References, dict[str, float]]
) -> None:
    references, scores = problem
    model = make_model("population", references)
    loop = EvaluationLoop(model, references, stop=NEVER, seed=0)
    while not loop.done:
        for item in loop.ask(2):
            loop.tell(item, scores[references.items[item]])
    result = loop.result("mine", references.items)
    assert result == replace(whole[1], target="mine")


def test_items_are_explored_as_the_options_say(
    problem: tuple[References, dict[str, float]], tmp_path: Path
) -> None:
    options = {"initial": 0, "explore": None}
    with create(tmp_path / "a", problem[0], model_options=options, seed=1) as one:
        first = one.ask(12)
    with create(tmp_path / "b", problem[0], model_options=options, seed=2) as two:
        # Chance has no part but among items that no reference tells apart.
        groups = make_model("population", problem[0]).item_groups
        group = dict(zip(problem[0].items, groups.tolist(), strict=True))
        assert [group[i] for i in two.ask(12)] == [group[i] for i in first]
    options = {"initial": 12}
    with create(tmp_path / "c", problem[0], model_options=options, seed=1) as three:
        drawn = three.ask(12)
        assert drawn != first
        assert len(set(drawn)) == 12
    with create(tmp_path / "d", problem[0], model_options=options, seed=2) as four:
        assert four.ask(12) != drawn


def test_a_score_beyond_those_of_the_references_does_not_break_the_run(
    problem: tuple[References, dict[str, float]], tmp_path: Path
) -> None:
    """All events are on disk: what could not be taken in could never be opened."""
    with create(tmp_path / "run", problem[0]) as session:
        result = finish(session, dict.fromkeys(problem[1], 1.5))
    with Session.open(tmp_path / "run") as session:
        assert session.estimate() == result
    assert result.mean == pytest.approx(1.5)


# Reports


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n", [0, 7, 23])
def test_groups_of_a_report_make_up_the_estimate(
    n: int, weighted: bool, tmp_path: Path
) -> None:
    references, scores = benchmark(N)
    weights = torch.linspace(0.2, 2.0, N, dtype=torch.float64) if weighted else None
    references = named(references.scores, weights=weights)
    with create(tmp_path / "run", references) as session:
        for _ in range(n):
            (item,) = session.ask()
            session.tell(item, float(scores[references.items.index(item)]))
        (target,) = build_report(session).targets
        estimate = session.estimate()
    of_group = {
        g: sum(
            float(w)
            for w, name in zip(
                references.item_weights, references.groups or (), strict=True
            )
            if name == g
        )
        for g in ("even", "odd")
    }
    assert [g.group for g in target.groups] == ["even", "odd"]
    total = sum(of_group[g.group] * g.estimate for g in target.groups)
    assert total == pytest.approx(estimate.mean, rel=1e-9)
    # No more certain together than in the worst case, that they go up and down as one.
    widest = sum(of_group[g.group] * (g.high - g.low) for g in target.groups)
    assert estimate.width <= widest * (1 + 1e-9)
    assert sum(g.n for g in target.groups) == n


def test_a_report_has_the_hyperparameters_in_use(
    whole: tuple[Path, Result, dict],
) -> None:
    folder, _, updates = whole
    with Session.open(folder) as session:
        provenance = build_report(session).provenance
    assert provenance.model == "population"
    assert provenance.hyperparameters_at == max(updates)
    assert provenance.hyperparameters == updates[max(updates)]


def test_surprises_are_predictions_from_all_other_items(
    problem: tuple[References, dict[str, float]],
) -> None:
    references, scores = problem
    model = make_model("population", references)
    values = torch.tensor(list(scores.values()), dtype=torch.float64)
    model.condition(torch.arange(9), values[:9])
    left_out = model.leave_one_out()
    assert left_out.items.tolist() == list(range(9))
    inner = model.model
    for place in (0, 4, 8):
        known = [i for i in range(9) if i != place]
        again = SequentialPopulationModel(inner.buckets, inner.prior)
        again.set_hyperparameters(inner.log_variances, inner.kernel.effects.clone())
        for item in known:
            again.append(item, float(values[item]))
        mean = again.latent(torch.tensor([place]))[0][0]
        variance = again.score_variance(torch.tensor([place]))[0]
        close = {"rtol": 1e-9, "atol": 0}
        torch.testing.assert_close(left_out.mean[place], mean, **close)
        torch.testing.assert_close(left_out.variance[place], variance, **close)


def test_the_names_of_the_registry_and_of_the_class_are_the_same_model(
    problem: tuple[References, dict[str, float]],
) -> None:
    made = make_model("population", problem[0], initial=2, inflation=1.5)
    assert isinstance(made, Population)
    assert (made.initial, made.inflation) == (2, 1.5)
    with pytest.raises(ValueError, match=r"population: unknown options \['noise'\]"):
        make_model("population", problem[0], noise=0.1)


def test_two_runs_are_compared_by_their_beliefs(
    problem: tuple[References, dict[str, float]], tmp_path: Path
) -> None:
    references, scores = problem
    results = []
    for name, told in (("mine", scores), ("other", dict.fromkeys(scores, 0.0))):
        with Session.create(
            tmp_path / name, references, target=name, model="population", stop=NEVER
        ) as session:
            for item in session.ask(25):
                session.tell(item, told[item])
            results.append(session.estimate())
    compared = compare_independent(results)
    (pair,) = compared.pairs
    assert (pair.a, pair.b) == ("mine", "other")
    assert pair.difference == pytest.approx(results[0].mean - results[1].mean)
    half = (results[0].width ** 2 + results[1].width ** 2) ** 0.5 / 2
    assert pair.high - pair.difference == pytest.approx(half, rel=1e-6)
    assert pair.probability > 0.99
