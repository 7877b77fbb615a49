from __future__ import annotations

import pytest
import torch
from multi_target_oracle import make_multi_target_problem
from multi_target_sessions import SharedMean

from gp_eval.experiments.batched.multi_target import simulate_multi_target
from gp_eval.experiments.curves import Curves
from gp_eval.experiments.simulators import make_simulator
from gp_eval.models import MultiTargetBayesAME, Performance
from gp_eval.models.registry import takes_targets
from gp_eval.multi_target_loop import MultiTargetLoop
from gp_eval.stopping import StoppingRule

SIZE = 18
OPTIONS = {"steps": 3, "refit_every": 4}
SELECTIONS = ("round-robin", "average", "random")


def problem_of(counts: tuple[int, ...] = (1,) * SIZE):
    return make_multi_target_problem(1, counts=counts)


def order() -> torch.Tensor:
    return torch.randperm(SIZE, generator=torch.Generator().manual_seed(5))


def simulate(problem, n_max: int, **options):
    def build(references, n_targets: int) -> MultiTargetBayesAME:
        return MultiTargetBayesAME(references, n_targets=n_targets, **OPTIONS | options)

    return simulate_multi_target(
        build, problem.references, problem.scores, order(), n_max=n_max
    )


@pytest.mark.parametrize("selection", SELECTIONS)
@pytest.mark.parametrize("counts", [(1,) * SIZE, (5, 7, 6)])
def test_the_last_column_is_the_truth(counts, selection: str) -> None:
    problem = problem_of(counts)
    curves = simulate(problem, SIZE, selection=selection)
    assert curves.mean.shape == curves.variance.shape == (3, SIZE)
    torch.testing.assert_close(
        curves.mean[:, -1], problem.scores.mean(1), rtol=1e-14, atol=0
    )
    assert curves.variance[:, -1].tolist() == [0.0] * 3
    # Two initial items: nothing is known before the second.
    assert bool(curves.mean[:, 0].isnan().all() & curves.variance[:, 0].isnan().all())
    # A target may be complete some rounds before, where targets are drawn.
    assert bool((curves.variance[:, 1 : SIZE // 2] > 0).all())


@pytest.mark.parametrize("selection", SELECTIONS)
def test_is_the_loop_driven_by_hand_read_after_every_round(selection: str) -> None:
    problem = problem_of()
    curves = simulate(problem, 11, selection=selection)
    model = MultiTargetBayesAME(
        problem.references, n_targets=3, selection=selection, **OPTIONS
    )
    loop = MultiTargetLoop(
        model, problem.references, stop=StoppingRule(width=1e-9), order=order()
    )
    for n in range(11):
        for _ in range(3):
            ((target, item),) = loop.ask()
            loop.tell(target, item, float(problem.scores[target, item]))
        if n:
            belief = loop.performance()
            assert torch.equal(curves.mean[:, n], belief.mean)
            assert torch.equal(curves.variance[:, n], belief.variance)


def test_a_capped_run_is_the_beginning_of_a_full_one() -> None:
    problem = problem_of()
    full, part = simulate(problem, SIZE), simulate(problem, 7)
    assert torch.equal(part.mean[:, 1:], full.mean[:, 1:7])
    assert torch.equal(part.variance[:, 1:], full.variance[:, 1:7])


def test_the_random_order_decides_the_initial_items() -> None:
    problem = problem_of()
    build = make_simulator("bayesame-multi", OPTIONS)
    one = build(problem.references, problem.scores, order(), n_max=2)
    other = build(problem.references, problem.scores, order().flip(0), n_max=2)
    assert bool((one.mean[:, 1] != other.mean[:, 1]).all())


def test_the_harness_simulates_all_targets_at_once_by_the_models_name() -> None:
    problem = problem_of()
    assert takes_targets("bayesame-multi")
    assert not takes_targets("bayesame")
    expected = simulate(problem, 6, selection="average", seed=7)
    options = {**OPTIONS, "selection": "average", "seed": 7}
    for made in (
        make_simulator("bayesame-multi", options),
        make_simulator("bayesame-multi", options, factory=MultiTargetBayesAME),
        make_simulator("bayesame-multi-average", {**OPTIONS, "seed": 7}),
    ):
        curves = made(problem.references, problem.scores, order(), n_max=6)
        assert torch.equal(curves.mean[:, 1:], expected.mean[:, 1:])
        assert torch.equal(curves.variance[:, 1:], expected.variance[:, 1:])
    with pytest.raises(ValueError, match=r"unknown options \['stepz'\]"):
        make_simulator("bayesame-multi", {"stepz": 3})


def test_the_initial_weights_differ_from_seed_to_seed_of_an_experiment() -> None:
    """The order stands for the seed; the same two items are evaluated first."""
    problem = problem_of()
    build = make_simulator("bayesame-multi", {**OPTIONS, "selection": "random"})
    swapped = order()
    swapped[[0, 1]] = swapped[[1, 0]]
    one, other = (
        build(problem.references, problem.scores, o, n_max=2)
        for o in (order(), swapped)
    )
    assert bool((one.mean[:, 1] != other.mean[:, 1]).any())


def test_weighted_items_are_simulated_as_well() -> None:
    problem = make_multi_target_problem(1, counts=(1,) * SIZE, weighted=True)
    curves = make_simulator("bayesame-multi", OPTIONS)(
        problem.references, problem.scores, order(), n_max=SIZE
    )
    torch.testing.assert_close(
        curves.mean[:, -1], problem.scores @ problem.weights, rtol=1e-14, atol=0
    )


class Student(SharedMean):
    """A joint belief of Student's t once anything is told."""

    def performance(self) -> Performance:
        belief = super().performance()
        told = sum(map(len, self.scores))
        dof = None if told <= 8 else torch.tensor(float(told)).double()
        return Performance(belief.mean, belief.variance, belief.covariance, dof)


def test_degrees_of_freedom_are_kept_where_any_belief_has_them() -> None:
    problem = problem_of()
    n_targets = problem.scores.shape[0]

    def curves(kind: type[SharedMean]) -> Curves:
        def build(references, n_targets: int) -> SharedMean:
            return kind(references, n_targets=n_targets)

        arguments = (build, problem.references, problem.scores, order())
        return simulate_multi_target(*arguments, n_max=6)

    told = [float(n * n_targets) for n in range(1, 7)]
    expected = [t if t > 8 else torch.inf for t in told]
    student = curves(Student)
    assert student.dof is not None
    assert torch.inf in expected
    assert student.dof.tolist() == [expected] * n_targets
    assert curves(SharedMean).dof is None
