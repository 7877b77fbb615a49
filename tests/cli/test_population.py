"""The population model from the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest
from command import gp_eval
from item_response import answers, spread


@pytest.fixture
def refs(tmp_path: Path) -> Path:
    scores = answers(spread(24), 30).numpy()
    frame = pd.DataFrame(scores, index=[f"q{i}" for i in range(30)])
    frame.columns = [f"m{k}" for k in range(24)]
    frame.to_csv(tmp_path / "toy.csv")
    return tmp_path / "toy.csv"


def test_simulate_runs_it_beside_others_in_both_regimes(refs: Path) -> None:
    outcome = gp_eval(
        "simulate", refs, "--models", "population,rs-mean", "--seeds", 2,
        "--targets", 3, "-o", refs.parent / "results", "--json", "--no-figures",
    )  # fmt: skip
    assert outcome.code == 0, outcome.err
    records = [json.loads(line) for line in outcome.out.splitlines()]
    assert [(r["regime"], r["model"]) for r in records] == [
        (regime, model)
        for regime in ("interpolation", "extrapolation")
        for model in ("population", "rs-mean")
    ]
    for record in records:
        assert 0 < record["ewi_rmse"] < 1000
        assert 0 < record["rmse"]["0.75"] < record["rmse"]["0.05"]
        assert record["coverage"]["0.5"] > 0.5


def test_simulate_is_the_same_again(refs: Path) -> None:
    def rmse(folder: str) -> list:
        outcome = gp_eval(
            "simulate", refs, "--models", "population", "--seeds", 1, "--targets", 2,
            "--regime", "extrapolation", "--n-max", 12, "-o", refs.parent / folder,
            "--json", "--no-figures",
        )  # fmt: skip
        return [json.loads(line)["rmse"] for line in outcome.out.splitlines()]

    assert rmse("one") == rmse("two") != []


def test_a_run_is_started_told_and_reported(refs: Path, tmp_path: Path) -> None:
    run, page = tmp_path / "run", tmp_path / "report.json"
    started = gp_eval(
        "start", run, "--refs", refs, "--target", "mine", "--model", "population"
    )
    assert started.code == 0, started.err
    n = 0
    while items := gp_eval("ask", run, "-n", 8).out.split():
        assert gp_eval("tell", run, *(f"{item}=1" for item in items)).code == 0
        n += len(items)
        status = json.loads(gp_eval("status", run, "--json").out)
        assert status["n"] == n
        assert status["low"] <= status["estimate"] <= status["high"]
        if status["done"]:
            break
    assert 0 < n <= 30
    assert gp_eval("report", run, "-o", page).code == 0
    assert json.loads(page.read_text())["provenance"]["model"] == "population"


def test_a_table_that_a_population_cannot_be_learned_from_is_a_clear_error(
    tmp_path: Path,
) -> None:
    table = tmp_path / "one.csv"
    pd.DataFrame({"m0": [1.0, 0.0]}, index=["p", "q"]).to_csv(table)
    outcome = gp_eval(
        "start", tmp_path / "run", "--refs", table, "--target", "t",
        "--model", "population",
    )  # fmt: skip
    assert outcome.code in (1, 2)
    assert "at least 2 references, got 1" in outcome.err
    assert "Traceback" not in outcome.err
    assert not (tmp_path / "run").exists()
