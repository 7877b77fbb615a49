from __future__ import annotations

import pytest
import torch
from oracles import Problem, make_problem
from scipy import stats

from gp_eval.data import References
from gp_eval.evaluation import evaluate
from gp_eval.loop import EvaluationLoop
from gp_eval.models import Performance, make_model
from gp_eval.stopping import StoppingRule

NEVER = StoppingRule(width=1e-12)


def unique_problem(size: int = 50) -> Problem:
    return make_problem(1, counts=(1,) * size, n_references=6)


def loop(problem: Problem, *, model: str = "bayesame", seed: int = 0, **options):
    stop = options.pop("stop", NEVER)
    made = make_model(model, problem.references, **options)
    return EvaluationLoop(made, problem.references, stop=stop, seed=seed)


def run(made: EvaluationLoop, problem: Problem, n: int) -> list[int]:
    chosen = []
    for _ in range(n):
        item = made.ask()[0]
        made.tell(item, float(problem.scores[item]))
        chosen.append(item)
    return chosen


def test_first_selections_do_not_depend_on_the_scores() -> None:
    problem = unique_problem()
    first = run(loop(problem, refit_every=20), problem, 20)
    problem.scores = 1 - problem.scores.square()
    assert run(loop(problem, refit_every=20), problem, 20) == first


def test_asking_for_a_batch_equals_single_asks_before_an_update() -> None:
    problem = unique_problem()
    single = run(loop(problem, refit_every=20), problem, 20)
    made = loop(problem, refit_every=20)
    batches = []
    for q in (5, 1, 7, 7):
        items = made.ask(q)
        batches += items
        for item in reversed(items):
            made.tell(item, float(problem.scores[item]))
    assert batches == single


def test_asking_again_before_telling_goes_on_where_it_was() -> None:
    problem = unique_problem()
    made = loop(problem)
    assert [*made.ask(3), *made.ask(1), *made.ask(2)] == loop(problem).ask(6)


def test_every_item_is_asked_once_and_the_end_is_exact() -> None:
    for model in ("bayesame", "bayesame-rs"):
        problem = unique_problem()
        made = loop(problem, model=model, refit_every=15)
        chosen = run(made, problem, 50)
        assert sorted(chosen) == list(range(50))
        assert made.ask() == []
        assert made.stop_reason == "complete"
        assert made.estimate == float(problem.scores.mean())
        assert made.width == 0.0


def test_random_selection_is_a_permutation_fixed_by_the_seed() -> None:
    problem = unique_problem()
    orders = [
        run(loop(problem, model="bayesame-rs", seed=seed), problem, 50)
        for seed in (0, 0, 1)
    ]
    assert orders[0] == orders[1] != orders[2]


def test_stops_when_both_conditions_hold_and_not_before() -> None:
    problem = unique_problem()
    stop = StoppingRule(width=0.2, stable=0.05, window=5)
    made = loop(problem, stop=stop)
    while not made.done:
        item = made.ask()[0]
        made.tell(item, float(problem.scores[item]))
    assert made.stop_reason == "converged"
    for n in range(1, made.n + 1):
        assert stop.met(made.estimates[:n], made.widths[n - 1]) == (n == made.n)


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_a_constant_target_does_not_stop_on_the_window_alone(value: float) -> None:
    problem = make_problem(0, counts=(12, 12, 12, 12), n_references=4)
    problem.scores = torch.full((48,), value, dtype=torch.float64)
    made = loop(problem, stop=StoppingRule(width=0.03, stable=1.0, window=5))
    while not made.done:
        item = made.ask()[0]
        made.tell(item, value)
        if made.n < 48:
            assert made.width > 0.0
    assert made.n > 5


def test_budget_counts_pending_items() -> None:
    problem = unique_problem()
    made = loop(problem, stop=StoppingRule(width=1e-9, max_items=5))
    first = made.ask(3)
    assert len(made.ask(10)) == 2
    assert made.ask() == []
    for item in first:
        made.tell(item, 0.5)
    assert made.stop_reason is None
    for item in list(made.pending):
        made.tell(item, 0.5)
    assert made.stop_reason == "max_items"


def test_late_and_unasked_scores_are_taken() -> None:
    problem = unique_problem()
    made = loop(problem, stop=StoppingRule(width=1e-9, max_items=2))
    made.tell(7, 0.1)
    assert 7 not in made.ask(1)
    made.tell(8, 0.2)
    assert made.done
    assert made.stopped_at == 2
    made.tell(9, 0.3)
    assert made.n == 3
    assert made.stop_reason == "max_items"
    assert made.result("t", problem.references.items).stopped_at == 2


def test_evaluate_runs_a_target_by_item_ids() -> None:
    problem = unique_problem()
    asked = []

    def score(item: str) -> float:
        asked.append(item)
        return float(problem.scores[int(item[1:])])

    result = evaluate(
        problem.references,
        score,
        target="mine",
        stop=StoppingRule(width=0.5, stable=1.0, window=5),
    )
    assert result.target == "mine"
    assert result.items == asked
    assert result.n == len(asked) == len(result.estimates) == len(result.widths)
    assert result.N == 50
    assert result.mean == result.estimates[-1]
    assert result.width == pytest.approx(result.widths[-1])
    assert result.stop_reason == "converged"


def test_scores_keep_double_precision() -> None:
    problem = unique_problem()
    made = loop(problem)
    for item in range(50):
        made.tell(item, 0.1)
    assert made.estimate == pytest.approx(0.1, rel=1e-15)


def test_items_of_a_rounded_bucket_come_in_random_order() -> None:
    generator = torch.Generator().manual_seed(0)
    scores = torch.rand(40, 4, generator=generator, dtype=torch.float64)
    scores[31:] = scores[30] + 1e-6 * torch.rand(9, 4, generator=generator).double()
    references = References(
        scores, [f"q{i}" for i in range(40)], [f"m{k}" for k in range(4)]
    )
    firsts = set()
    for seed in range(8):
        model = make_model("bayesame", references, tolerance=1e-2)
        made = EvaluationLoop(model, references, stop=NEVER, seed=seed)
        firsts.add(next(item for item in made.ask(40) if item >= 30))
    assert len(firsts) > 2


class HeavyTails:
    """A belief of Student's t with as many degrees of freedom as items."""

    n = 0

    def condition(self, items: torch.Tensor, scores: torch.Tensor) -> None:
        self.n += len(items)

    def performance(self) -> Performance:
        half = torch.tensor(0.5, dtype=torch.float64)
        dof = torch.tensor(self.n + 1.0, dtype=torch.float64)
        return Performance(half, half.square() / 100, dof=dof)

    def acquisition(self) -> None:
        return None


def test_the_interval_and_the_stop_mind_degrees_of_freedom() -> None:
    problem = unique_problem()
    rule = StoppingRule(width=0.25, window=1)
    made = EvaluationLoop(HeavyTails(), problem.references, stop=rule)
    while not made.done:
        run(made, problem, 1)
    widths = [2 * 0.05 * stats.t.ppf(0.975, n + 1) for n in range(1, 50)]
    n = next(n for n, width in enumerate(widths, start=1) if width <= 0.25)
    assert made.n == n > 3
    assert made.widths == pytest.approx(widths[:n], rel=1e-10)
    result = made.result("target", problem.references.items)
    assert result.high - 0.5 == pytest.approx(widths[n - 1] / 2, rel=1e-10)
