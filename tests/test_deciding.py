"""Runs that stop once a statement is decided, and what the verdict then is."""

from __future__ import annotations

import math

import pytest
import torch
from decisions import literal_verdict
from multi_target_oracle import make_multi_target_problem
from oracles import Problem, make_problem

from gp_eval.decision import Decision
from gp_eval.loop import EvaluationLoop
from gp_eval.models import MultiTargetBayesAME, make_model
from gp_eval.multi_target_loop import MultiTargetLoop
from gp_eval.stopping import StoppingRule

SIZE = 40


def loop(
    problem: Problem,
    statement: str,
    *,
    model: str = "bayesame",
    level: float = 0.95,
    window: int = 4,
    width: float | None = None,
    max_items: int | None = None,
    stable: float = 0.005,
    **options,
) -> EvaluationLoop:
    until = Decision.parse(statement, level=level, window=window)
    return EvaluationLoop(
        make_model(model, problem.references, **options),
        problem.references,
        stop=StoppingRule(until=until, width=width, stable=stable, max_items=max_items),
    )


def finish(made: EvaluationLoop, problem: Problem, *, q: int = 1) -> list[float]:
    """Probability after each item, by the mean and variance of the model."""
    seen = []
    while not made.done:
        for item in made.ask(q):
            made.tell(item, float(problem.scores[item]))
            std = math.sqrt(made.variance)
            z = (made.estimate - made.stop.until.threshold) / std if std else math.nan
            seen.append(0.5 * math.erfc(-z / math.sqrt(2.0)))
    return seen


def problem_of(seed: int = 1, **options) -> Problem:
    return make_problem(seed, counts=(1,) * SIZE, n_references=6, **options)


@pytest.mark.parametrize("model", ["bayesame", "bayesame-rs", "rs-mean"])
@pytest.mark.parametrize("away", [-0.15, -0.05, 0.05, 0.15])
def test_a_run_stops_at_the_first_verdict_and_not_before(
    model: str, away: float
) -> None:
    problem = problem_of()
    threshold = round(float(problem.scores.mean()) + away, 6)
    made = loop(problem, f"score>={threshold}", model=model)
    seen = finish(made, problem)
    decision = made.stop.until
    for n in range(1, made.n + 1):
        verdict = literal_verdict(decision, seen[:n])
        assert (verdict is not None) == (made.stop_reason == "decided" and n == made.n)
    result = made.result("t", problem.references.items)
    if made.stop_reason == "decided":
        assert result.verdict is literal_verdict(decision, seen)
        assert result.probability == pytest.approx(seen[-1], rel=1e-12)
        assert result.stopped_at == made.n < SIZE
    else:
        assert result.verdict is (away < 0)


def test_the_contrary_is_decided_at_the_same_item() -> None:
    problem = problem_of()
    runs = [loop(problem, f"score{sign}0.4") for sign in (">=", "<")]
    for made in runs:
        finish(made, problem)
    a, b = (made.result("t", problem.references.items) for made in runs)
    assert (a.stop_reason, a.items) == ("decided", b.items)
    assert a.verdict is not b.verdict
    assert a.probability + b.probability == pytest.approx(1.0)


def test_a_higher_level_asks_for_at_least_as_many_items() -> None:
    problem = problem_of()
    ends = []
    for level in (0.6, 0.9, 0.99, 0.99999):
        made = loop(problem, "score>=0.45", level=level)
        finish(made, problem)
        ends.append(made.n)
    assert ends == sorted(ends)
    assert ends[0] < ends[-1]


@pytest.mark.parametrize("model", ["bayesame", "rs-mean", "proeval", "bayes-rs-learn"])
@pytest.mark.parametrize("sign", [">=", ">", "<=", "<"])
def test_with_all_items_the_verdict_is_that_of_their_mean(
    model: str, sign: str
) -> None:
    """Also at the threshold itself, and for models that do not end at the truth."""
    problem = problem_of()
    problem.scores = torch.full((SIZE,), 0.1, dtype=torch.float64)
    problem.scores[::2] = 0.3
    made = loop(problem, f"score{sign}0.2", model=model, window=SIZE)
    finish(made, problem, q=7)
    result = made.result("t", problem.references.items)
    assert result.stop_reason == "complete"
    assert result.verdict is (sign in (">=", "<="))
    assert result.probability == float(result.verdict)


def test_with_weighted_items_it_is_that_of_the_weighted_mean() -> None:
    problem = problem_of(weighted=True)
    truth = float(problem.weights @ problem.scores)
    plain = float(problem.scores.mean())
    between = (truth + plain) / 2.0
    made = loop(problem, f"score>={between!r}", window=SIZE)
    finish(made, problem)
    assert made.result("t", problem.references.items).verdict is (truth > plain)


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_equal_scores_alone_decide_nothing_for_a_sample_mean(value: float) -> None:
    problem = make_problem(0, counts=(12, 12, 12), n_references=4)
    problem.scores = torch.full((36,), value, dtype=torch.float64)
    made = loop(problem, "score>=0.5", model="rs-mean")
    for item in made.ask(35):
        made.tell(item, value)
        result = made.result("t", problem.references.items)
        if made.n > 1:
            assert result.probability is None
        assert result.verdict is None
        assert not made.done
    made.tell(made.ask()[0], value)
    result = made.result("t", problem.references.items)
    assert (result.stop_reason, result.verdict) == ("complete", value == 1.0)


def test_a_width_stops_an_undecided_run_if_it_is_given() -> None:
    problem = problem_of()
    truth = float(problem.scores.mean())
    made = loop(problem, f"score>={truth!r}", window=30, width=10.0, stable=10.0)
    finish(made, problem)
    result = made.result("t", problem.references.items)
    assert (result.stop_reason, result.n) == ("converged", 30)
    assert result.verdict is None
    assert 0.0 < result.probability < 1.0


def test_max_items_stops_an_undecided_run() -> None:
    problem = problem_of()
    truth = float(problem.scores.mean())
    made = loop(problem, f"score>={truth!r}", level=0.999999, max_items=6)
    finish(made, problem)
    result = made.result("t", problem.references.items)
    assert (result.stop_reason, result.verdict) == ("max_items", None)


def test_a_decision_at_the_last_item_of_the_budget_is_one() -> None:
    problem = problem_of()
    made = loop(problem, "score>=0.1")
    finish(made, problem)
    assert made.n < SIZE
    again = loop(problem, "score>=0.1", max_items=made.n)
    finish(again, problem)
    assert again.stop_reason == "decided"


def test_late_scores_move_the_probability_and_can_undo_the_verdict() -> None:
    problem = problem_of()
    made = loop(problem, "score>=0.1", model="rs-mean")
    finish(made, problem)
    before = made.result("t", problem.references.items)
    assert (before.stop_reason, before.verdict) == ("decided", True)
    for item in [i for i in range(SIZE) if i not in made.scores]:
        made.tell(item, -5.0)
        if made.n < SIZE:
            assert made.result("t", problem.references.items).stop_reason == "decided"
    after = made.result("t", problem.references.items)
    assert (after.verdict, after.probability) == (False, 0.0)
    assert after.stopped_at == before.n


def test_nothing_is_decided_in_the_middle_of_a_batch() -> None:
    problem = problem_of()
    made = loop(problem, "score>=0.1", batch=3, window=4)
    finish(made, problem, q=3)
    assert made.stop_reason == "decided"
    assert made.n % 3 == 0
    assert made.n >= 6


def test_a_threshold_in_other_units_is_refused_before_the_first_item() -> None:
    with pytest.raises(ValueError, match="expected a threshold in these units"):
        loop(problem_of(), "score>=70")


# Several targets


def joint(statement: str, **options) -> tuple[MultiTargetLoop, torch.Tensor]:
    problem = make_multi_target_problem(1, counts=(1,) * 20, n_targets=3)
    model = MultiTargetBayesAME(problem.references, n_targets=3, steps=4, **options)
    stop = StoppingRule(until=Decision.parse(statement, window=2))
    return MultiTargetLoop(model, problem.references, stop=stop), problem.scores


def results(made: MultiTargetLoop) -> list:
    return made.results(["a", "b", "c"], [f"q{i}" for i in range(20)])


def test_each_target_is_decided_by_itself_after_the_initial_items() -> None:
    made, scores = joint("score>=0.5", initial=0.25)
    first = made.ask(15)
    for target, item in first[:-1]:
        made.tell(target, item, float(scores[target, item]))
    assert all(r.verdict is None for r in results(made))
    assert made.stop_reasons == [None] * 3
    for target, item in first[-1:]:
        made.tell(target, item, float(scores[target, item]))
    while not made.done:
        for target, item in made.ask():
            made.tell(target, item, float(scores[target, item]))
    for t, result in enumerate(results(made)):
        assert result.stop_reason in ("decided", "complete")
        if result.stop_reason == "complete":
            assert result.verdict is (float(scores[t].mean()) >= 0.5)
        else:
            assert result.verdict is not None
            assert result.n >= 5 + 1
    assert "decided" in made.stop_reasons


def test_the_probability_of_a_target_goes_on_with_what_others_tell() -> None:
    made, scores = joint("score>=0.5", initial=0.25)
    for target, item in made.ask(15):
        made.tell(target, item, float(scores[target, item]))
    before = [r.probability for r in results(made)]
    for item in range(20):
        if item not in made.scores[0]:
            made.tell(0, item, float(scores[0, item]))
    after = results(made)
    assert after[0].verdict is (float(scores[0].mean()) >= 0.5)
    for t in (1, 2):
        z = (after[t].mean - 0.5) / ((after[t].high - after[t].low) / 2 / 1.959964)
        assert after[t].probability == pytest.approx(
            0.5 * math.erfc(-z / math.sqrt(2.0)), abs=1e-6
        )
        assert after[t].probability != before[t]


def test_a_target_with_all_items_is_known_before_the_others_begin() -> None:
    made, scores = joint("score>=0.5", initial=0.25)
    for item in range(20):
        made.tell(1, item, float(scores[1, item]))
    assert made.initial_left()
    result = results(made)[1]
    assert (result.stop_reason, result.verdict) == (
        "complete",
        float(scores[1].mean()) >= 0.5,
    )
