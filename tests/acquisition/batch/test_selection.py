"""Batches in a run: the loop, the session, and the option of BayesAME."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from batches import all_batches
from oracles import Problem, make_problem
from sessions import evaluate, finish, unique_references

from gp_eval import EvaluationLoop, Session, StoppingRule
from gp_eval.experiments.simulators import make_simulator
from gp_eval.models import make_model

NEVER = StoppingRule(width=1e-12)
MYOPIC, NON_MYOPIC = {"batch": 2}, {"batch": 2, "lookahead": True}
BOTH = pytest.mark.parametrize(
    "options", [MYOPIC, NON_MYOPIC], ids=["myopic", "non-myopic"]
)


def unique_problem(size: int = 30) -> Problem:
    return make_problem(1, counts=(1,) * size, n_references=6, sigma2=1e-4)


def loop(problem: Problem, *, seed: int = 0, stop: StoppingRule = NEVER, **options):
    model = make_model("bayesame", problem.references, **options)
    return EvaluationLoop(model, problem.references, stop=stop, seed=seed)


def run(made: EvaluationLoop, problem: Problem, n: int, *, q: int = 1) -> list[int]:
    chosen: list[int] = []
    while len(chosen) < n:
        items = made.ask(min(q, n - len(chosen)))
        for item in reversed(items):
            made.tell(item, float(problem.scores[item]))
        chosen += items
    return chosen


def best_pairs(problem: Problem, coreset: list[int]) -> list[int]:
    batches, values = all_batches(problem, coreset, 2)
    return batches[int(values.argmax())]


def prior(problem: Problem) -> Problem:
    """Before an update alpha and beta are 1."""
    problem.alpha = problem.beta = 1.0
    return problem


def test_myopic_selection_evaluates_the_best_pairs() -> None:
    problem = prior(unique_problem())
    chosen = run(loop(problem, **MYOPIC), problem, 10)
    for k in range(0, 10, 2):
        assert sorted(chosen[k : k + 2]) == best_pairs(problem, chosen[:k])


def test_non_myopic_selection_draws_one_of_the_best_pair() -> None:
    problem = prior(unique_problem())
    chosen = run(loop(problem, **NON_MYOPIC), problem, 10)
    places = []
    for k, item in enumerate(chosen):
        pair = best_pairs(problem, chosen[:k])
        assert item in pair
        places.append(pair.index(item))
    assert set(places) == {0, 1}


def test_non_myopic_draws_differ_by_seed() -> None:
    problem = unique_problem()
    runs = [run(loop(problem, seed=s, **NON_MYOPIC), problem, 8) for s in (0, 0, 1)]
    assert runs[0] == runs[1] != runs[2]


def test_both_differ_from_one_item_at_a_time() -> None:
    problem = unique_problem()
    single = run(loop(problem), problem, 12)
    assert run(loop(problem, **MYOPIC), problem, 12) != single
    assert run(loop(problem, **NON_MYOPIC), problem, 12) != single
    assert run(loop(problem, batch=1), problem, 12) == single


@BOTH
def test_asking_for_many_equals_single_asks_before_an_update(options: dict) -> None:
    problem = unique_problem()
    single = run(loop(problem, **options), problem, 18)
    for q in (2, 3, 5):
        assert run(loop(problem, **options), problem, 18, q=q) == single
    made = loop(problem, **options)
    assert [*made.ask(3), *made.ask(1), *made.ask(2)] == single[:6]


@BOTH
@pytest.mark.parametrize("size", [2, 3])
def test_every_item_is_asked_once_and_the_end_is_exact(
    options: dict, size: int
) -> None:
    problem = unique_problem(25)
    made = loop(problem, refit_every=8, **{**options, "batch": size})
    assert sorted(run(made, problem, 25, q=size)) == list(range(25))
    assert made.ask() == []
    assert made.stop_reason == "complete"
    assert made.estimate == float(problem.scores.mean())
    assert made.width == 0.0


@BOTH
def test_larger_batches_run_by_the_search(options: dict) -> None:
    problem = unique_problem()
    made = [loop(problem, **{**options, "batch": 4}) for _ in range(2)]
    runs = [run(one, problem, 8, q=4) for one in made]
    assert runs[0] == runs[1]
    assert len(set(runs[0])) == 8


@BOTH
@pytest.mark.parametrize("told", [4, 5, 9])
def test_a_resumed_session_goes_on_with_the_same_items(
    tmp_path: Path, options: dict, told: int
) -> None:
    settings = {
        "target": "target",
        "model_options": {**options, "refit_every": 7},
        "stop": StoppingRule(width=1e-9, stable=1e-9, window=5),
        "seed": 3,
    }
    references = unique_references()
    with Session.create(tmp_path / "whole", references, **settings) as whole:
        expected = finish(whole)
    cut = Session.create(tmp_path / "cut", references, **settings)
    evaluate(cut, told)
    asked = cut.ask(2)
    cut.close()
    with Session.open(tmp_path / "cut") as again:
        assert again.pending == asked == expected.items[told : told + 2]
        assert finish(again) == expected


def test_window_is_over_batches() -> None:
    rule = StoppingRule(width=0.1, stable=0.01, window=5)
    # Three batches of two: the estimates in between are not looked at.
    calm = [0.9, 0.5, 0.7, 0.505, 0.2, 0.5]
    assert rule.met(calm, 0.1, batch=2)
    assert not rule.met(calm, 0.1)
    assert not rule.met(calm, 0.2, batch=2)
    assert not rule.met([*calm, 0.5], 0.1, batch=2)  # in the middle of a batch
    assert not rule.met(calm[2:], 0.1, batch=2)  # 5 / 2 is three batches, not two
    assert not rule.met([*calm, 0.5, 0.52], 0.1, batch=2)


def test_only_a_myopic_run_stops_after_whole_batches() -> None:
    problem = unique_problem()
    problem.scores = torch.full((30,), 0.5, dtype=torch.float64)
    loose = StoppingRule(width=10.0, stable=10.0, window=3)
    stops = {}
    for name, options in {"one": {}, "my": MYOPIC, "non": NON_MYOPIC}.items():
        made = loop(problem, stop=loose, **options)
        while not made.done:
            run(made, problem, 1)
        stops[name] = made.n
    assert stops == {"one": 3, "my": 4, "non": 3}


def test_random_selection_takes_no_batches() -> None:
    problem = make_problem(0, counts=(8, 8, 8))
    assert make_model("bayesame", problem.references, batch=2).batch_selection is None
    plain = run(loop(problem), problem, 10)
    assert run(loop(problem, **MYOPIC), problem, 10) == plain


def test_simulated_batches_are_those_of_the_loop() -> None:
    problem = unique_problem()
    order = torch.randperm(30, generator=torch.Generator().manual_seed(0))
    simulator = make_simulator("bayesame", {**NON_MYOPIC, "refit_every": 10})
    curves = simulator(problem.references, problem.scores.unsqueeze(0), order, n_max=15)
    model = make_model("bayesame", problem.references, refit_every=10, **NON_MYOPIC)
    made = EvaluationLoop(model, problem.references, stop=NEVER, order=order)
    run(made, problem, 15)
    assert curves.mean[0].tolist() == made.estimates
    whole = make_simulator("bayesame", {**MYOPIC, "batch": 3})(
        problem.references, problem.scores.unsqueeze(0), order, n_max=29
    )
    assert whole.mean.shape == whole.variance.shape == (1, 29)


def test_a_batch_of_none_is_an_error() -> None:
    with pytest.raises(ValueError, match="batch: expected at least 1, got 0"):
        make_model("bayesame", unique_problem().references, batch=0)
