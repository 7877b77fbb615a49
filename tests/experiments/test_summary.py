from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
import torch
from cells import N, result
from scipy.stats import spearmanr

from gp_eval.cli.options import Paper
from gp_eval.experiments import evaluation_weighted_rmse
from gp_eval.experiments.curves import Curves
from gp_eval.experiments.figures import plot_summaries
from gp_eval.experiments.presets import PRESETS
from gp_eval.experiments.store import CellResult
from gp_eval.experiments.summary import first_stop, summarise
from gp_eval.experiments.tables import published_value, rmse_table
from gp_eval.models.registry import check_options
from gp_eval.stopping import StoppingRule


def test_rmse_is_over_seeds_and_then_over_targets() -> None:
    results = [result(seed, draw) for seed in range(4) for draw in range(2)]
    (summary,) = summarise(results)
    per_target = []
    for draw in range(2):
        for t in range(3):
            errors = [
                float(r.curves.mean[t, 9] - r.truth[t])
                for r in results
                if r.cell.draw == draw
            ]
            per_target.append(sum(e * e for e in errors) / len(errors))
    pooled = math.sqrt(sum(per_target) / 6)
    mean = sum(math.sqrt(s) for s in per_target) / 6
    assert float(summary.rmse[9]) == pytest.approx(pooled, rel=1e-12)
    assert float(summary.rmse_per_target[9]) == pytest.approx(mean, rel=1e-12)
    assert (summary.n_seeds, summary.n_targets) == (4, 6)


def test_coverage_counts_intervals_that_hold_the_truth() -> None:
    results = [result(seed) for seed in range(200)]
    (summary,) = summarise(results)
    assert float(summary.coverage[:-1].mean()) == pytest.approx(0.95, abs=0.01)
    assert float(summary.coverage[-1]) == 1.0
    narrow = [
        CellResult(
            **{**vars(r), "curves": Curves(r.curves.mean, r.curves.variance / 16)}
        )
        for r in results
    ]
    assert float(summarise(narrow)[0].coverage[:-1].mean()) < 0.5


def test_rank_correlation_is_spearmans() -> None:
    one = result(3)
    (summary,) = summarise([one])
    for n in (0, 5, 30):
        expected = spearmanr(one.curves.mean[:, n], one.truth).statistic
        assert float(summary.spearman[n]) == pytest.approx(expected)


def test_stops_are_those_of_the_stopping_rule() -> None:
    one = result(1)
    widths = 2 * 1.96 * one.curves.variance.sqrt()
    rule = StoppingRule(width=0.1, stable=0.05, window=8)
    got, met = first_stop(one.curves.mean, widths, width=0.1, stable=0.05, window=8)
    assert met.tolist() == [True] * 3
    for run in range(3):
        estimates = one.curves.mean[run].tolist()
        expected = next(
            n
            for n in range(1, N + 1)
            if n == N or rule.met(estimates[:n], float(widths[run, n - 1]))
        )
        assert int(got[run]) == expected
    assert int(got.min()) < N
    never, met = first_stop(one.curves.mean, widths, width=1e-9, stable=1e-9, window=8)
    assert never.tolist() == [N] * 3
    assert met.tolist() == [False] * 3


def test_figures_at_the_stop() -> None:
    results = [result(seed) for seed in range(5)]
    (summary,) = summarise(results, stable=0.5, window=2, widths=(0.1,))
    (stop,) = summary.stops
    n = next(n for n in range(2, N + 1) if 2 * 1.95996 * 0.05 * (1 - n / N) <= 0.1)
    errors = torch.stack([r.curves.mean[:, n - 1] - r.truth for r in results])
    assert stop.mean_fraction == pytest.approx(n / N)
    assert stop.rmse == pytest.approx(float(errors.square().mean().sqrt()))
    half = 1.95996 * 0.05 * (1 - n / N)
    assert stop.coverage == pytest.approx(float((errors.abs() <= half).double().mean()))


def test_record_has_the_documented_keys() -> None:
    record = summarise([result(0), result(1)])[0].record()
    assert list(record) == [
        "data",
        "regime",
        "reference_fraction",
        "model",
        "seeds",
        "targets",
        "ewi_rmse",
        "ewi_rmse_per_target",
        "rmse",
        "coverage",
        "spearman",
        "stops",
        "cpu_s_per_run",
    ]
    assert list(record["rmse"]) == ["0.05", "0.1", "0.2", "0.33", "0.5", "0.75"]
    assert list(record["stops"][0]) == [
        "width",
        "mean_fraction",
        "rmse",
        "coverage",
        "stopped",
    ]
    assert [s["width"] for s in record["stops"]] == [
        0.005, 0.0075, 0.01, 0.015, 0.02, 0.025, 0.03,
    ]  # fmt: skip
    json.dumps(record, allow_nan=False)
    curve = summarise([result(0), result(1)])[0].rmse
    assert record["ewi_rmse"] == float(evaluation_weighted_rmse(curve))


def test_runs_that_were_cut_have_no_integral() -> None:
    (summary,) = summarise([result(0, n_max=20)])
    record = summary.record()
    assert record["ewi_rmse"] is None
    assert list(record["rmse"]) == ["0.05", "0.1", "0.2", "0.33"]
    assert rmse_table([summary])[1] == [["toy interpolation 0.5", "-"]]


def test_table_sets_the_papers_figure_beside_ours_where_it_is_the_same() -> None:
    paper = summarise([result(0, data="benchpred_ifeval")])[0]
    other = summarise([result(0, data="benchpred_ifeval", reference_fraction=0.1)])[0]
    assert published_value(paper) == 72.45
    assert published_value(other) is None
    columns, rows = rmse_table([paper, other])
    assert columns == ["setting", "rs-mean"]
    assert rows[0][1].endswith("(72.45)")
    assert "(" not in rows[1][1]


def test_table_2_adds_batches_where_items_are_nearly_unique() -> None:
    def published(model: str, regime: str) -> float | None:
        cell = {"model": model, "regime": regime, "data": "benchpred_ifeval"}
        return published_value(summarise([result(0, **cell)])[0])

    row = [published(model, "interpolation") for model in PRESETS["table2"].models]
    assert row == [49.53, 56.14, 49.99, 50.00, 56.71]
    row = [published(model, "extrapolation") for model in PRESETS["table2"].models]
    assert row == [58.08, 58.08, None, None, 60.52]
    assert published("bayesame-batch5", "interpolation") is None


@pytest.mark.parametrize("name", [paper.value for paper in Paper])
def test_a_preset_is_made_of_models_and_options_that_there_are(name: str) -> None:
    preset = PRESETS[name]
    for model in preset.models:
        check_options(model, preset.options.get(model, {}))
    assert set(preset.options) <= set(preset.models)


@pytest.mark.parametrize("baseline", [True, False])
def test_figure_has_all_models_settings_and_rows(
    tmp_path: Path, baseline: bool
) -> None:
    models = ["bayesame", *(["rs-mean"] if baseline else [])]
    results = [
        result(seed, model=model, regime=regime)
        for seed in range(3)
        for model in models
        for regime in ("interpolation", "extrapolation")
    ]
    png, svg = plot_summaries(summarise(results), tmp_path / "deep" / "figure")
    assert png.stat().st_size > 10_000
    drawn = svg.read_text()
    for text in (
        *models,
        "interpolation, 50% of references",
        "coverage of the 95 % interval",
    ):
        assert f"<!-- {text} -->" in drawn
    assert ("gain over RS-Mean, dB" in drawn) is baseline
    assert "no width was met by every run before the cut" in drawn
    assert "at the stop (log scale)" not in drawn


def test_figure_has_the_trade_off_where_runs_stop(tmp_path: Path) -> None:
    summaries = summarise(
        [result(seed) for seed in range(3)], widths=(10.0,), stable=10.0, window=1
    )
    assert summaries[0].stops[0].stopped == 1.0
    _, svg = plot_summaries(summaries, tmp_path / "figure")
    assert "<!-- RMSE x 100 at the stop (log scale) -->" in svg.read_text()
    assert "before the cut" not in svg.read_text()


def test_table_pools_targets_either_way() -> None:
    (summary,) = summarise([result(seed) for seed in range(3)])
    record = summary.record()
    for pool, key in (("squared", "ewi_rmse"), ("mean", "ewi_rmse_per_target")):
        assert rmse_table([summary], pool=pool)[1][0][1] == f"{record[key]:.2f}"
    assert record["ewi_rmse_per_target"] < record["ewi_rmse"]


def test_cut_runs_that_did_not_stop_are_told_apart() -> None:
    (summary,) = summarise([result(0, n_max=20)], stable=1.0, window=5, widths=(1e-9,))
    assert summary.stops[0].stopped == 0.0
    (summary,) = summarise([result(0, n_max=20)], stable=9.0, window=5, widths=(9.0,))
    assert summary.stops[0].stopped == 1.0
    assert summary.stops[0].mean_fraction == 5 / N


def test_results_of_different_shape_are_not_pooled() -> None:
    with pytest.raises(ValueError, match="one number of targets and items"):
        summarise([result(0), result(1, n_max=20)])
