from __future__ import annotations

import pytest
import torch
from oracles import make_problem

from gp_eval.kernels import ReferenceScoreKernel
from gp_eval.linalg import Observations
from gp_eval.linalg.kernel_table import squared_distances
from gp_eval.optim import make_objective
from gp_eval.optim.batched import batched_objective, fit_batched, fit_one_by_one


def setting():
    """Four targets on sixty items, each with other evaluated items."""
    problem = make_problem(5, counts=(1,) * 60, n_references=8, sigma2=1e-2)
    generator = torch.Generator().manual_seed(1)
    phi = problem.buckets.phi
    noise = torch.randn(4, 60, generator=generator, dtype=torch.float64)
    scores = torch.stack([phi[:, k] - 0.5 * phi[:, k + 1].square() for k in range(4)])
    scores = scores + 0.1 * noise
    items = torch.stack(
        [torch.randperm(60, generator=generator)[:40] for _ in range(4)]
    )
    distances = squared_distances(ReferenceScoreKernel().double(), phi)
    return phi, scores.gather(1, items), items, distances


def observations(value, bucket) -> list[Observations]:
    noise = torch.full((60,), 1e-2, dtype=torch.float64)
    return [
        Observations.by_item(b, v, noise) for b, v in zip(bucket, value, strict=True)
    ]


def test_batched_objective_equals_single_ones() -> None:
    phi, value, bucket, distances = setting()
    at = torch.tensor([[0.4, 1.7], [1.0, 0.1], [0.02, 9.0], [1.0, 1.0]]).double()
    got = batched_objective(
        at,
        distances[bucket.unsqueeze(-1), bucket.unsqueeze(-2)],
        8,
        torch.full((4, 40), 1e-2, dtype=torch.float64),
        value - phi.mean(1)[bucket],
    )
    for run, data in enumerate(observations(value, bucket)):
        kernel = ReferenceScoreKernel().double()
        single = make_objective(kernel, phi, phi.mean(1), data)(at[run])
        torch.testing.assert_close(got[0][run], single[0], rtol=1e-10, atol=0)
        torch.testing.assert_close(got[1][run], single[1], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("parametrization", ["raw", "log"])
def test_batched_optimizer_reaches_what_scipy_reaches(parametrization: str) -> None:
    """Values, not parameters: flat problems end elsewhere at the same height."""
    phi, value, bucket, distances = setting()
    start = torch.ones(4, 2, dtype=torch.float64)
    single = fit_one_by_one(
        start,
        distances,
        8,
        phi.mean(1),
        observations(value, bucket),
        parametrization=parametrization,
    )
    together = fit_batched(
        start,
        distances,
        8,
        bucket,
        torch.full((4, 40), 1e-2, dtype=torch.float64),
        value - phi.mean(1)[bucket],
        parametrization=parametrization,
    )
    for run, data in enumerate(observations(value, bucket)):
        made = make_objective(ReferenceScoreKernel().double(), phi, phi.mean(1), data)
        assert float(made(together[run])[0]) == pytest.approx(
            float(made(single[run])[0]), abs=1e-5
        )
        assert float(made(start[run])[0]) > float(made(single[run])[0]) + 0.1
