from __future__ import annotations

from pathlib import Path

import joblib
import pytest
import torch
from gpytorch.kernels import MaternKernel, ScaleKernel
from pyarrow import parquet
from scipy import stats

from gp_eval._random import random_order
from gp_eval.data import References
from gp_eval.errors import StateMismatchError
from gp_eval.experiments.cells import Cell, plan_cells
from gp_eval.experiments.curves import Curves
from gp_eval.experiments.simulate import simulate
from gp_eval.experiments.simulators import make_simulator, simulate_one_by_one
from gp_eval.experiments.store import read_result
from gp_eval.models import Performance, make_model, register_model, registry


def table(n_items: int = 30, n_models: int = 24) -> References:
    generator = torch.Generator().manual_seed(0)
    skill = torch.rand(1, n_models, generator=generator, dtype=torch.float64)
    ease = torch.rand(n_items, 1, generator=generator, dtype=torch.float64)
    noise = torch.rand(n_items, n_models, generator=generator, dtype=torch.float64)
    return References(
        (0.5 * skill + 0.3 * ease + 0.2 * noise).round(decimals=6),
        [f"q{i}" for i in range(n_items)],
        [f"m{k}" for k in range(n_models)],
    )


def cells(**options) -> list[Cell]:
    defaults = {
        "models": ["bayesame", "bayesame-rs"],
        "regimes": ["interpolation", "extrapolation"],
        "reference_fractions": [0.5],
        "seeds": 2,
        "n_targets": 3,
        "draws": 2,
    }
    return plan_cells(["toy"], **{**defaults, **options})


def contents(folder: Path) -> dict[str, bytes]:
    return {
        str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*.parquet")
    }


def test_plan_has_one_extrapolation_whatever_the_draws() -> None:
    planned = cells()
    assert len(planned) == len({cell.path for cell in planned}) == 2 * 2 * (2 + 1)
    assert [c.draw for c in planned if c.regime == "extrapolation"] == [0] * 4


@pytest.mark.parametrize(
    "regime", ["low-correlation", "high-correlation", "chronological"]
)
def test_every_regime_runs(tmp_path: Path, regime: str) -> None:
    planned = cells(regimes=[regime], models=["rs-mean"])
    assert len(planned) == (4 if regime == "low-correlation" else 2)
    list(simulate(planned, {"toy": table()}, tmp_path))
    result = read_result(tmp_path / planned[0].path)
    assert result.targets == planned[0].split(table()).targets


def test_results_are_the_models_own_run_by_run(tmp_path: Path) -> None:
    scores = table()
    planned = cells(seeds=1, draws=1)
    assert len(list(simulate(planned, {"toy": scores}, tmp_path))) == 4
    for cell in planned:
        result = read_result(tmp_path / cell.path)
        split = cell.split(scores)
        assert result.cell == cell
        assert result.targets == split.targets
        references = split.references(0.5, seed=0)
        expected = simulate_one_by_one(
            lambda refs, cell=cell: make_model(cell.model, refs),
            references,
            split.target_scores(),
            random_order(30, 0),
            n_max=30,
        )
        close = {"rtol": 1e-9, "atol": 1e-12}
        torch.testing.assert_close(result.curves.mean, expected.mean, **close)
        torch.testing.assert_close(result.curves.variance, expected.variance, **close)
        torch.testing.assert_close(result.curves.mean[:, -1], result.truth)
        assert result.cpu_s > 0


def test_a_killed_experiment_redoes_nothing(tmp_path: Path) -> None:
    data = {"toy": table()}
    planned = cells()
    run = simulate(planned, data, tmp_path)
    for _ in range(5):
        next(run)
    run.close()
    kept = contents(tmp_path)
    assert len(kept) == 5
    assert len(list(simulate(planned, data, tmp_path))) == len(planned)
    after = contents(tmp_path)
    assert len(after) == len(planned)
    assert {name: after[name] for name in kept} == kept


def test_other_data_or_settings_are_not_mixed_in(tmp_path: Path) -> None:
    planned = cells(seeds=1, draws=1)
    list(simulate(planned, {"toy": table()}, tmp_path))
    with pytest.raises(StateMismatchError, match="other data or settings"):
        list(simulate(planned, {"toy": table(n_items=31)}, tmp_path))
    capped = cells(seeds=1, draws=1, n_max=10)
    with pytest.raises(StateMismatchError, match="other data or settings"):
        list(simulate(capped, {"toy": table()}, tmp_path))
    (tmp_path / planned[0].path).write_bytes(b"damage")
    with pytest.raises(StateMismatchError, match="is not the result of a cell"):
        list(simulate(planned, {"toy": table()}, tmp_path))


def test_processes_give_the_same_results(tmp_path: Path) -> None:
    planned = cells(seeds=1)
    list(simulate(planned, {"toy": table()}, tmp_path / "one"))
    list(simulate(planned, {"toy": table()}, tmp_path / "two", jobs=2))
    for cell in planned:
        one, two = (read_result(tmp_path / run / cell.path) for run in ("one", "two"))
        torch.testing.assert_close(one.curves.mean, two.curves.mean, rtol=0, atol=0)


class PriorMean:
    """A third party's method: it never learns."""

    def __init__(self, references: References, *, offset: float = 0.0) -> None:
        self.belief = Performance(
            references.scores.mean() + offset, torch.tensor(0.01).double()
        )

    def condition(self, items: torch.Tensor, scores: torch.Tensor) -> None:
        pass

    def performance(self) -> Performance:
        return self.belief

    def acquisition(self) -> None:
        return None


def test_a_method_of_ones_own_needs_no_batched_form(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "_MODELS", dict(registry._MODELS))
    register_model("prior-mean", PriorMean)
    planned = cells(
        models=["prior-mean"], seeds=1, options={"prior-mean": {"offset": 0.5}}
    )
    assert len(list(simulate(planned, {"toy": table()}, tmp_path))) == 3
    result = read_result(tmp_path / planned[0].path)
    assert result.curves.mean.unique().shape == (1,)
    assert float(result.curves.mean[0, 0]) > 0.7


def test_unknown_models_are_named_before_the_work(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="got 'nope'"):
        list(simulate(cells(models=["nope"]), {"toy": table()}, tmp_path))
    assert not contents(tmp_path)


def test_options_reach_the_batched_simulator() -> None:
    scores = table()
    references = scores.subset(models=scores.models[5:])
    targets = scores.scores[:, :2].T.contiguous()
    runs = [
        make_simulator("bayesame", options)(
            references, targets, random_order(30, 0), n_max=30
        ).mean
        for options in ({}, {"refit_every": 7})
    ]
    assert not torch.equal(runs[0], runs[1])


def test_a_dask_cluster_of_two_workers_gives_the_same_results(tmp_path: Path) -> None:
    distributed = pytest.importorskip("distributed", reason="needs dask.distributed")
    planned = cells(seeds=1)
    list(simulate(planned, {"toy": table()}, tmp_path / "here"))
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster),
        joblib.parallel_config(backend="dask"),
    ):
        done = list(simulate(planned, {"toy": table()}, tmp_path / "there"))
    assert len(done) == len(planned)
    for cell in planned:
        here, there = (
            read_result(tmp_path / at / cell.path) for at in ("here", "there")
        )
        torch.testing.assert_close(here.curves.mean, there.curves.mean, rtol=0, atol=0)


def test_weighted_items_are_simulated_target_by_target(tmp_path: Path) -> None:
    plain = table()
    weighted = References(
        plain.scores,
        plain.items,
        plain.models,
        item_weights=[1.0 + i % 3 for i in range(30)],
    )
    planned = cells(models=["bayesame"], seeds=1, draws=1)
    list(simulate(planned, {"toy": weighted}, tmp_path))
    for cell in planned:
        result = read_result(tmp_path / cell.path)
        expected = cell.split(weighted).target_scores() @ weighted.item_weights
        torch.testing.assert_close(result.truth, expected)
        torch.testing.assert_close(result.curves.mean[:, -1], expected)
        assert float(result.curves.variance[:, -1].abs().max()) == 0.0


def test_two_settings_of_one_model_do_not_share_a_file(tmp_path: Path) -> None:
    both = [
        *cells(models=["bayesame"], seeds=1, draws=1),
        *cells(
            models=["bayesame"],
            seeds=1,
            draws=1,
            options={"bayesame": {"refit_every": 7}},
        ),
    ]
    with pytest.raises(ValueError, match="two settings share"):
        list(simulate(both, {"toy": table()}, tmp_path))
    twice = cells(models=["rs-mean"], seeds=1, draws=1) * 2
    assert len(list(simulate(twice, {"toy": table()}, tmp_path))) == 2


def test_a_model_that_refuses_the_data_does_not_stop_the_others(tmp_path: Path) -> None:
    planned = cells(models=["irt-2pl", "rs-mean"], seeds=1, draws=1)
    outcomes = list(simulate(planned, {"toy": table()}, tmp_path))
    refused = {o.cell.model for o in outcomes if o.refused}
    assert refused == {"irt-2pl"}
    assert all("expected scores 0 or 1" in o.refused for o in outcomes if o.refused)
    for cell in planned:
        assert (tmp_path / cell.path).exists() is (cell.model == "rs-mean")


class OfStudentsT(PriorMean):
    """A method whose belief has heavier tails, but at one item."""

    n = 0

    def condition(self, items: torch.Tensor, scores: torch.Tensor) -> None:
        self.n += len(items)

    def performance(self) -> Performance:
        dof = None if self.n == 1 else torch.tensor(self.n / 2 + 1.0).double()
        return Performance(self.belief.mean, self.belief.variance, dof=dof)


def test_degrees_of_freedom_are_kept_with_the_curves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "_MODELS", dict(registry._MODELS))
    register_model("student", OfStudentsT)
    planned = cells(models=["student", "rs-mean"], seeds=1, draws=1)
    assert [o.refused for o in simulate(planned, {"toy": table()}, tmp_path)] == (
        [None] * 4
    )
    result = read_result(tmp_path / planned[0].path)
    expected = [torch.inf, *(n / 2 + 1.0 for n in range(2, 31))]
    assert result.curves.dof is not None
    assert result.curves.dof.tolist() == [expected] * 3
    half = result.curves.half_width()
    assert float(half[0, 0]) == pytest.approx(stats.norm.ppf(0.975) * 0.1)
    assert float(half[2, 4]) == pytest.approx(stats.t.ppf(0.975, 3.5) * 0.1)
    # A file of normal beliefs is as it was before.
    normal = tmp_path / planned[1].path
    assert read_result(normal).curves.dof is None
    assert parquet.read_schema(normal).names == ["target", "n", "mean", "variance"]


def test_curves_have_one_shape() -> None:
    mean = torch.zeros(3, 5)
    with pytest.raises(ValueError, match=r"one shape R x n_max, got .*'dof': \(3, 1\)"):
        Curves(mean, mean, torch.ones(3, 1))


class NoFreedom(PriorMean):
    """A method that loses its degrees of freedom."""

    def performance(self) -> Performance:
        nothing = torch.tensor(float("nan"), dtype=torch.float64)
        return Performance(self.belief.mean, self.belief.variance, dof=nothing)


def test_degrees_of_freedom_that_are_none_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "_MODELS", dict(registry._MODELS))
    register_model("no-freedom", NoFreedom)
    planned = cells(models=["no-freedom"], seeds=1, draws=1)
    outcomes = list(simulate(planned, {"toy": table()}, tmp_path))
    assert all("dof: expected values > 0" in str(o.refused) for o in outcomes)
    assert not contents(tmp_path)


class Broken(PriorMean):
    """A method that loses its numbers."""

    def performance(self) -> Performance:
        return Performance(self.belief.mean * torch.nan, self.belief.variance)


def test_curves_that_are_not_finite_never_reach_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "_MODELS", dict(registry._MODELS))
    register_model("broken", Broken)
    planned = cells(models=["broken"], seeds=1, draws=1)
    outcomes = list(simulate(planned, {"toy": table()}, tmp_path))
    assert all("not finite" in str(o.refused) for o in outcomes)
    assert not contents(tmp_path)


def test_mistakes_in_cells_are_named() -> None:
    for bad in ({"data": "../x"}, {"model": ""}, {"model": "a/b"}):
        names = {"data": "toy", "model": "rs-mean", **bad}
        with pytest.raises(ValueError, match="cannot name a folder"):
            Cell(regime="interpolation", reference_fraction=0.5, **names)
    with pytest.raises(ValueError, match="n_max: expected at least 1"):
        cells(n_max=0)
    with pytest.raises(ValueError, match=r"options: not among the models: \['typo'\]"):
        cells(options={"typo": {}})
    with pytest.raises(ValueError, match=r"rs-mean: unknown options \['refit'\]"):
        make_simulator("rs-mean", {"refit": 3})


def test_options_are_kept_as_a_file_gives_them_back(tmp_path: Path) -> None:
    options = {"bayesame": {"parametrization": "log"}}
    planned = cells(models=["bayesame"], seeds=1, draws=1, options=options)
    list(simulate(planned, {"toy": table()}, tmp_path))
    again = list(simulate(planned, {"toy": table()}, tmp_path))
    assert [o.refused for o in again] == [None, None]


def test_a_kernel_of_ones_own_is_simulated_run_by_run() -> None:
    scores = table()
    references = scores.subset(models=scores.models[5:])
    targets = scores.scores[:, :2].T.contiguous()
    kernel = {"covar_module": ScaleKernel(MaternKernel(nu=1.5))}
    own = make_simulator("bayesame", kernel)
    curves = own(references, targets[:1], random_order(30, 0), n_max=30)
    torch.testing.assert_close(curves.mean[:, -1], targets[:1].mean(1))
