from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
import torch
from scipy import stats
from simulated import N, result

from gp_eval.experiments.calibration import calibrate, run_clusters
from gp_eval.experiments.calibration_figures import plot_calibration, plot_pit
from gp_eval.experiments.calibration_tables import (
    coverage_table,
    stop_table,
    width_table,
)
from gp_eval.experiments.summary import FRACTIONS, Summary, summarise

SMOOTH = {"stable": 9.0, "window": 2}


def summary_of(n_seeds: int = 6, n_targets: int = 8, **options) -> Summary:
    (summary,) = summarise(
        [result(seed, n_targets=n_targets, **options) for seed in range(n_seeds)],
        **SMOOTH,
    )
    return summary


def test_a_target_of_two_draws_is_one_and_so_is_a_seed() -> None:
    group = [result(seed, draw) for seed in (4, 7) for draw in (0, 1)]
    clusters = run_clusters(group)
    assert clusters.target.tolist() == [0, 1, 2] * 4
    assert clusters.seed.tolist() == [0] * 6 + [1] * 6


def test_figures_beside_the_coverage_by_literal_means() -> None:
    group = [result(seed, dof=4.0) for seed in range(3)]
    found = calibrate(group, FRACTIONS)
    n = 12
    widths, scores, pit = [], [], []
    for r in group:
        for t in range(3):
            scale = float(r.curves.variance[t, n - 1]) ** 0.5
            estimate, truth = float(r.curves.mean[t, n - 1]), float(r.truth[t])
            half = stats.t.ppf(0.975, 4.0) * scale
            miss = max(abs(estimate - truth) - half, 0.0)
            widths.append(2 * half)
            scores.append(2 * half + 40 * miss)
            pit.append(stats.t.cdf((truth - estimate) / scale, 4.0))
    assert float(found.width[n - 1]) == pytest.approx(sum(widths) / 9, rel=1e-10)
    got = float(found.interval_score[n - 1])
    assert got == pytest.approx(sum(scores) / 9, rel=1e-10)
    assert found.pit[0.2].tolist() == pytest.approx(pit, rel=1e-10)
    assert found.normal_pit is not None
    assert found.normal_pit[0.2].tolist() != found.pit[0.2].tolist()


def test_beliefs_that_hold_are_within_the_limit_and_others_beyond() -> None:
    right = summary_of(40).calibration
    assert right.normal_pit is None
    for share, error in right.errors().items():
        assert error < 1.2 * right.references[share].error_limit  # 6 at 5 % each
    narrow = summary_of(40, scale=0.02).calibration
    wide = summary_of(40, scale=0.2).calibration
    for wrong in (narrow, wide):
        for share, error in wrong.errors().items():
            assert error > 2 * wrong.references[share].error_limit


def test_the_interval_score_prefers_neither_narrow_nor_wide() -> None:
    right, narrow, wide = (
        summary_of(40, scale=scale).calibration.interval_score[11]
        for scale in (0.05, 0.02, 0.12)
    )
    assert float(right) < 0.8 * min(float(narrow), float(wide))


def test_record_keeps_tenths_of_pit_values_and_both_errors() -> None:
    record = summary_of(dof=5.0).record()
    assert list(record["pit"]) == ["0.05", "0.1", "0.2", "0.33", "0.5", "0.75"]
    for tenths in record["pit"].values():
        assert len(tenths) == 10
        assert sum(tenths) == pytest.approx(1.0)
    for key in ("calibration_error", "calibration_error_limit"):
        assert list(record[key]) == list(record["pit"])
    assert record["calibration_error_normal"] != record["calibration_error"]
    assert summary_of().record()["calibration_error_normal"] is None
    json.dumps(record, allow_nan=False)


def test_pit_values_are_left_out_where_there_is_no_estimate() -> None:
    cut = result(0, n_max=20)
    cut.curves.mean[:, :5] = cut.curves.variance[:, :5] = torch.nan
    (summary,) = summarise([cut])
    assert list(summary.calibration.pit) == [0.1, 0.2, 0.33]
    record = summary.record()
    assert record["coverage_se"]["0.05"] is None
    assert record["width"]["0.05"] is None
    assert list(record["interval_score"]) == ["0.05", "0.1", "0.2", "0.33"]
    json.dumps(record, allow_nan=False)


def test_one_run_alone_has_figures_without_standard_errors() -> None:
    (summary,) = summarise([result(0, n_targets=1)])
    record = summary.record()
    assert record["coverage_se"]["0.5"] is None
    assert record["coverage"]["0.5"] is not None
    assert record["stops"][0]["coverage_se"] is None
    json.dumps(record, allow_nan=False)


def test_coverage_at_the_stop_leaves_out_what_is_exact_at_the_end() -> None:
    half = stats.norm.ppf(0.975) * 0.05
    group = [result(seed) for seed in range(6)]
    for r in group:  # the first target never has a stable estimate
        r.curves.mean[0] = r.truth[0] + torch.tensor([0.3, -0.3] * (N // 2))
        r.curves.mean[0, -1] = r.truth[0]
    (summary,) = summarise(group, stable=0.5, window=2, widths=(0.15,))
    (stop,) = summary.stops
    n = next(n for n in range(2, N + 1) if 2 * half * (1 - n / N) <= 0.15)
    inside = [
        abs(float(r.curves.mean[t, n - 1] - r.truth[t])) <= half * (1 - n / N)
        for r in group
        for t in (1, 2)
    ]
    assert stop.stopped == 1.0  # the first target's last estimates are near enough
    assert stop.coverage_stopped == pytest.approx(sum(inside) / 12)
    assert stop.coverage == pytest.approx((sum(inside) + 6) / 18)
    assert stop.mean_width == pytest.approx(2 / 3 * 2 * half * (1 - n / N))
    share = (sum(inside) + 2) / 16
    assert stop.coverage_stopped_se is not None
    assert stop.coverage_stopped_se >= math.sqrt(share * (1 - share) / 16)


def test_nothing_is_said_about_stops_that_there_are_none_of() -> None:
    (summary,) = summarise([result(0), result(1)], stable=1e-9, widths=(0.03,))
    (stop,) = summary.stops
    assert stop.coverage_stopped is None
    assert stop.coverage_stopped_se is None
    assert stop_table([summary])[1] == [
        ["toy interpolation 0.5", "rs-mean", "- at 100%"]
    ]


def test_tables_show_what_records_hold() -> None:
    summaries = [summary_of(), summary_of(model="other", dof=3.0)]
    record = summaries[1].record()
    columns, rows = coverage_table(summaries)
    assert columns[1:] == ["model", *record["coverage"], "PIT error (limit)"]
    assert rows[1][:2] == ["toy interpolation 0.5", "other"]
    shown = f"{record['coverage']['0.2']:.2f}±{record['coverage_se']['0.2']:.2f}"
    assert rows[1][4] == shown
    mean = sum(record["calibration_error"].values()) / 6
    assert rows[1][-1].startswith(f"{mean:.3f} (")
    columns, rows = width_table(summaries)
    width, score = record["width"]["0.2"], record["interval_score"]["0.2"]
    assert rows[1][4] == f"{100 * width:.2f} ({100 * score:.2f})"
    columns, rows = stop_table(summaries)
    assert columns[2:] == ["width 0.02", "width 0.03", "width 0.05"]
    stop = next(s for s in summaries[1].stops if s.width == 0.05)
    assert rows[1][-1] == (
        f"{stop.coverage_stopped:.2f}±{stop.coverage_stopped_se:.2f} "
        f"at {stop.mean_fraction:.0%}"
    )


def test_pictures_have_every_model_and_setting(tmp_path: Path) -> None:
    summaries = [
        summary_of(model=model, regime=regime, dof=dof)
        for model, dof in (("one", None), ("two", 3.0))
        for regime in ("interpolation", "extrapolation")
    ]
    png, svg = plot_calibration(summaries, tmp_path / "deep" / "calibration")
    assert png.stat().st_size > 10_000
    drawn = svg.read_text()
    for text in ("one", "two", "coverage at the stop", "lower is better"):
        assert f"<!-- {text}" in drawn
    assert "no run met a width" not in drawn
    png, svg = plot_pit(summaries, tmp_path / "pit")
    assert png.stat().st_size > 10_000
    drawn = svg.read_text()
    error = summaries[3].calibration.errors()[0.33]
    limit = summaries[3].calibration.references[0.33].error_limit
    assert f"<!-- n/N 0.33: {error:.3f} ({limit:.3f}) -->" in drawn
    assert drawn.count("F(u) - u") == 4
    assert "extrapolation, 50% of references" in drawn


def test_pictures_of_runs_cut_early_say_what_is_missing(tmp_path: Path) -> None:
    short = summarise([result(seed, n_max=2) for seed in range(2)])
    mixed = [*short, summary_of(model="whole")]
    _, svg = plot_calibration(short, tmp_path / "calibration")
    assert "no run met a width before n = N" in svg.read_text()
    _, svg = plot_pit(mixed, tmp_path / "pit")
    assert svg.read_text().count("F(u) - u") == 1
