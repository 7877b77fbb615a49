from __future__ import annotations

import pytest
import torch
from oracles import make_problem

from gp_eval.experiments.batched.proeval import simulate_proeval
from gp_eval.loop import EvaluationLoop
from gp_eval.models.baselines.proeval import ProEval
from gp_eval.stopping import StoppingRule


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("version", ["0.1.1", "2026-05"])
def test_equals_single_runs_of_the_loop(version: str, weighted: bool) -> None:
    problem = make_problem(
        1, counts=(1, 3, 1, 2, 1, 1, 2), n_references=4, weighted=weighted
    )
    refs, n_items = problem.references, problem.n_items
    generator = torch.Generator().manual_seed(5)
    targets = torch.rand(3, n_items, generator=generator, dtype=torch.float64)
    # The order in which a loop of seed 7 takes the items of a bucket.
    order = torch.randperm(n_items, generator=torch.Generator().manual_seed(7))
    curves = simulate_proeval(refs, targets, order, n_max=n_items, version=version)
    assert curves.mean.shape == curves.variance.shape == (3, n_items)
    for run, target in enumerate(targets):
        model = ProEval(refs, version=version)
        loop = EvaluationLoop(model, refs, stop=StoppingRule(width=1e-12), seed=7)
        variances = []
        while not loop.done:
            item = loop.ask()[0]
            loop.tell(item, float(target[item]))
            variances.append(float(model.performance().variance))
        assert curves.mean[run].tolist() == pytest.approx(loop.estimates, rel=1e-9)
        assert curves.variance[run].tolist() == pytest.approx(variances, rel=1e-9)


def test_fewer_items_are_a_prefix() -> None:
    problem = make_problem(1, counts=(1,) * 12)
    order = torch.arange(12)
    targets = problem.scores.unsqueeze(0)
    whole = simulate_proeval(problem.references, targets, order, n_max=12)
    part = simulate_proeval(problem.references, targets, order, n_max=5)
    torch.testing.assert_close(part.mean, whole.mean[:, :5], rtol=1e-12, atol=0)
    torch.testing.assert_close(part.variance, whole.variance[:, :5], rtol=1e-12, atol=0)


def test_noise_reaches_estimate_and_selection() -> None:
    problem = make_problem(1, counts=(1,) * 12)
    order, targets = torch.arange(12), problem.scores.unsqueeze(0)
    curves = simulate_proeval(problem.references, targets, order, n_max=12, noise=1e-9)
    model = ProEval(problem.references, noise=1e-9)
    model.condition(order, problem.scores)
    # Four directions of the sample covariance are learned to 1e-9 of noise, so that
    # cancellation leaves half the digits of the variance.
    assert float(curves.mean[0, -1]) == pytest.approx(
        float(model.performance().mean), rel=1e-6
    )
