from __future__ import annotations

import pytest
import torch
from oracles import make_problem

from gp_eval.data import References
from gp_eval.experiments.batched.bayesame import _Runs, simulate_bayesame
from gp_eval.loop import EvaluationLoop
from gp_eval.models import make_model
from gp_eval.models.protocol import Performance
from gp_eval.optim.batched import fit_batched
from gp_eval.stopping import StoppingRule


def targets(references: References) -> torch.Tensor:
    generator = torch.Generator().manual_seed(3)
    noise = torch.rand(3, len(references.items), generator=generator).double()
    return 0.5 * references.scores[:, :3].T + 0.5 * noise


def single(references, scores, seed, n_max, **options):
    made = EvaluationLoop(
        make_model("bayesame", references, **options),
        references,
        stop=StoppingRule(width=1e-9),
        seed=seed,
    )
    for _ in range(n_max):
        item = made.ask()[0]
        made.tell(item, float(scores[item]))
    return made


@pytest.mark.parametrize(
    ("counts", "options"),
    [
        ((1,) * 60, {}),
        ((1,) * 60, {"selection": "random"}),
        ((1,) * 60, {"parametrization": "log"}),
        ((1,) * 45 + (2, 3, 1, 4, 1), {}),
        ((9, 4, 12, 1, 8, 17, 6, 3), {}),
        ((9, 4, 12, 1, 8, 17, 6, 3), {"noise": 0.01, "refit_every": None}),
    ],
)
def test_lock_step_equals_single_runs(counts: tuple[int, ...], options: dict) -> None:
    problem = make_problem(1, counts=counts, n_references=6)
    references, scores = problem.references, targets(problem.references)
    options = {"refit_every": 9, **options}
    n_max = problem.n_items
    order = torch.randperm(n_max, generator=torch.Generator().manual_seed(5))
    curves = simulate_bayesame(references, scores, order, n_max=n_max, **options)
    for run in range(3):
        alone = single(references, scores[run], 5, n_max, **options)
        expected = torch.tensor(alone.estimates, dtype=torch.float64)
        torch.testing.assert_close(curves.mean[run], expected, rtol=1e-9, atol=1e-9)
        width = Performance(curves.mean[run], curves.variance[run]).width()
        expected = torch.tensor(alone.widths, dtype=torch.float64)
        # Widths are roots: at the end, of differences of equal numbers.
        torch.testing.assert_close(width, expected, rtol=1e-6, atol=1e-9)
        assert float(curves.mean[run, -1]) == pytest.approx(
            float(scores[run].mean()), rel=1e-14
        )
    assert curves.variance[:, -1].tolist() == [0.0] * 3


def test_a_capped_run_is_the_beginning_of_a_full_one() -> None:
    problem = make_problem(1, counts=(1,) * 40, n_references=6)
    scores, order = targets(problem.references), torch.arange(40)
    full = simulate_bayesame(problem.references, scores, order, n_max=40, refit_every=9)
    part = simulate_bayesame(problem.references, scores, order, n_max=25, refit_every=9)
    torch.testing.assert_close(part.mean, full.mean[:, :25], rtol=1e-12, atol=0)


def test_fits_as_one_batch_give_the_same_curves_on_easy_problems(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What a GPU does, on the CPU. The optima agree to the optimizer's tolerance."""
    problem = make_problem(1, counts=(1,) * 60, n_references=6)
    scores, order = targets(problem.references), torch.arange(60)
    options = {"n_max": 20, "refit_every": 10, "parametrization": "log"}
    apart = simulate_bayesame(problem.references, scores, order, **options)
    monkeypatch.setattr(_Runs, "_fit_one_by_one", _Runs._fit_as_batch)
    together = simulate_bayesame(problem.references, scores, order, **options)
    torch.testing.assert_close(together.mean, apart.mean, rtol=1e-3, atol=1e-3)
    assert fit_batched.__module__ == "gp_eval.optim.batched"


def test_weighted_items_are_refused() -> None:
    problem = make_problem(0, weighted=True)
    with pytest.raises(ValueError, match="one run at a time"):
        simulate_bayesame(
            problem.references,
            targets(problem.references),
            torch.arange(problem.n_items),
            n_max=5,
        )
