from __future__ import annotations

import pytest
import torch
from multi_target_oracle import (
    MultiTargetProblem,
    Pair,
    identical,
    make_multi_target_problem,
)

from gp_eval.acquisition import qAverageInformationGain
from gp_eval.loop import EvaluationLoop
from gp_eval.models import BayesAME, MultiTargetBayesAME, Performance
from gp_eval.multi_target_loop import MultiTargetLoop
from gp_eval.stopping import StoppingRule

NEVER = StoppingRule(width=1e-12)
SIZE = 20
SELECTIONS = ("round-robin", "average", "random")


def problem_of(n_targets: int = 3, **options) -> MultiTargetProblem:
    usual = {"counts": (1,) * SIZE, "n_targets": n_targets}
    return make_multi_target_problem(1, **usual | options)


def loop(problem: MultiTargetProblem, **options) -> MultiTargetLoop:
    own = {key: options.pop(key) for key in ("stop", "order") if key in options}
    seed = options.pop("seed", 0)
    usual = {"n_targets": problem.n_targets, "steps": 4, "refit_every": 4}
    model = MultiTargetBayesAME(problem.references, **usual | options)
    return MultiTargetLoop(
        model, problem.references, **{"stop": NEVER, "seed": seed} | own
    )


def tell(made: MultiTargetLoop, problem: MultiTargetProblem, pairs) -> None:
    for target, item in pairs:
        made.tell(target, item, float(problem.scores[target, item]))


def run(made: MultiTargetLoop, problem: MultiTargetProblem, n: int) -> list[Pair]:
    """Single asks, each told at once."""
    chosen: list[Pair] = []
    for _ in range(n):
        pairs = made.ask()
        assert len(pairs) == 1
        tell(made, problem, pairs)
        chosen += pairs
    return chosen


def start(made: MultiTargetLoop, problem: MultiTargetProblem) -> list[Pair]:
    """Evaluate the initial items."""
    return run(made, problem, made.model.initial_items * made.n_targets)


# The initial items


@pytest.mark.parametrize("selection", SELECTIONS)
def test_all_targets_begin_with_the_same_items_item_by_item(selection: str) -> None:
    problem = problem_of()
    made = loop(problem, selection=selection, initial=0.2)
    asked = made.ask(100)
    items = list(dict.fromkeys(item for _, item in asked))
    assert len(items) == 4
    assert asked == [(target, item) for item in items for target in range(3)]
    assert loop(problem, seed=1).ask(100) != loop(problem, seed=0).ask(100)


def test_nothing_beyond_the_initial_items_before_they_are_told() -> None:
    problem = problem_of()
    made = loop(problem)
    first = made.ask(4)
    assert len(made.ask(10)) == 2
    assert made.ask() == []
    tell(made, problem, first[::-1])
    assert made.ask(3) == []
    tell(made, problem, list(made.pending)[1:])
    assert made.ask() == []
    tell(made, problem, list(made.pending))
    assert len(made.ask()) == 1
    assert made.n == 6


def test_an_order_fixes_the_initial_items() -> None:
    order = torch.arange(SIZE).flip(0)
    made = loop(problem_of(), order=order)
    assert [item for _, item in made.ask(100)] == [19, 19, 19, 18, 18, 18]


def test_initial_items_told_unasked_are_not_asked() -> None:
    problem = problem_of()
    made = loop(problem, order=torch.arange(SIZE))
    tell(made, problem, [(1, 0), (0, 1), (2, 7), (2, 1)])
    asked = made.ask(100)
    assert asked == [(0, 0), (2, 0), (1, 1)]
    tell(made, problem, asked)
    assert made.ask()[0][0] == 0  # the first turn, whoever was asked last


def test_without_initial_items_the_targets_take_turns_at_once() -> None:
    problem = problem_of()
    made = loop(problem, initial=0.0)
    assert [target for target, _ in made.ask(5)] == [0, 1, 2, 0, 1]


def test_nobody_stops_before_the_initial_items_are_told() -> None:
    """Before the first training estimates and widths mean nothing."""
    problem = problem_of()
    rule = StoppingRule(width=100.0, stable=100.0, window=1)
    made = loop(problem, stop=rule, initial=0.2)
    pairs = made.ask(100)
    tell(made, problem, pairs[:-1])
    assert made.stop_reasons == [None, None, None]
    tell(made, problem, pairs[-1:])
    assert made.stop_reasons == [None, None, "converged"]
    assert list(made.model.updates) == [12]


def test_a_budget_below_the_initial_items_ends_the_run() -> None:
    problem = problem_of()
    made = loop(problem, initial=0.5, stop=StoppingRule(width=1e-9, max_items=3))
    pairs = made.ask(100)
    assert len(pairs) == 9
    tell(made, problem, pairs)
    assert made.stop_reasons == ["max_items"] * 3
    assert made.done
    assert made.ask() == []


# The items after them


@pytest.mark.parametrize("selection", ["round-robin", "random"])
def test_targets_take_turns(selection: str) -> None:
    problem = problem_of()
    made = loop(problem, selection=selection)
    start(made, problem)
    assert [target for target, _ in run(made, problem, 7)] == [0, 1, 2, 0, 1, 2, 0]


def test_each_item_is_the_one_of_highest_gain_about_its_own_target() -> None:
    problem = problem_of()
    latents = problem.kernel().latents
    made = loop(problem, initial=0.2, refit_every=None, latents=latents)
    # In place of training, a prior that the oracle knows.
    names = {"task_weights": problem.task_weights.reshape(-1).tolist()}
    for latent, kernel in enumerate(latents):
        for name, parameter in kernel.named_parameters():
            names[f"base_kernels.{latent}.{name}"] = [parameter.item()]
    update = {f"covar_module.{name}": value for name, value in names.items()}
    update["likelihood.noise_covar.raw_noise"] = [problem.sigma2]
    made.model.replay_updates({12: update})
    coreset = start(made, problem)
    for _ in range(6):
        ((target, item),) = made.ask()
        gains = {
            i: problem.gain(coreset, [(target, i)], target)
            for i in range(SIZE)
            if (target, i) not in coreset
        }
        assert gains[item] == pytest.approx(max(gains.values()), rel=1e-9)
        tell(made, problem, [(target, item)])
        coreset.append((target, item))


def test_items_of_highest_average_gain_go_to_targets_that_lack_them() -> None:
    problem = problem_of()
    made = loop(problem, selection="average", refit_every=None)
    start(made, problem)
    acquisition = qAverageInformationGain(made.model.model)
    drawn = []
    for _ in range(3 * (SIZE - 2)):
        left = [i for i in range(SIZE) if any(i not in s for s in made.scores)]
        gains = acquisition(torch.tensor(left).double().view(-1, 1, 1))
        ((target, item),) = made.ask()
        assert item not in made.scores[target]
        best = float(gains.max())
        assert float(gains[left.index(item)]) == pytest.approx(best, rel=1e-9)
        tell(made, problem, [(target, item)])
        drawn.append(target)
    assert made.done
    assert drawn != [0, 1, 2] * (SIZE - 2)
    assert set(drawn[:12]) == {0, 1, 2}


@pytest.mark.parametrize("counts", [(1,) * SIZE, (7, 8, 5)])
def test_random_items_come_in_an_order_of_each_targets_own(counts) -> None:
    problem = problem_of(counts=counts)
    runs = []
    for seed in (0, 0, 1):
        made = loop(problem, selection="random", seed=seed)
        pairs = run(made, problem, 3 * SIZE)[6:]
        runs.append([[i for t, i in pairs if t == target] for target in range(3)])
    assert runs[0] == runs[1]
    for one, other in ((runs[0][0], runs[0][1]), (runs[0][0], runs[2][0])):
        assert one != other


@pytest.mark.parametrize("selection", SELECTIONS)
def test_the_seed_fixes_a_run(selection: str) -> None:
    problem = problem_of()
    runs = [
        run(loop(problem, selection=selection, seed=seed), problem, 30)
        for seed in (0, 0, 1)
    ]
    assert runs[0] == runs[1] != runs[2]


@pytest.mark.parametrize("selection", SELECTIONS)
@pytest.mark.parametrize("n_targets", [1, 2, 4])
def test_a_batch_equals_single_asks_with_scores_in_between(
    n_targets: int, selection: str
) -> None:
    """Up to the next update, here after 6 rounds, and over updates between batches."""
    problem = problem_of(n_targets)
    options = {"selection": selection, "refit_every": 6}
    single = run(loop(problem, **options), problem, n_targets * SIZE)
    made, got = loop(problem, **options), []
    got += made.ask(n_targets)
    got += made.ask(100)
    tell(made, problem, got)
    while not made.done:
        asked = made.ask(3 * n_targets)
        tell(made, problem, asked[::-1])
        got += asked
    assert got == single


@pytest.mark.parametrize("selection", SELECTIONS)
def test_asking_again_before_telling_goes_on_where_it_was(selection: str) -> None:
    problem = problem_of()
    one, other = (loop(problem, selection=selection) for _ in range(2))
    start(one, problem)
    start(other, problem)
    assert [*one.ask(4), *one.ask(1), *one.ask(3)] == other.ask(8)


@pytest.mark.parametrize("selection", SELECTIONS)
def test_no_pair_is_asked_twice_and_pending_ones_last_until_told(
    selection: str,
) -> None:
    problem = problem_of()
    made = loop(problem, selection=selection)
    asked = start(made, problem)
    while pairs := made.ask(7):
        asked += pairs
        tell(made, problem, pairs[::3])  # the others stay pending
    assert len(asked) == len(set(asked)) == 3 * SIZE
    waiting = list(made.pending)
    assert waiting == [p for p in asked if p[1] not in made.scores[p[0]]]
    assert not made.done
    tell(made, problem, waiting)
    assert made.pending == {}
    assert made.done
    torch.testing.assert_close(
        made.performance().mean, problem.scores.mean(1), rtol=1e-14, atol=0
    )


@pytest.mark.parametrize("selection", SELECTIONS)
def test_every_pair_is_asked_once_and_the_end_is_exact(selection: str) -> None:
    for counts in ((1,) * SIZE, (7, 8, 5)):
        problem = problem_of(counts=counts)
        made = loop(problem, selection=selection)
        chosen = run(made, problem, 3 * SIZE)
        assert sorted(chosen) == sorted(problem.pairs)
        assert made.ask() == made.ask(5) == []
        assert made.stop_reasons == ["complete"] * 3
        assert made.done
        belief = made.performance()
        torch.testing.assert_close(
            belief.mean, problem.scores.mean(1), rtol=1e-14, atol=0
        )
        assert belief.covariance.count_nonzero() == 0


def test_scores_are_taken_in_any_order_asked_or_not() -> None:
    problem = problem_of()
    one, other = loop(problem, refit_every=None), loop(problem, refit_every=None)
    pairs = start(one, problem)
    more = one.ask(6)
    a, b = [pair for pair in problem.pairs if pair not in [*pairs, *more]][::25]
    tell(one, problem, [more[4], a, *more[:4][::-1], more[5], b])
    tell(other, problem, pairs)
    tell(other, problem, sorted([*more, a, b]))
    torch.testing.assert_close(
        one.performance().mean, other.performance().mean, rtol=1e-10, atol=0
    )
    torch.testing.assert_close(
        one.performance().covariance,
        other.performance().covariance,
        rtol=1e-9,
        atol=1e-15,
    )
    assert one.pending == {}


# Stopping


def test_a_target_stops_when_both_conditions_hold_and_not_before() -> None:
    problem = problem_of()
    stop = StoppingRule(width=0.25, stable=0.1, window=3)
    made = loop(problem, stop=stop)
    while not made.done:
        tell(made, problem, made.ask())
    for target, result in enumerate(made.results(["a", "b", "c"], list("x" * SIZE))):
        assert made.stop_reasons[target] == result.stop_reason == "converged"
        assert 3 <= result.n < SIZE
        assert result.stopped_at == result.n
        # Two initial items; the last target's second one brings the first training.
        untrained = (2, 2, 1)[target]
        for n in range(untrained + 1, result.n + 1):
            met = stop.met(result.estimates[untrained:n], result.widths[n - 1])
            assert met == (n == result.n)
        assert result.n >= untrained + stop.window
    at = made.results(["a", "b", "c"], list("x" * SIZE))[1].stopped_at
    tell(made, problem, [(1, i) for i in range(SIZE) if i not in made.scores[1]][:2])
    late = made.results(["a", "b", "c"], list("x" * SIZE))[1]
    assert (late.stopped_at, late.n) == (at, at + 2)


def test_a_target_that_has_stopped_gets_no_more_items_and_informs_the_others() -> None:
    problem = identical(problem_of())
    made = loop(problem, initial=0.2)
    start(made, problem)
    made.stop_reasons[1] = "converged"
    before = made.performance()
    pairs = run(made, problem, 8)
    assert [target for target, _ in pairs] == [0, 2] * 4
    after = made.performance()
    assert len(made.scores[1]) == 4
    assert float(after.variance[1]) < float(before.variance[1])
    assert float(after.mean[1]) != float(before.mean[1])
    # And the other way round: late scores of the target that has stopped.
    before = made.performance()
    tell(made, problem, [(1, i) for i in range(SIZE) if i not in made.scores[1]][:3])
    after = made.performance()
    assert float(after.variance[0]) < float(before.variance[0])
    assert float(after.mean[0]) != float(before.mean[0])
    assert made.stop_reasons[1] == "converged"


def test_the_average_strategy_leaves_stopped_targets_out() -> None:
    problem = problem_of()
    made = loop(problem, selection="average")
    start(made, problem)
    made.stop_reasons[1] = "converged"
    pairs = run(made, problem, 2 * (SIZE - 2))
    assert {target for target, _ in pairs} == {0, 2}
    assert made.done
    assert made.stop_reasons == ["complete", "converged", "complete"]


@pytest.mark.parametrize("selection", SELECTIONS)
def test_the_budget_is_of_each_target_and_counts_pending_items(selection: str) -> None:
    problem = problem_of()
    stop = StoppingRule(width=1e-9, max_items=5)
    made = loop(problem, selection=selection, stop=stop)
    start(made, problem)
    pairs = made.ask(100)
    assert sorted(target for target, _ in pairs) == [0] * 3 + [1] * 3 + [2] * 3
    assert made.ask() == []
    tell(made, problem, [pair for pair in pairs if pair[0] == 1])
    assert made.stop_reasons == [None, "max_items", None]
    assert not made.done
    tell(made, problem, list(made.pending))
    assert made.stop_reasons == ["max_items"] * 3
    assert made.done
    assert made.n == 15


def test_a_budget_beyond_the_items_is_none() -> None:
    problem = problem_of()
    made = loop(problem, stop=StoppingRule(width=1e-9, max_items=SIZE + 1))
    run(made, problem, 3 * SIZE)
    assert made.stop_reasons == ["complete"] * 3


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_a_constant_target_does_not_stop_on_the_window_alone(value: float) -> None:
    problem = problem_of()
    problem.scores[0] = value
    made = loop(problem, stop=StoppingRule(width=1e-4, stable=1.0, window=2))
    while made.stop_reasons[0] is None:
        tell(made, problem, made.ask())
    assert made.stop_reasons[0] == "complete"


# What is told about them


def test_results_have_names_and_the_course_of_each_target() -> None:
    problem = problem_of()
    made = loop(problem)
    pairs = [*start(made, problem), *run(made, problem, 4)]
    belief = made.performance()
    low, high = belief.interval()
    results = made.results(["a", "b", "c"], problem.references.items)
    for target, result in enumerate(results):
        assert result.target == "abc"[target]
        assert result.mean == float(belief.mean[target])
        assert (result.low, result.high) == (float(low[target]), float(high[target]))
        assert result.items == [f"q{i}" for t, i in pairs if t == target]
        assert result.n == len(result.items) == len(result.estimates)
        assert result.n == len(result.widths)
        assert result.N == SIZE
        assert result.stop_reason is None
    # The last one told is told about as it is, the others as they were then.
    assert results[0].estimates[-1] == results[0].mean
    assert results[0].widths[-1] == pytest.approx(results[0].width, rel=1e-12)
    assert results[1].estimates[-1] != results[1].mean


def test_a_refused_score_changes_nothing() -> None:
    problem = problem_of()
    made = loop(problem)
    pairs = start(made, problem)
    ((target, item),) = made.ask()
    state = (made.n, list(made.pending), list(made.stop_reasons))
    before = made.performance()
    for arguments, message in (
        ((target, item, float("nan")), "expected finite ones, got nan"),
        ((*pairs[0], 0.5), "is evaluated already"),
        ((3, item, 0.5), r"expected targets 0\.\.2"),
        ((-1, item, 0.5), r"expected targets 0\.\.2"),
        ((0, SIZE, 0.5), r"expected indices 0\.\.19"),
        ((0, -1, 0.5), r"expected indices 0\.\.19"),
    ):
        with pytest.raises(ValueError, match=message):
            made.tell(*arguments)
    assert (made.n, list(made.pending), list(made.stop_reasons)) == state
    assert torch.equal(made.performance().covariance, before.covariance)


def test_a_reserved_pair_is_pending_and_passes_the_turn_on() -> None:
    """What a session does with the pairs that its journal says were asked."""
    problem = problem_of()
    one, other = loop(problem), loop(problem)
    start(one, problem)
    start(other, problem)
    pairs = one.ask(4)
    for pair in pairs:
        other.reserve(*pair)
    assert list(other.pending) == pairs
    assert one.ask(3) == other.ask(3)


def test_scores_keep_double_precision() -> None:
    problem = problem_of()
    made = loop(problem)
    for pair in problem.pairs:
        made.tell(*pair, 0.1)
    torch.testing.assert_close(
        made.performance().mean,
        torch.full((3,), 0.1, dtype=torch.float64),
        rtol=1e-15,
        atol=0,
    )


@pytest.mark.parametrize("selection", ["round-robin", "average"])
def test_one_target_with_one_fixed_latent_runs_as_a_loop_of_one(selection: str) -> None:
    problem = problem_of(1)
    options = {"initial": 0.0, "noise": 0.02, "refit_every": None}
    many = loop(problem, selection=selection, **options)
    with torch.no_grad():
        many.model.model.covar_module.task_weights.fill_(1.0)
    many.model.model.refresh()
    model = BayesAME(problem.references, noise=0.02, refit_every=None)
    one = EvaluationLoop(model, problem.references, stop=NEVER)
    assert many.ask(4) == [(0, item) for item in one.ask(4)]
    for item in list(one.pending):
        one.tell(item, float(problem.scores[0, item]))
        many.tell(0, item, float(problem.scores[0, item]))
    while not one.done:
        (item,) = one.ask()
        assert many.ask() == [(0, item)]
        one.tell(item, float(problem.scores[0, item]))
        many.tell(0, item, float(problem.scores[0, item]))
    assert many.done
    (result,) = many.results(["a"], problem.references.items)
    assert result.estimates == pytest.approx(one.estimates, rel=1e-10)
    assert result.widths == pytest.approx(one.widths, rel=1e-8, abs=1e-12)


class Means:
    """Sample means; the least that the protocol asks for."""

    def __init__(self, n_items: int, n_targets: int) -> None:
        self.n_items, self.n_targets, self.initial_items = n_items, n_targets, 1
        self.rows: list[list[float]] = [[] for _ in range(n_targets)]

    def condition(self, items: torch.Tensor, scores: torch.Tensor) -> None:
        for (_, target), score in zip(items.tolist(), scores.tolist(), strict=True):
            self.rows[target].append(score)

    def performance(self) -> Performance:
        means = [sum(row) / len(row) if row else 0.5 for row in self.rows]
        left = [1.0 - len(row) / self.n_items for row in self.rows]
        variance = torch.tensor(left, dtype=torch.float64)
        mean = torch.tensor(means, dtype=torch.float64)
        return Performance(mean, variance, variance.diag())

    def acquisition(self) -> None:
        return None


def test_runs_any_model_of_the_protocol() -> None:
    problem = problem_of(2)
    made = MultiTargetLoop(Means(SIZE, 2), problem.references, stop=NEVER)
    chosen = run(made, problem, 2 * SIZE)
    assert sorted(chosen) == sorted(problem.pairs)
    assert made.stop_reasons == ["complete"] * 2
