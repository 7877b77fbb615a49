from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from command import gp_eval

from gp_eval.experiments.presets import PRESETS


@pytest.fixture
def table(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    skill, ease = rng.random((1, 24)), rng.random((30, 1))
    scores = (0.5 * skill + 0.3 * ease + 0.2 * rng.random((30, 24))).round(6)
    frame = pd.DataFrame(scores, index=[f"q{i}" for i in range(30)])
    frame.columns = [f"m{k}" for k in range(24)]
    frame.to_csv(tmp_path / "toy.csv")
    return tmp_path / "toy.csv"


def words(table: Path, *more: object) -> tuple[object, ...]:
    return (
        "simulate", table, "--models", "bayesame,bayesame-rs", "--seeds", 2,
        "--targets", 3, "-o", table.parent / "results", *more,
    )  # fmt: skip


def test_json_has_one_line_for_each_setting_and_model(table: Path) -> None:
    outcome = gp_eval(*words(table, "--json", "--no-figures"))
    assert outcome.code == 0, outcome.err
    records = [json.loads(line) for line in outcome.out.splitlines()]
    assert [(r["data"], r["regime"], r["model"]) for r in records] == [
        ("toy", regime, model)
        for regime in ("interpolation", "extrapolation")
        for model in ("bayesame", "bayesame-rs")
    ]
    for record in records:
        assert record["seeds"] == 2
        assert record["targets"] == 3
        assert 0 < record["ewi_rmse"] < 1000
        assert 0 < record["coverage_se"]["0.5"] < 0.5
        assert record["interval_score"]["0.5"] >= record["width"]["0.5"] > 0
        assert 0 < record["calibration_error"]["0.5"] <= 0.5


def test_calibrated_models_run_beside_the_models_they_wrap(table: Path) -> None:
    models = ("proeval", "proeval-calibrated")
    outcome = gp_eval(
        "simulate", table, "--models", ",".join(models), "--seeds", 1, "--targets", 2,
        "--regime", "interpolation", "-o", table.parent / "wide", "--json",
        "--no-figures",
    )  # fmt: skip
    assert outcome.code == 0, outcome.err
    plain, wide = (json.loads(line) for line in outcome.out.splitlines())
    assert (plain["model"], wide["model"]) == models
    assert wide["rmse"]["0.5"] == pytest.approx(plain["rmse"]["0.5"], rel=1e-6)
    assert wide["width"]["0.5"] >= plain["width"]["0.5"]


def test_the_same_line_resumes(table: Path) -> None:
    first = gp_eval(*words(table, "--json", "--no-figures"))
    times = {p: p.stat().st_mtime_ns for p in table.parent.rglob("*.parquet")}
    again = gp_eval(*words(table, "--json", "--no-figures"))
    assert again.out == first.out
    assert {p: p.stat().st_mtime_ns for p in times} == times


def test_table_and_figures_for_people(table: Path) -> None:
    outcome = gp_eval(*words(table, "--regime", "interpolation"))
    assert outcome.code == 0, outcome.err
    lines = outcome.out.splitlines()
    assert lines[0].split() == ["setting", "bayesame", "bayesame-rs"]
    assert lines[1].startswith("toy interpolation 0.5")
    for text in ("coverage of the 95 % interval", "PIT error", "coverage at the stop"):
        assert text in outcome.out
    assert "±" in outcome.out
    assert "interval score is the width and a penalty" in outcome.err
    for name in ("comparison", "calibration", "pit"):
        for suffix in ("png", "svg"):
            assert (table.parent / "results/toy" / f"{name}.{suffix}").is_file()


def test_several_sets_and_fractions_at_once(table: Path) -> None:
    other = table.with_name("other.csv")
    other.write_text(table.read_text())
    outcome = gp_eval(
        *words(table, other, "--reference-fraction", "0.3,0.9", "--n-max", 12),
        "--json",
        "--no-figures",
    )
    records = [json.loads(line) for line in outcome.out.splitlines()]
    assert len(records) == 2 * 2 * 2 * 2
    assert {r["reference_fraction"] for r in records} == {0.3, 0.9}
    assert all(r["ewi_rmse"] is None for r in records)


def test_mistakes_are_usage_errors(table: Path) -> None:
    assert gp_eval(*words(table, "--reference-fraction", "half")).code == 2
    assert gp_eval(*words(table, "--reference-fraction", "1.5")).code == 2
    assert gp_eval(*words(table, "--regime", "sideways")).code == 2
    twice = gp_eval(*words(table, table))
    assert twice.code == 1
    assert "two sets are called 'toy'" in twice.err


def test_names_of_models_may_be_spaced_or_repeated(table: Path) -> None:
    outcome = gp_eval(
        *words(table, "--json", "--no-figures", "--regime", "interpolation"),
        "--models",
        "rs-mean, rs-mean ,,bayesame-rs",
    )
    records = [json.loads(line) for line in outcome.out.splitlines()]
    assert [r["model"] for r in records] == ["rs-mean", "bayesame-rs"]
    assert gp_eval(*words(table), "--models", ",").code == 2


def test_what_can_be_shown_is_shown_when_a_model_refuses(table: Path) -> None:
    outcome = gp_eval(
        *words(table, "--json", "--no-figures"), "--models", "irt-2pl,rs-mean"
    )
    assert outcome.code == 1
    assert [json.loads(line)["model"] for line in outcome.out.splitlines()] == [
        "rs-mean"
    ] * 2
    assert "4 cells refused" in outcome.err
    assert "irt-2pl" in outcome.err


def test_preset_takes_flags_over_its_own_and_the_irt_that_fits(table: Path) -> None:
    outcome = gp_eval(
        "simulate", table, "--paper", "table1", "--seeds", 1, "--draws", 1,
        "--targets", 2, "--models", "aipw", "--regime", "interpolation", "--n-max", 8,
        "-o", table.parent / "paper", "--json", "--no-figures",
    )  # fmt: skip
    assert outcome.code == 0, outcome.err
    models = [json.loads(line)["model"] for line in outcome.out.splitlines()]
    assert models[-2:] == ["irt-beta", "aipw"]
    assert len(models) == 9
    assert gp_eval(*words(table, "--missing", "mean")).code == 2


@pytest.mark.parametrize(
    ("figure", "models"),
    [
        ("figure3", {"bayesame", "bayesame-multi", "bayes-aipw", "rs-mean"}),
        ("figure15", {"bayesame-multi", "bayesame-multi-average", "rs-mean"}),
    ],
)
def test_figures_of_several_targets_have_their_models_and_regimes(
    table: Path, figure: str, models: set[str]
) -> None:
    done = gp_eval(
        "simulate", table, "--paper", figure, "--seeds", 1, "--draws", 1,
        "--targets", 2, "--n-max", 5, "--no-figures", "--json",
        "-o", table.parent / figure,
    )  # fmt: skip
    records = [json.loads(line) for line in done.out.splitlines()]
    assert {record["model"] for record in records} == models
    assert {record["regime"] for record in records} == {
        "low-correlation",
        "high-correlation",
    }
    joint = next(r for r in records if r["model"] == "bayesame-multi")
    assert joint["ewi_rmse"] is None


@pytest.mark.parametrize("name", ["table2", "figure4", "figure5"])
def test_variants_of_the_appendix_run_by_their_presets(table: Path, name: str) -> None:
    outcome = gp_eval(
        "simulate", table, "--paper", name, "--seeds", 1, "--draws", 1, "--targets", 2,
        "--regime", "interpolation", "--reference-fraction", "0.5", "--n-max", 10,
        "-o", table.parent / name, "--json", "--no-figures",
    )  # fmt: skip
    assert outcome.code == 0, outcome.err
    records = [json.loads(line) for line in outcome.out.splitlines()]
    assert [r["model"] for r in records] == list(PRESETS[name].models)
    # Each has results of its own: no two of them share a file.
    assert len({r["rmse"]["0.2"] for r in records}) == len(records)
