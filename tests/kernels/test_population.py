from __future__ import annotations

import copy
import math

import gpytorch
import pytest
import torch
from gpytorch.kernels import MaternKernel, ScaleKernel
from item_response import KINDS, answers, spread

from gp_eval.kernels import PopulationKernel, PopulationStatistics
from gp_eval.kernels import population as module
from gp_eval.linalg import DenseKernelTable, make_kernel_table
from gp_eval.linalg.kernel_table import dense_covariance
from gp_eval.linalg.population_table import PopulationTable
from gp_eval.means import PopulationMean
from gp_eval.settings import exact_inference

CLOSE = {"rtol": 1e-10, "atol": 1e-13}


def rows(kind: str = "binary", n_items: int = 9, n_models: int = 5) -> torch.Tensor:
    return answers(spread(n_models), n_items, kind=kind, seed=2)


def kernel(x: torch.Tensor) -> PopulationKernel:
    """One whose target is unlike the references."""
    ones = torch.ones(x.shape[0], dtype=torch.float64)
    made = PopulationKernel(PopulationStatistics.from_scores(x, ones))
    with torch.no_grad():
        made.log_variances.copy_(torch.tensor([-0.7, -1.9, -2.4, -1.1]))
        made.effects.add_(torch.tensor([0.6, -0.2, 0.3])[: made.effects.shape[0]])
    return made


def by_loops(made: PopulationKernel, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """The formula in the docstring, from what the statistics say of single items."""
    stats, k = made.statistics, x.shape[1]
    a, *s, g = made.log_variances.exp().tolist()
    tau, theta = made.effects_std.tolist(), made.effects

    def item(row: torch.Tensor) -> dict:
        one = row.unsqueeze(0)
        mean = stats.mean_at(one, theta)
        middle = stats.smoothed_mean(one) if stats.bounded else row.mean(0, True)
        return {
            "d": float(stats.scale_at(one, mean)),
            "J": float(stats.sensitivity_at(mean)),
            "x": stats.features(one)[0].tolist(),
            "level": float(stats.level(one)),
            "z": ((row - row.mean()) / stats.scale_at(one, middle)).tolist(),
            "phi": row.tolist(),
        }

    def covariance(p: dict, q: dict) -> float:
        sample = sum(u * v for u, v in zip(p["z"], q["z"], strict=True)) / (k - 1)
        squared = sum((u - v) ** 2 for u, v in zip(p["phi"], q["phi"], strict=True))
        working = a * sample
        for variance, width in zip(s, module._WIDTHS, strict=True):
            working += variance * math.exp(-squared / (2 * width * stats.distance))
        apart = (p["level"] - q["level"]) / module._DIFFICULTY_LENGTH
        curve = g * math.exp(-apart * apart / 2)
        curve += sum(t * t * u * v for t, u, v in zip(tau, p["x"], q["x"], strict=True))
        return p["d"] * q["d"] * working + p["J"] * q["J"] * curve

    left, right = [item(row) for row in x], [item(row) for row in y]
    return torch.tensor(
        [[covariance(p, q) for q in right] for p in left], dtype=torch.float64
    )


@pytest.mark.parametrize("kind", KINDS)
def test_is_the_formula_entry_by_entry(kind: str) -> None:
    x, y = rows(kind), answers(spread(5), 4, kind=kind, seed=9)
    made = kernel(x)
    with torch.no_grad():
        torch.testing.assert_close(made(x).to_dense(), by_loops(made, x, x), **CLOSE)
        torch.testing.assert_close(made(x, y).to_dense(), by_loops(made, x, y), **CLOSE)


@pytest.mark.parametrize("kind", KINDS)
def test_the_diagonal_is_that_of_the_covariance(kind: str) -> None:
    x, y = rows(kind), answers(spread(5), 9, kind=kind, seed=9)
    made = kernel(x)
    with torch.no_grad():
        for pair in ((x, x), (x, y)):
            whole = made(*pair).to_dense().diagonal()
            torch.testing.assert_close(made(*pair, diag=True), whole, **CLOSE)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(3))
def test_is_symmetric_and_positive_semidefinite(kind: str, seed: int) -> None:
    x = answers(spread(5), 20, kind=kind, seed=seed)
    made = kernel(x)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        made.log_variances.copy_(4 * torch.randn(4, generator=generator))
        table = made(torch.cat([x, x[:3]])).to_dense()
    torch.testing.assert_close(table, table.T, **CLOSE)
    least = torch.linalg.eigvalsh(table)[0]
    assert float(least) > -1e-10 * float(table.diagonal().max())


def test_batches_of_rows_are_batches_of_covariances() -> None:
    x = rows(n_items=8)
    made = kernel(x)
    with torch.no_grad():
        got = made(x.view(2, 4, -1)).to_dense()
        whole = made(x).to_dense()
    torch.testing.assert_close(got[0], whole[:4, :4], **CLOSE)
    torch.testing.assert_close(got[1], whole[4:, 4:], **CLOSE)


def test_the_formula_is_differentiable_in_variances_and_effects() -> None:
    x = rows(n_items=4)
    made = kernel(x)

    def total(log_variances: torch.Tensor, effects: torch.Tensor) -> torch.Tensor:
        values = {"log_variances": log_variances, "effects": effects}
        return torch.func.functional_call(made, values, (x, x)).to_dense()

    start = (made.log_variances.detach().clone(), made.effects.clone())
    assert torch.autograd.gradcheck(total, [t.requires_grad_() for t in start])


@pytest.mark.parametrize("kind", KINDS)
def test_gpytorch_trains_its_variances(kind: str) -> None:
    x = rows(kind)
    made = kernel(x)
    noise = torch.full((9,), 0.1, dtype=torch.float64)

    class Model(gpytorch.models.ExactGP):
        def __init__(self) -> None:
            likelihood = gpytorch.likelihoods.FixedNoiseGaussianLikelihood(noise)
            super().__init__(x, x[:, 0], likelihood)
            self.covar_module, self.mean_module = made, PopulationMean(made)

        def forward(self, at: torch.Tensor) -> gpytorch.distributions.Distribution:
            mean, covariance = self.mean_module(at), self.covar_module(at)
            return gpytorch.distributions.MultivariateNormal(mean, covariance)

    model = Model().double()
    assert [name for name, _ in model.named_parameters()] == [
        "covar_module.log_variances"
    ]
    with exact_inference():
        mll = gpytorch.mlls.ExactMarginalLogLikelihood(model.likelihood, model)
        mll(model(x), x[:, 0]).backward()
    got = made.log_variances.grad

    def log_density(theta: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            made.log_variances.copy_(theta)
            covariance = by_loops(made, x, x) + torch.diag(noise)
            normal = torch.distributions.MultivariateNormal(made.mean(x), covariance)
            return normal.log_prob(x[:, 0]) / 9

    start, step = made.log_variances.detach().clone(), 1e-5
    for p in range(4):
        move = torch.zeros(4, dtype=torch.float64)
        move[p] = step
        slope = (log_density(start + move) - log_density(start - move)) / (2 * step)
        # Differences of a step of 1e-5 have ten digits, of a slope that may be small.
        assert float(got[p]) == pytest.approx(float(slope), rel=1e-6, abs=1e-9)


def test_is_one_term_of_a_sum_of_kernels() -> None:
    x = rows()
    made, other = kernel(x), MaternKernel(nu=1.5).double()
    scaled = ScaleKernel(made).double()
    scaled.outputscale = torch.tensor(0.5, dtype=torch.float64)
    total = scaled + other
    with torch.no_grad():
        want = 0.5 * made(x).to_dense() + other(x).to_dense()
        torch.testing.assert_close(total(x).to_dense(), want, **CLOSE)
        torch.testing.assert_close(dense_covariance(total, x), want, **CLOSE)
        table = make_kernel_table(total, x)
        assert isinstance(table, DenseKernelTable)
        torch.testing.assert_close(table.row(3), want[3], **CLOSE)


def test_the_lean_table_is_for_the_kernel_itself_alone() -> None:
    class Twice(PopulationKernel):
        def forward(self, *inputs: torch.Tensor, **options) -> torch.Tensor:
            return 2 * super().forward(*inputs, **options)

    x = rows()
    assert isinstance(make_kernel_table(kernel(x), x), PopulationTable)
    twice = make_kernel_table(Twice(kernel(x).statistics), x)
    assert isinstance(twice, DenseKernelTable)


def test_the_mean_is_that_of_the_kernel_and_has_no_parameters_of_its_own() -> None:
    x = rows()
    made = kernel(x)
    mean = PopulationMean(made)
    torch.testing.assert_close(mean(x), made.statistics.mean_at(x, made.effects))
    assert list(mean.parameters()) == []
    assert list(mean.buffers()) == []
    with torch.no_grad():
        made.effects += 1.0
    torch.testing.assert_close(mean(x), made.mean(x))


@pytest.mark.parametrize("kind", KINDS)
def test_a_target_like_the_references_has_their_mean(kind: str) -> None:
    x = rows(kind)
    ones = torch.ones(9, dtype=torch.float64)
    made = PopulationKernel(PopulationStatistics.from_scores(x, ones))
    want = made.statistics.smoothed_mean(x) if made.statistics.bounded else x.mean(-1)
    torch.testing.assert_close(made.mean(x), want, **CLOSE)


def test_a_copy_stands_for_itself() -> None:
    x = rows()
    made = torch.nn.ModuleDict({"kernel": kernel(x)})
    made["mean"] = PopulationMean(made["kernel"])
    twin = copy.deepcopy(made)
    before = made["mean"](x)
    with torch.no_grad():
        twin["kernel"].effects += 1.0
    torch.testing.assert_close(made["mean"](x), before, rtol=0, atol=0)
    torch.testing.assert_close(twin["mean"](x), twin["kernel"].mean(x))


def test_last_dim_is_batch_is_refused() -> None:
    x = rows()
    with pytest.raises(RuntimeError, match="last_dim_is_batch"):
        kernel(x).forward(x, x, last_dim_is_batch=True)


def test_names_of_components_are_as_many_as_variances() -> None:
    assert kernel(rows()).log_variances.shape == (len(module.COMPONENTS),)
