"""Everything numeric once more on a GPU, where there is one."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from gpytorch.kernels import Kernel, MaternKernel, ScaleKernel
from oracles import make_problem

from gp_eval.experiments.batched.bayesame import simulate_bayesame
from gp_eval.loop import EvaluationLoop
from gp_eval.models import BayesAME, MultiTargetBayesAME
from gp_eval.multi_target_loop import MultiTargetLoop
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


def run_of_three(device: str, **options: object) -> MultiTargetLoop:
    problem = make_problem(1, counts=(1,) * 40, n_references=6)
    generator = torch.Generator().manual_seed(2)
    scores = torch.rand(3, 40, generator=generator, dtype=torch.float64)
    model = MultiTargetBayesAME(
        problem.references,
        n_targets=3,
        steps=60,
        refit_every=9,
        device=device,
        **options,  # type: ignore[arg-type]
    )
    loop = MultiTargetLoop(model, problem.references, stop=StoppingRule(width=1e-9))
    while not loop.done:
        for target, item in loop.ask(5):
            loop.tell(target, item, float(scores[target, item]))
    torch.testing.assert_close(loop.performance().mean.cpu(), scores.mean(1))
    return loop


@pytest.mark.parametrize("selection", ["round-robin", "average", "random"])
@pytest.mark.parametrize("own", [False, True], ids=["closed-form", "autograd"])
def test_several_targets_are_trained_and_selected_on_a_gpu(
    selection: str, own: bool, tmp_path: Path
) -> None:
    def latents() -> list[Kernel] | None:
        return [ScaleKernel(MaternKernel(nu=2.5))] if own else None

    runs = [
        run_of_three(device, selection=selection, latents=latents())
        for device in ("cpu", "cuda", "cuda")
    ]
    # The optimizer follows rounding, and what is chosen follows the optimizer: only
    # what comes before the second training is compared between devices.
    first = [torch.tensor(loop._estimates)[:, :6] for loop in runs]
    torch.testing.assert_close(first[0], first[1], rtol=1e-4, atol=1e-4)
    assert runs[1].model.updates == runs[2].model.updates  # the seed fixes all
    assert runs[1].scores == runs[2].scores
    runs[1].model.save(tmp_path / "gpu.npz")
    again = MultiTargetBayesAME(
        make_problem(1, counts=(1,) * 40, n_references=6).references,
        n_targets=3,
        latents=latents(),
    )
    again.load(tmp_path / "gpu.npz")
    torch.testing.assert_close(
        again.performance().mean, runs[1].performance().mean.cpu()
    )
