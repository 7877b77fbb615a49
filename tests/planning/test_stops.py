from __future__ import annotations

import numpy as np
import pytest
import torch
from plans import done, population

from gp_eval._random import random_order
from gp_eval.experiments.simulators import make_simulator
from gp_eval.loop import EvaluationLoop
from gp_eval.models import make_model
from gp_eval.models.protocol import Performance
from gp_eval.planning.folds import Fold
from gp_eval.planning.stops import find_stops, squared_errors
from gp_eval.planning.tasks import Task, run_tasks
from gp_eval.stopping import StoppingRule

N = 50


def curves(seed: int, n_max: int = N, n_runs: int = 4):
    generator = torch.Generator().manual_seed(seed)
    truth = torch.rand(n_runs, generator=generator, dtype=torch.float64)
    left = 1 - torch.arange(1, n_max + 1, dtype=torch.float64) / N
    noise = torch.randn(n_runs, n_max, generator=generator, dtype=torch.float64)
    mean = truth.unsqueeze(-1) + 0.05 * left * noise.cumsum(-1) / N
    scale = 0.02 * torch.rand(n_runs, 1, generator=generator, dtype=torch.float64)
    return mean, (scale * left).square(), truth


@pytest.mark.parametrize(("width", "stable"), [(0.02, 0.01), (0.004, 0.01), (1, 1e-9)])
def test_stops_are_those_of_the_rule_step_by_step(width: float, stable: float) -> None:
    mean, variance, truth = curves(0)
    rule = StoppingRule(width=width, stable=stable, window=5)
    found = find_stops(
        [done(mean, variance, truth, targets=("a", "b", "c", "d"), n_items=N)], rule
    )
    for r in range(4):
        widths = Performance(mean[r], variance[r]).width().tolist()
        row = mean[r].tolist()
        met = [
            n for n in range(1, N + 1) if rule.met(row[:n], widths[n - 1])
        ]  # fmt: skip
        n = met[0] if met else N
        narrow = n
        while narrow > 1 and widths[narrow - 2] <= width:
            narrow -= 1
        error = row[n - 1] - float(truth[r])
        assert found.items[r] == n
        assert found.narrow[r] == narrow
        assert found.errors[r] == pytest.approx(error, rel=1e-10)
        assert found.covered[r] == (abs(error) <= widths[n - 1] / 2 + 1e-12)
        assert found.stopped[r]


def test_a_run_that_was_cut_has_not_stopped() -> None:
    mean, variance, truth = curves(1, n_max=20)
    rule = StoppingRule(width=1e-6, stable=0.01, window=5)
    cut = done(mean, variance, truth, targets=("a", "b", "c", "d"), n_items=N)
    found = find_stops([cut], rule)
    assert not found.stopped.any()
    assert (found.items == 20).all()
    assert (found.narrow == 20).all()


def test_a_cut_run_is_projected_like_a_random_sample() -> None:
    n = torch.arange(1, N + 1, dtype=torch.float64)
    single = torch.tensor([[0.25], [0.01]], dtype=torch.float64)
    variance = single * (1 / n - 1 / N)
    truth = torch.full((2,), 0.5, dtype=torch.float64)
    mean = truth.unsqueeze(-1).expand(2, N)
    rule = StoppingRule(width=0.1, stable=0.01, window=5)
    whole = find_stops(
        [done(mean, variance, truth, targets=("a", "b"), n_items=N)], rule
    )
    short = find_stops(
        [done(mean[:, :15], variance[:, :15], truth, targets=("a", "b"), n_items=N)],
        rule,
    )
    assert (whole.projected == whole.items).all()
    assert short.stopped.tolist() == [False, True]
    # Items are whole, projections are not.
    assert np.ceil(short.projected).tolist() == whole.items.tolist()
    assert short.projected[0] > 15


def test_a_run_that_was_cut_while_narrow_is_projected_to_its_cut() -> None:
    mean, _, truth = curves(3, n_max=20)
    moving = torch.arange(20, dtype=torch.float64).expand(4, 20)
    flat = torch.full_like(mean, 1e-12)
    cut = done(moving, flat, truth, targets=("a", "b", "c", "d"), n_items=N)
    found = find_stops([cut], StoppingRule(width=0.1, stable=0.01, window=5))
    assert not found.stopped.any()
    assert (found.projected == 20).all()
    assert (found.narrow == 1).all()


def test_stops_are_those_of_a_run_in_the_loop() -> None:
    table = population(n_items=60, n_models=14)
    rule = StoppingRule(width=0.2, stable=0.05, window=6)
    fold = Fold("interpolation", table.models[:2], table.models[2:], seed=9)
    (result,) = run_tasks(
        [Task("bayesame", fold, 60)],
        table,
        {"bayesame": make_simulator("bayesame")},
        jobs=1,
    )
    found = find_stops([result], rule)
    references = fold.references(table)
    for t, name in enumerate(fold.targets):
        scores = table.frame[name].tolist()
        model = make_model("bayesame", references)
        loop = EvaluationLoop(model, references, stop=rule, order=random_order(60, 9))
        while not loop.done:
            for item in loop.ask():
                loop.tell(item, scores[item])
        assert found.items[t] == loop.stopped_at < 60
        # Batched and single runs sum in different orders.
        error = loop.estimate - np.mean(scores)
        assert found.errors[t] == pytest.approx(error, rel=1e-8, abs=1e-10)


def test_squared_errors_are_of_one_place_in_the_curves() -> None:
    mean, variance, truth = curves(2)
    of = done(mean, variance, truth, targets=("a", "b", "c", "d"), n_items=N)
    wanted = [float(mean[r, 11] - truth[r]) ** 2 for r in range(4)]
    assert squared_errors([of, of], 12) == pytest.approx(2 * wanted, rel=1e-10)


def test_a_refusal_comes_back_with_its_reason() -> None:
    table = population()
    scores = table.scores * 0.5
    half = type(table)(scores, table.items, table.models)
    fold = Fold("interpolation", half.models[:1], half.models[1:], seed=0)
    (result,) = run_tasks(
        [Task("irt-2pl", fold, 10)],
        half,
        {"irt-2pl": make_simulator("irt-2pl")},
        jobs=1,
    )
    assert result.curves is None
    assert result.refused is not None
    assert "0" in result.refused
