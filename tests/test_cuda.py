"""Everything numeric once more on a GPU, where there is one."""

from __future__ import annotations

import pytest
import torch
from oracles import make_problem

from gp_eval.experiments.batched.bayesame import simulate_bayesame
from gp_eval.loop import EvaluationLoop
from gp_eval.models import BayesAME
from gp_eval.stopping import StoppingRule

pytestmark = pytest.mark.skipif(
    not torch.cuda.is_available(), reason="needs a CUDA device"
)


@pytest.mark.parametrize("counts", [(1,) * 60, (9, 4, 12, 1, 8, 17, 6, 3)])
def test_a_run_is_the_same_on_both_devices(counts: tuple[int, ...]) -> None:
    problem = make_problem(1, counts=counts, n_references=6)
    curves = []
    for device in ("cpu", "cuda"):
        model = BayesAME(problem.references, refit_every=9, device=device)
        loop = EvaluationLoop(model, problem.references, stop=StoppingRule(width=1e-9))
        for _ in range(problem.n_items):
            item = loop.ask()[0]
            loop.tell(item, float(problem.scores[item]))
        curves.append(torch.tensor(loop.estimates, dtype=torch.float64))
    # The optimizer follows rounding; flat optima differ in the sixth digit.
    torch.testing.assert_close(curves[0], curves[1], rtol=1e-4, atol=1e-4)
    assert float(curves[1][-1]) == pytest.approx(float(problem.scores.mean()))


def test_a_simulation_is_the_same_on_both_devices() -> None:
    problem = make_problem(1, counts=(1,) * 60, n_references=6)
    scores = torch.rand(3, 60, dtype=torch.float64)
    options = {"n_max": 60, "refit_every": 10, "parametrization": "log"}
    runs = [
        simulate_bayesame(
            problem.references, scores, torch.arange(60), device=device, **options
        ).mean.cpu()
        for device in ("cpu", "cuda")
    ]
    torch.testing.assert_close(runs[0], runs[1], rtol=1e-3, atol=1e-3)
    torch.testing.assert_close(runs[1][:, -1], scores.mean(1))
