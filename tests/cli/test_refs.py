from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest
from command import gp_eval

from gp_eval.data import References


def write(path: Path) -> Path:
    frame = pd.DataFrame(
        {"weak": [0.0, 0.0, 1.0], "strong": [1.0, None, 1.0]}, index=["a", "b", "c"]
    )
    frame.to_csv(path / "refs.csv")
    return path / "refs.csv"


def test_json_has_the_documented_keys(tmp_path: Path) -> None:
    outcome = gp_eval("refs", "show", write(tmp_path), "--json")
    assert json.loads(outcome.out) == {
        "n_items": 3,
        "n_models": 2,
        "unique_rows": 3,
        "missing_cells": 1,
        "metric": None,
        "models": [{"id": "strong", "mean": 1.0}, {"id": "weak", "mean": 1 / 3}],
    }


def test_table_lists_the_best_first(tmp_path: Path) -> None:
    outcome = gp_eval("refs", "show", write(tmp_path))
    assert [line.split()[0] for line in outcome.out.splitlines()] == [
        "model",
        "strong",
        "weak",
    ]
    assert "3 items x 2 models, 3 unique rows, 1 missing cells" in outcome.err


def test_repeated_models_of_real_data(shared_data: Path) -> None:
    path = shared_data / "benchpred_ifeval.npz"
    refused = gp_eval("refs", "show", path)
    assert refused.code == 1
    assert "SmolLM2-135M-Instruct" in refused.err
    shown = gp_eval("refs", "show", path, "--duplicate-models", "number", "--json")
    assert json.loads(shown.out)["n_models"] == 448


def test_file_that_is_not_there(tmp_path: Path) -> None:
    outcome = gp_eval("refs", "show", tmp_path / "none.npz")
    assert outcome.code == 1
    assert "no such file" in outcome.err


def test_means_are_those_of_the_weighted_items(tmp_path: Path) -> None:
    references = References(
        [[1.0, 0.0], [0.0, 1.0]], ["a", "b"], ["x", "y"], item_weights=[0.9, 0.1]
    )
    references.write(tmp_path / "refs.npz")
    record = json.loads(gp_eval("refs", "show", tmp_path / "refs.npz", "--json").out)
    assert record["models"] == [
        {"id": "x", "mean": pytest.approx(0.9)},
        {"id": "y", "mean": pytest.approx(0.1)},
    ]
