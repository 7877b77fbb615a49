from __future__ import annotations

import itertools
import math
from pathlib import Path

import pytest
import torch

from gp_eval.data import References
from gp_eval.experiments import (
    evaluation_weighted_rmse,
    extrapolation,
    interpolation,
    random_sample_rmse,
    rmse_curve,
)
from gp_eval.loop import EvaluationLoop
from gp_eval.models import make_model
from gp_eval.stopping import StoppingRule


def test_rmse_is_over_runs_at_every_n() -> None:
    estimates = torch.tensor([[0.5, 0.6], [0.7, 0.6]], dtype=torch.float64)
    got = rmse_curve(estimates, torch.tensor(0.5, dtype=torch.float64))
    assert got.tolist() == pytest.approx([math.sqrt(0.02), 0.1])


def test_integral_weighs_late_errors_more() -> None:
    n = 4000
    x = torch.arange(1, n + 1, dtype=torch.float64) / n
    constant = evaluation_weighted_rmse(torch.full((n,), 0.02, dtype=torch.float64))
    assert float(constant) == pytest.approx(1e4 * 0.02 / 2, rel=1e-6)
    falling = evaluation_weighted_rmse(0.02 * (1 - x))
    assert float(falling) == pytest.approx(1e4 * 0.02 / 6, rel=1e-6)


def test_error_of_random_samples_by_enumeration() -> None:
    scores = torch.tensor([0.1, 0.9, 0.4, 0.4, 1.0], dtype=torch.float64)
    truth = float(scores.mean())
    curve = random_sample_rmse(scores)
    for n in range(1, 6):
        errors = [
            (sum(float(scores[i]) for i in chosen) / n - truth) ** 2
            for chosen in itertools.combinations(range(5), n)
        ]
        expected = math.sqrt(sum(errors) / len(errors))
        assert float(curve[n - 1]) == pytest.approx(expected, rel=1e-10, abs=1e-12)


def ifeval(shared_data: Path) -> References:
    return References.read(
        shared_data / "benchpred_ifeval.npz", duplicate_models="number"
    )


def test_random_mean_has_its_published_error_on_ifeval(shared_data: Path) -> None:
    """The paper prints 72.45 and 64.54; the targets of the first are a random draw,
    over which the figure has a standard deviation of 3.5."""

    def pooled(scores: torch.Tensor) -> float:
        curve = random_sample_rmse(scores).square().mean(0).sqrt()
        return float(evaluation_weighted_rmse(curve))

    references = ifeval(shared_data)
    draws = [
        pooled(interpolation(references, target_seed=s).target_scores())
        for s in range(8)
    ]
    assert sum(draws) / 8 == pytest.approx(72.45, abs=4.0)
    targets = extrapolation(references).target_scores()
    assert pooled(targets) == pytest.approx(64.54, abs=1.0)


def test_bayesame_is_in_the_published_range_on_ifeval(shared_data: Path) -> None:
    """A few seeds only: 49.53 in the paper, against 72.45 of RS-Mean. The tolerance
    is that of four targets and two seeds; benchmarks/ifeval.py does it in full."""
    split = interpolation(ifeval(shared_data))
    truths = split.target_scores()[:4]
    squares = []
    for seed in range(2):
        references = split.references(0.5, seed=seed)
        for scores in truths:
            model = make_model("bayesame", references)
            loop = EvaluationLoop(
                model, references, stop=StoppingRule(width=1e-9), seed=seed
            )
            for _ in range(541):
                item = loop.ask()[0]
                loop.tell(item, float(scores[item]))
            assert loop.estimate == float(scores.mean())
            errors = torch.tensor(loop.estimates, dtype=torch.float64) - scores.mean()
            squares.append(errors.square())
    ours = float(evaluation_weighted_rmse(torch.stack(squares).mean(0).sqrt()))
    curve = random_sample_rmse(truths).square().mean(0).sqrt()
    random = float(evaluation_weighted_rmse(curve))
    assert 35 < ours < 65
    assert 0.5 < ours / random < 0.9
